// src/client/api_client.h
//
// ApiClient: the Kubernetes API as calls. Everything from the scheduler down reaches the cluster
// only through it and so cannot tell the embedded API server from a real one.
//
// Life cycle: one per part (scheduler, agent, ...); its Transport must outlive it. Destroying it
//             abandons every call and watch: no callback runs afterwards.
// Thread:     one loop thread; callbacks run there, never from inside the call.
// Errors:     a Status exactly as the server answered it (reason, message, causes), or
//             ServiceUnavailable/Timeout when it did not answer; the write may then have happened.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/task.h"
#include "client/lifetime.h"
#include "client/transport.h"
#include "json/value.h"
#include "loop/loop.h"

namespace muster::client {

// Which collection: {"", "v1", "pods"}, {"kubeflow.org", "v1", "pytorchjobs"}.
struct Resource {
  std::string group, version, plural;
  bool operator==(const Resource&) const = default;
  auto operator<=>(const Resource&) const = default;
};

namespace resources {
inline const Resource kPods{"", "v1", "pods"};
inline const Resource kNodes{"", "v1", "nodes"};
inline const Resource kServices{"", "v1", "services"};
inline const Resource kNamespaces{"", "v1", "namespaces"};
inline const Resource kConfigMaps{"", "v1", "configmaps"};
inline const Resource kSecrets{"", "v1", "secrets"};
inline const Resource kEvents{"", "v1", "events"};
inline const Resource kServiceAccounts{"", "v1", "serviceaccounts"};
inline const Resource kPersistentVolumeClaims{"", "v1", "persistentvolumeclaims"};
inline const Resource kEndpointSlices{"discovery.k8s.io", "v1", "endpointslices"};
inline const Resource kLeases{"coordination.k8s.io", "v1", "leases"};
inline const Resource kPriorityClasses{"scheduling.k8s.io", "v1", "priorityclasses"};
inline const Resource kCustomResourceDefinitions{"apiextensions.k8s.io", "v1",
                                                 "customresourcedefinitions"};
inline const Resource kDeployments{"apps", "v1", "deployments"};
inline const Resource kReplicaSets{"apps", "v1", "replicasets"};
inline const Resource kControllerRevisions{"apps", "v1", "controllerrevisions"};
inline const Resource kDaemonSets{"apps", "v1", "daemonsets"};
inline const Resource kStatefulSets{"apps", "v1", "statefulsets"};
inline const Resource kJobs{"batch", "v1", "jobs"};
inline const Resource kCronJobs{"batch", "v1", "cronjobs"};
inline const Resource kHorizontalPodAutoscalers{"autoscaling", "v2", "horizontalpodautoscalers"};
inline const Resource kNetworkPolicies{"networking.k8s.io", "v1", "networkpolicies"};
inline const Resource kPodDisruptionBudgets{"policy", "v1", "poddisruptionbudgets"};
inline const Resource kPyTorchJobs{"kubeflow.org", "v1", "pytorchjobs"};
inline const Resource kPodGroups{"scheduling.volcano.sh", "v1beta1", "podgroups"};
}  // namespace resources

// One object: name "" means the collection; ns "" means cluster-scoped, or all namespaces for a
// collection.
struct Target {
  Resource resource;
  std::string ns;
  std::string name;
  std::string subresource;  // "status", "binding", "log", ...
};

enum class PatchType : uint8_t { kJson, kMerge, kStrategic, kApply };

struct ListOptions {
  std::string label_selector, field_selector;
  int64_t limit = 0;
  std::string continue_token;
  std::string resource_version;
};

struct DeleteOptions {
  std::string propagation_policy;  // "Background", "Foreground", "Orphan"; "" = the kind's default
  std::optional<int64_t> grace_period_seconds;
  std::string precondition_uid, precondition_resource_version;
};

struct WatchOptions {
  std::string label_selector, field_selector;
  std::string resource_version;
  bool allow_bookmarks = true;
  int64_t timeout_seconds = 0;
};

struct WatchCallbacks {
  // type: "ADDED", "MODIFIED", "DELETED", "BOOKMARK". ERROR frames arrive through on_end.
  Function<void(std::string_view type, json::Value object)> on_event;
  Function<void(Status)>
      on_end;  // Ok: the server closed it in good order; Expired/Gone: list again
};

class ApiClient {
 public:
  using Done = Function<void(Result<json::Value>)>;

  // `user_agent` is also the fieldManager. REQUIRES: both outlive the client.
  ApiClient(Loop& loop, Transport& transport, std::string user_agent);

  void Get(const Target& target, Done done);
  void GetPath(std::string path, Done done);  // any path of the API with its query
  void List(const Resource& resource, std::string_view ns, const ListOptions& options, Done done);
  void Create(const Target& target, const json::Value& object, Done done);
  void Update(const Target& target, const json::Value& object, Done done);
  void Patch(const Target& target, PatchType type, const json::Value& patch, Done done);
  void Delete(const Target& target, const DeleteOptions& options, Done done);
  std::unique_ptr<StreamHandle> Watch(const Resource& resource, std::string_view ns,
                                      const WatchOptions& options, WatchCallbacks callbacks);
  // Anything else, e.g. GET .../log?follow=true as a stream.
  void Raw(net::Request request, Function<void(Result<net::Response>)> done);
  std::unique_ptr<StreamHandle> RawStream(net::Request request, StreamCallbacks callbacks);

  static std::string PathOf(const Target& target);  // "/api/v1/namespaces/d/pods/x/log"
  // Ok for 2xx; otherwise the Status that the server sent, or one made from the HTTP code.
  static Status StatusOf(const net::Response& response);

  Loop& loop() { return loop_; }
  const std::string& user_agent() const { return user_agent_; }

 private:
  void Call(std::string method, std::string target, std::string_view content_type, json::Value body,
            Done done);

  Loop& loop_;
  Transport& transport_;
  std::string user_agent_;
  Lifetime lifetime_;
};

}  // namespace muster::client
