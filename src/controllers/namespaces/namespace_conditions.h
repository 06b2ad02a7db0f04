// src/controllers/namespaces/namespace_conditions.h
//
// What a namespace says while it cannot go: what is left in it, and whose finalizers hold that.
//
// Thread:  any (values and pure functions).
// Source:  kube-controller-manager's namespace controller (pkg/controller/namespace/deletion,
//          status_condition_utils.go), whose types, reasons and messages these are.

#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "base/time.h"
#include "client/api_client.h"
#include "json/value.h"

namespace muster::controllers {

struct NamespaceRemains {
  std::map<std::string, size_t> resources;   // "pods." or "jobs.batch": how many
  std::map<std::string, size_t> refused;     // of those: the server does not delete them
  std::string refusal;                       // what it says to that; "" if that is not known
  std::map<std::string, size_t> finalizers;  // how many objects each of them holds

  // `asked`: its deletion was asked for long ago.
  void Add(const client::Resource& resource, const json::Value& object, bool asked);
  bool empty() const { return resources.empty(); }
};

// The status' conditions; `before` if they say so already.
json::Value ConditionsOf(const NamespaceRemains& remains, const json::Value& before, Time now);

}  // namespace muster::controllers
