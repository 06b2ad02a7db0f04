// src/controllers/pods/ownership.h
//
// Whose an object is: those that a controller made or adopted bear its controller reference. One
// that matches the selector and has no controller is adopted, one that is owned and does not match
// any more is released. Rules: k8s.io/kubernetes pkg/controller/controller_ref_manager.go.
//
// Thread: any (pure functions).

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/reconcile.h"
#include "json/value.h"
#include "schema/label_selector.h"

namespace muster::controllers {

// metadata.ownerReferences of what `owner` controls.
json::Value ControlledByOnly(const json::Value& owner);

struct Claims {
  std::vector<json::Value> owned;  // already, and still
  std::vector<json::Value> adopted, released;
};
// `candidates`: all that the owner controls or selects, in any order.
Claims Claim(const json::Value& owner, const schema::LabelSelector& selector,
             const std::vector<json::Value>& candidates);

// What claims have to do first: whether the owner is still there is asked of the server, past the
// cache, before anything is adopted. True if the pass has to wait for that; else the writes are in
// `out`, and what was adopted is in `claims.owned`. What is adopted gets the finalizer, if there is
// one, and what is released loses it.
bool CarryOut(const client::Resource& owner_resource, const json::Value& owner,
              const client::Resource& resource, const client::Observations& observations,
              Claims& claims, client::Reconciled& out, std::string_view finalizer = {});

}  // namespace muster::controllers
