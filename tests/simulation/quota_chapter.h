// tests/simulation/quota_chapter.h
//
// QuotaChapter: a namespace with ResourceQuotas that change, and bursts of pods, ConfigMaps and
// claims in it, made by users and by a ReplicaSet.
//
//   never above    an object that was made under a quota did not take more than was left of it
//   rest           status says what a count from scratch says
//
// Thread: the simulation's.

#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "schema/quota.h"
#include "simulation/chapter.h"

namespace muster::simulation {

class QuotaChapter final : public Chapter {
 public:
  explicit QuotaChapter(const Tale& tale);
  void Plan() override;
  void End() override;
  std::vector<std::string> Restless() const override;
  void Judge() override;

 private:
  struct Quota {
    json::Value object;
    Time changed{};
  };

  void MakeQuota(const std::string& name);
  json::Value RandomHard();
  void ChangeQuota();
  void Burst();
  void Make(const client::Resource& resource, const json::Value& object);
  void DeleteSome();
  void RaiseQuotas();
  void OnQuota(const json::Value& object, bool deleted);
  void OnCounted(const std::string& key, const json::Value& object, bool deleted);
  schema::Amounts Count() const;
  void CheckQuotas(const std::string& key);

  std::map<std::string, Quota> quotas_;         // by name
  std::map<std::string, json::Value> counted_;  // by key of the store
  std::set<std::string> lapsed_;                // pods that do not count any more
  int64_t made_ = 0;
  Time rests_from_{};
  bool ends_ = false;
};

}  // namespace muster::simulation
