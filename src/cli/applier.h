// src/cli/applier.h
//
// Applier: makes one object on the server what a manifest says, as kubectl apply does, through
// conflicts and behind definitions that were applied just before.
//
// Life cycle: one per run of a command.
// Thread:     the loop thread.

#pragma once

#include <functional>
#include <string>

#include "cli/resource_finder.h"
#include "cli/session.h"
#include "json/value.h"

namespace muster::cli {

struct Applied {
  std::string name;  // "pytorchjob.kubeflow.org/digits"
  client::Target target;
  std::string outcome;  // "created", "configured" or "unchanged"
  json::Value before;   // null: there was none
  json::Value patch;    // what was changed, as a merge patch; null where it was created
};

class Applier {
 public:
  // With `namespace_given` objects of other namespaces than the session's are refused.
  Applier(Session& session, bool namespace_given)
      : session_(session), finder_(session), namespace_given_(namespace_given) {}

  // `may_change` is asked about an object that is there; an error of its ends the attempt.
  using MayChange = std::function<Status(const json::Value& current)>;
  Result<Applied> Apply(const json::Value& manifest, const MayChange& may_change = nullptr);
  // Which object a manifest is about; an error if its kind is not served (yet).
  Result<client::Target> TargetOf(const json::Value& manifest);

 private:
  Result<ApiResource> FindKind(const json::Value& object);
  Result<json::Value> WithNamespace(const json::Value& object, const ApiResource& resource) const;
  Result<json::Value> Write(const char* method, const client::Target& target,
                            const char* content_type, const json::Value& body);
  Status ApplyOnce(const ApiResource& resource, const json::Value& object,
                   const MayChange& may_change, Applied& out);

  Session& session_;
  ResourceFinder finder_;
  const bool namespace_given_;
  bool applied_definition_ = false;
};

}  // namespace muster::cli
