// tests/simulation/claim_chapter.h
//
// ClaimChapter: claims that choose static volumes or get local ones made, pods and StatefulSets
// that use them, ephemeral volumes, and users who delete claims, volumes and pods at any moment.
//
//   one to one     a claim keeps the volume that it has, a volume its claim
//   protection     no claim goes under a pod that has its node, no volume under its claim
//   placement      a pod is bound where the volumes of its claims are, and these are bound by then;
//                  none is bound with a claim that has long been going
//   folders        a local volume goes after its folder
//   rest           both sides of a binding say the same; of what was made for a claim that is gone
//                  nothing is left but what is to be kept
//
// Thread: the simulation's.

#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "simulation/chapter.h"

namespace muster::simulation {

class ClaimChapter final : public Chapter {
 public:
  explicit ClaimChapter(const Tale& tale);
  void Plan() override;
  void End() override;
  std::vector<std::string> Restless() const override;
  void Judge() override;

 private:
  struct Known {
    json::Value object;
    Time created{}, going{};  // going: since when it is being deleted
  };
  struct User {
    std::string key, node;
    std::vector<std::string> claims;  // keys
    Time bound{};
    bool finished = false;
  };

  void MakeClaim();
  void MakeVolume(int64_t number);
  void MakePod();
  void MakeStatefulSet();
  void DeleteClaim();
  void DeletePod();
  void DeleteVolume();
  void FreeWhatGoes();
  void DeleteOnce(const client::Resource& resource, const client::ObjectKey& key,
                  const std::string& uid);
  void OnClaim(const std::string& key, const json::Value& object, bool deleted);
  void OnVolume(const json::Value& object, bool deleted);
  void OnPod(const json::Value& object, bool deleted);
  void CheckPlace(const User& user);
  void JudgeClaim(const json::Value& claim, std::set<std::string>& taken);
  void JudgeVolume(const json::Value& volume);
  bool WasLost(const std::string& node) const;
  const Known* ClaimWithUid(std::string_view uid) const;
  const Known* VolumeOf(const Known& claim) const;

  std::map<std::string, Known> claims_;    // by "ns/name"
  std::map<std::string, Known> volumes_;   // by name
  std::map<std::string, User> users_;      // pods with a node, by uid
  std::map<std::string, Time> node_gone_;  // when the object of a node was last deleted
  std::set<std::string> abandoned_;        // volumes whose folders stay
  std::set<std::string> freed_;            // what was deleted since the end began, by uid
  int64_t made_ = 0;
  bool ends_ = false;
};

}  // namespace muster::simulation
