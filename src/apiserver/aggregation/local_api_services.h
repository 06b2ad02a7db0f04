// src/apiserver/aggregation/local_api_services.h
//
// LocalApiServices: the APIServices without a Service that say what this server serves itself, as
// upstream has them: one for each group version, with upstream's priorities. Those of what is built
// in are there from the first boot (bootstrap.h writes them); those of CustomResourceDefinitions
// come and go with these. What is only computed has none: it may be another server's.
//
// Life cycle: a member of the Aggregator.
// Thread:     the loop thread.

#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "json/value.h"

namespace muster::apiserver {

struct Core;

// Of what is built in.
std::vector<json::Value> BuiltInApiServices();

class LocalApiServices {
 public:
  explicit LocalApiServices(Core& core) : core_(core) {}

  // CustomResourceDefinitions changed: makes and removes what follows from it, soon.
  void SyncCustom();
  // Makes it anew, soon, if it says what is served here.
  void OnDeleted(const std::string& name);

 private:
  void Sync();

  Core& core_;
  std::set<std::string> deleted_;  // since the last pass
  bool soon_ = false;
};

}  // namespace muster::apiserver
