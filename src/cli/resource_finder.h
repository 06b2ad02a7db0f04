// src/cli/resource_finder.h
//
// ResourceFinder: what the server serves, by whatever name a user or a manifest has for it.
//
// Life cycle: one per run; asks the server when it must and remembers. The core group is asked
//             first, so the usual commands cost one request.
// Thread:     the loop thread.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cli/session.h"
#include "client/api_client.h"

namespace muster::cli {

struct ApiResource {
  client::Resource resource;
  std::string kind;      // "PyTorchJob"
  std::string singular;  // "pytorchjob"
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  bool namespaced = true;

  std::string ApiVersion() const {
    return resource.group.empty() ? resource.version : resource.group + "/" + resource.version;
  }
  // How kubectl names an object: "pod/x", "pytorchjob.kubeflow.org/x".
  std::string ObjectName(std::string_view name) const;
  std::string QualifiedSingular() const;
};

class ResourceFinder {
 public:
  explicit ResourceFinder(Session& session) : session_(session) {}

  // "pods", "pod", "po", "Pod", "pytorchjobs.kubeflow.org", "pytorchjobs.v1.kubeflow.org".
  Result<ApiResource> Find(std::string_view name);
  // "all" and other categories: every resource in it; else the one that is named.
  Result<std::vector<ApiResource>> FindAll(std::string_view name);
  // For a manifest.
  Result<ApiResource> FindKind(std::string_view api_version, std::string_view kind);
  // Asks the server again: a CustomResourceDefinition was just applied.
  void Forget();

 private:
  Status LoadCore();
  Status LoadGroups();
  void AddList(const json::Value& list, const std::string& group, const std::string& version);
  const ApiResource* Match(std::string_view name) const;

  Session& session_;
  bool core_loaded_ = false;
  bool groups_loaded_ = false;
  std::vector<ApiResource> known_;  // preferred versions before others
};

}  // namespace muster::cli
