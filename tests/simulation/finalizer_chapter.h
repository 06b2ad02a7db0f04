// tests/simulation/finalizer_chapter.h
//
// FinalizerChapter: objects with a finalizer that nobody takes off for a long time, in a namespace
// that is deleted and below an owner that is deleted in the foreground. Both wait, whatever
// crashes meanwhile, the namespace says for what, and both go once the finalizer is off.
//
// Thread: the simulation's.

#pragma once

#include <set>
#include <string>
#include <vector>

#include "simulation/chapter.h"

namespace muster::simulation {

class FinalizerChapter final : public Chapter {
 public:
  explicit FinalizerChapter(const Tale& tale);
  void Plan() override;
  void End() override;
  std::vector<std::string> Restless() const override;
  void Judge() override;

 private:
  void MakeHeld();
  void MakeFamily();
  void MakeDependent(const std::string& owner_uid);
  void DeleteAll();
  void CheckWaiting();
  void Release();
  void OnConfigMap(const json::Value& object, bool deleted);

  std::set<std::string> dependents_;  // that are there
  bool early_ = false;                // the finalizers go before the end of the story
  bool released_ = false;
};

}  // namespace muster::simulation
