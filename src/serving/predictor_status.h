// src/serving/predictor_status.h
//
// The parts of an InferenceService's status: conditions as Knative's library keeps them (sorted by
// type, Ready is the sum), and what pods and Deployments say about the model.
//
// Thread: any (pure).

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "json/value.h"

namespace muster::serving {

struct ServingCondition {
  std::string type;
  std::string status;  // "True", "False", "Unknown"
  std::string reason, message;
  bool counts = true;  // for Ready
};

// status.conditions: `list`, and Ready if it is not in there.
json::Value ConditionsOf(const json::Value& before, std::vector<ServingCondition> list, Time now);

// That another one has its NAME-NAMESPACE.example.com (hosts.h).
ServingCondition HostTaken(std::string_view name, std::string_view ns, std::string_view owner);

// A Deployment as this layer made it.
struct RevisionState {
  explicit RevisionState(const json::Value& deployment);

  bool exists = false;
  std::string revision;  // "iris-predictor-00001"
  std::string hash;      // of what the spec said
  int64_t wanted = 0, ready = 0, total = 0;
  bool rolled_out = false;      // all of its pods are of the present template, and available
  std::string reason, message;  // of its condition Progressing, or why it makes no pods
  bool failed = false;          // it does not get on
};

// Of the first pod that waits for a node, with its name; "" if none does.
std::string WhyNoNode(const std::vector<json::Value>& pods, std::string_view app_label);

// status.modelStatus.lastFailureInfo of the first pod whose server could not start, find or load
// its model; null if there is none.
json::Value FailureOf(const std::vector<json::Value>& pods, std::string_view app_label,
                      std::string_view revision);

}  // namespace muster::serving
