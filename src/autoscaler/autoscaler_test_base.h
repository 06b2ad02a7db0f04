// src/autoscaler/autoscaler_test_base.h
//
// The autoscaler's parts on a FakeApi and simulated time, for this folder's tests. Evictions, which
// the fake does not know, mark the pod as going; a pod named in `held` is held by a budget. `Bind`
// is the scheduler.

#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "autoscaler/autoscaler.h"
#include "autoscaler/node_claim.h"
#include "autoscaler/node_claim_controller.h"
#include "autoscaler/node_disruption_controller.h"
#include "base/check.h"
#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "client/reconcile.h"
#include "json/parse.h"
#include "loop/sim_loop.h"
#include "schema/conditions.h"

namespace muster::autoscaler {

class AutoscalerTest : public testing::Test {
 protected:
  static constexpr char kPods[] = "/api/v1/pods";
  static constexpr char kNodes[] = "/api/v1/nodes";
  static constexpr char kEvents[] = "/api/v1/events";
  static constexpr char kPoolsPath[] = "/apis/karpenter.sh/v1/nodepools";
  static constexpr char kClaimsPath[] = "/apis/karpenter.sh/v1/nodeclaims";

  static json::Value Yaml(std::string_view text) {
    auto documents = json::ParseYaml(text);
    CHECK(documents.has_value() && documents->size() == 1);
    return (*documents)[0];
  }

  AutoscalerTest() {
    api_.before_handle = [this](const net::Request& request, const net::ResponseWriterPtr& writer) {
      if (!request.target.contains("/eviction")) return true;
      const std::string name = client::FakeApi::BodyOf(request)["metadata"]["name"].Str();
      if (held_.contains(name)) {
        client::FakeApi::SendError(*writer, 429, "TooManyRequests", "budget");
        return false;
      }
      api_.Put(kPods,
               Pod(name).SetPath({"metadata", "deletionTimestamp"}, FormatTime(loop_.Now())));
      net::Response response;
      response.status = 201;
      response.body = R"({"kind":"Status","status":"Success","code":201,"metadata":{}})";
      writer->Send(std::move(response));
      return false;
    };
  }

  void Start(Duration start_delay = seconds(10)) {
    runtime_.Add(std::make_unique<NodeClaimController>(
        ProviderOptions{cluster::BuiltInInstanceTypes(), start_delay}));
    runtime_.Add(std::make_unique<NodeDisruptionController>());
    AutoscalerConfig config;
    config.catalog = cluster::BuiltInInstanceTypes();
    config.scheduler_names = {"default-scheduler"};
    autoscaler_ =
        std::make_unique<Autoscaler>(client_, informers_, pool_, std::move(config), Rng(7));
    runtime_.Start();
    autoscaler_->Start();
    informers_.Start();
    loop_.RunFor(seconds(2));
  }

  void PutPool(std::string_view disruption = "{consolidateAfter: 60s}",
               std::string_view more = "") {
    api_.Put(kPoolsPath,
             Yaml(fmt::format(
                 "{{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {{name: gpu}}, spec: "
                 "{{template: {{spec: {{requirements: [{{key: karpenter.k8s.aws/instance-family, "
                 "operator: In, values: [g5, p4d]}}]}}}}, disruption: {}{}}}}}",
                 disruption, more)));
  }
  void PutPod(const std::string& name, int gpus = 1, std::string_view metadata = "") {
    api_.Put(kPods, Yaml(fmt::format(
                        "{{apiVersion: v1, kind: Pod, metadata: {{name: {}, namespace: d{}}}, "
                        "spec: {{schedulerName: default-scheduler, containers: [{{name: c, "
                        "resources: {{requests: {{cpu: 1, nvidia.com/gpu: {}}}}}}}]}}, "
                        "status: {{phase: Pending}}}}",
                        name, metadata, gpus)));
  }
  json::Value Pod(const std::string& name) { return Get(kPods, "d", name); }
  void Bind(const std::string& pod, const std::string& node) {
    api_.Put(kPods,
             Pod(pod).SetPath({"spec", "nodeName"}, node).SetPath({"status", "phase"}, "Running"));
  }
  void EndPod(const std::string& pod) {
    api_.Put(kPods, Pod(pod).SetPath({"status", "phase"}, "Succeeded"));
  }
  void JoinWithoutGpus(const std::string& name) {
    api_.Put(kNodes, NodeObject(ToNodePool(Get(kPoolsPath, "", "gpu")),
                                *cluster::FindBuiltInInstanceType("m5.xlarge"),
                                cluster::CapacityType::kOnDemand, name, loop_.Now()));
  }
  json::Value Get(const char* collection, const std::string& ns, const std::string& name) {
    const json::Value* object = api_.Find(collection, ns, name);
    return object == nullptr ? json::Value() : *object;
  }
  std::vector<json::Value> All(const std::string& collection) const {
    std::vector<json::Value> out;
    for (const auto& [key, object] : api_.objects) {
      if (key.starts_with(collection + "|")) out.push_back(object);
    }
    return out;
  }
  // The name of the only claim.
  std::string OnlyClaim() const {
    const std::vector<json::Value> claims = All(kClaimsPath);
    return claims.size() == 1 ? claims[0]["metadata"]["name"].Str()
                              : fmt::format("{} claims", claims.size());
  }
  json::Value Claim(const std::string& name) { return Get(kClaimsPath, "", name); }
  json::Value Node(const std::string& name) { return Get(kNodes, "", name); }
  std::string ConditionOf(const std::string& claim, std::string_view type, const char* what) {
    return schema::FindCondition(Claim(claim)["status"]["conditions"], type)[what].Str();
  }
  size_t Told(std::string_view part) const {
    size_t count = 0;
    for (const json::Value& event : All(kEvents))
      count += (event["reason"].Str() + " " + event["message"].Str()).contains(part) ? 1 : 0;
    return count;
  }

  SimLoop loop_;
  SimPool pool_;
  client::FakeApi api_{loop_};
  client::InProcessTransport transport_{loop_, api_, {}};
  client::ApiClient client_{loop_, transport_, "tester"};
  client::InformerSet informers_{client_};
  client::Runtime runtime_{client_, informers_, Rng(1)};
  std::unique_ptr<Autoscaler> autoscaler_;
  std::set<std::string> held_;
};

}  // namespace muster::autoscaler
