// src/apiserver/admission/admission_request.h
//
// AdmissionRequest: what webhooks are asked about: one write, or one connection to a pod or node.
//
// Life cycle: a value, copied cheaply (trees are shared).
// Thread:     the loop thread.

#pragma once

#include <string>

#include "apiserver/admission/webhook.h"
#include "apiserver/call.h"
#include "apiserver/resource_registry.h"
#include "json/value.h"
#include "schema/kind.h"

namespace muster::apiserver {

struct AdmissionRequest {
  Operation operation = Operation::kCreate;
  CallPtr call;          // who asks; warnings go there
  schema::KindPtr kind;  // of the resource in the URL, in the client's version
  std::string subresource, ns, name;
  bool dry_run = false;
  json::Value options;  // CreateOptions, UpdateOptions, DeleteOptions; null for connections
  // As they are stored; null where the operation has none. With a subresource that has objects of
  // its own (a Scale, an Eviction) these are such, whole.
  json::Value object, old_object;
  bool own_object = false;  // that is the case

  RuleSubject Subject(const schema::Kind& seen) const;
};

// The request of `call` on `resource`, without objects.
AdmissionRequest MakeAdmissionRequest(const CallPtr& call, const ResourcePtr& resource,
                                      Operation operation, bool dry_run);

}  // namespace muster::apiserver
