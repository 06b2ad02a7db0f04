// src/controllers/controller_test_base.h
//
// A runtime with one or more controllers on a FakeApi and simulated time, for this folder's tests.

#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "client/reconcile.h"
#include "client/resource_discovery.h"
#include "json/parse.h"
#include "loop/sim_loop.h"

namespace muster::controllers {

inline json::Value Yaml(std::string_view text) {
  auto documents = json::ParseYaml(text);
  CHECK(documents.has_value() && documents->size() == 1);
  return (*documents)[0];
}

inline constexpr char kPods[] = "/api/v1/pods";
inline constexpr char kServices[] = "/api/v1/services";
inline constexpr char kNamespaces[] = "/api/v1/namespaces";
inline constexpr char kConfigMaps[] = "/api/v1/configmaps";
inline constexpr char kServiceAccounts[] = "/api/v1/serviceaccounts";
inline constexpr char kNodes[] = "/api/v1/nodes";
inline constexpr char kEvents[] = "/api/v1/events";
inline constexpr char kLeases[] = "/apis/coordination.k8s.io/v1/leases";
inline constexpr char kReplicaSets[] = "/apis/apps/v1/replicasets";
inline constexpr char kDeployments[] = "/apis/apps/v1/deployments";
inline constexpr char kStatefulSets[] = "/apis/apps/v1/statefulsets";
inline constexpr char kDaemonSets[] = "/apis/apps/v1/daemonsets";
inline constexpr char kRevisions[] = "/apis/apps/v1/controllerrevisions";
inline constexpr char kClaims[] = "/api/v1/persistentvolumeclaims";
inline constexpr char kJobs[] = "/apis/batch/v1/jobs";
inline constexpr char kCronJobs[] = "/apis/batch/v1/cronjobs";
inline constexpr char kEndpoints[] = "/api/v1/endpoints";
inline constexpr char kSlices[] = "/apis/discovery.k8s.io/v1/endpointslices";

class ControllerTest : public testing::Test {
 protected:
  ControllerTest() {
    api_.static_answers["/apis"] = Yaml("{groups: []}");
    api_.static_answers["/api/v1"] = Yaml(R"(
groupVersion: v1
resources:
- {name: pods, kind: Pod, namespaced: true, verbs: [list, watch, delete]}
- {name: configmaps, kind: ConfigMap, namespaced: true, verbs: [list, watch, delete]}
- {name: events, kind: Event, namespaced: true, verbs: [list, watch, delete]}
- {name: nodes, kind: Node, namespaced: false, verbs: [list, watch, delete]}
)");
  }

  // Those before the last one.
  void Add(std::unique_ptr<client::Controller> controller) { runtime_.Add(std::move(controller)); }
  void Start(std::unique_ptr<client::Controller> controller) {
    Add(std::move(controller));
    runtime_.Start();
    discovery_.Start();
    informers_.Start();
    Settle();
  }

  void Settle() { loop_.RunFor(seconds(3)); }
  void Put(const char* collection, std::string_view yaml) { api_.Put(collection, Yaml(yaml)); }
  const json::Value& Get(const char* collection, const std::string& ns, const std::string& name) {
    static const json::Value kNone;
    const json::Value* object = api_.Find(collection, ns, name);
    return object == nullptr ? kNone : *object;
  }
  std::vector<json::Value> All(const std::string& collection) const {
    std::vector<json::Value> out;
    for (const auto& [key, object] : api_.objects) {
      if (key.starts_with(collection + "|")) out.push_back(object);
    }
    return out;
  }
  // "reason message" of every event, in no particular order.
  std::vector<std::string> Events() const {
    std::vector<std::string> out;
    for (const json::Value& event : All(kEvents))
      out.push_back(event["reason"].Str() + " " + event["message"].Str());
    return out;
  }
  // What the agent would say of a pod that came up.
  void MakeReady(const json::Value& pod) {
    api_.Put(
        kPods,
        pod.Set("status",
                json::Obj({{"phase", "Running"},
                           {"conditions", json::List({json::Obj({{"type", "Ready"},
                                                                 {"status", "True"},
                                                                 {"lastTransitionTime",
                                                                  FormatTime(loop_.Now())}})})}})));
  }
  size_t Requests(std::string_view prefix) const {
    size_t count = 0;
    for (const std::string& line : api_.requests) count += line.starts_with(prefix) ? 1 : 0;
    return count;
  }

  SimLoop loop_;
  client::FakeApi api_{loop_};
  client::InProcessTransport transport_{loop_, api_, {}};
  client::ApiClient client_{loop_, transport_, "tester"};
  client::InformerSet informers_{client_};
  client::ResourceDiscovery discovery_{client_, informers_};
  client::Runtime runtime_{client_, informers_, Rng(1)};
};

}  // namespace muster::controllers
