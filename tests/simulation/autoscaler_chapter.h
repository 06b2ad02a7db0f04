// tests/simulation/autoscaler_chapter.h
//
// AutoscalerChapter: HorizontalPodAutoscalers of Deployments whose pods use what annotations of
// theirs say (apiserver/metrics/simulated_usage.h), while users change use, bounds and targets.
//
//   bounds   an autoscaler never asks for more or fewer than its maximum and minimum
//   rest     there are as many as it recommends, and its status says so
//
// Thread: the simulation's.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "simulation/chapter.h"

namespace muster::simulation {

class AutoscalerChapter final : public Chapter {
 public:
  explicit AutoscalerChapter(const Tale& tale);
  void Plan() override;
  std::vector<std::string> Restless() const override;
  void Judge() override;

 private:
  struct Autoscaler {
    json::Value object;
    Time changed{};  // what it is to do
  };

  void MakeBoth(const std::string& name);
  void MakeAutoscaler(const std::string& name);
  std::string RandomBehavior();
  std::string RandomUse();
  void Change();
  void OnAutoscaler(const json::Value& object, bool deleted);
  void OnDeployment(const json::Value& object, bool deleted);
  bool IsContent(const json::Value& autoscaler, const json::Value& deployment) const;

  std::map<std::string, Autoscaler> autoscalers_;  // by name, as their Deployments
  std::map<std::string, json::Value> deployments_;
  std::vector<std::string> names_;
};

}  // namespace muster::simulation
