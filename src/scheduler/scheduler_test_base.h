// src/scheduler/scheduler_test_base.h
//
// SchedulerTest: the scheduler on a fake API server that also binds pods, on simulated time.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/strings.h"
#include "client/api_client.h"
#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "client/informer.h"
#include "json/parse.h"
#include "loop/sim_loop.h"
#include "scheduler/binder.h"
#include "scheduler/scheduler.h"
#include "scheduler/status_publisher.h"

namespace muster::scheduler {

inline constexpr char kPods[] = "/api/v1/pods";
inline constexpr char kNodes[] = "/api/v1/nodes";
inline constexpr char kGroups[] = "/apis/scheduling.volcano.sh/v1beta1/podgroups";
inline constexpr char kPluginsGroups[] = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups";

// Runs work at once; while `hold` is set, its results come only with Release().
class HeldPool final : public Pool {
 public:
  void Run(Task work, Loop& loop, Task done) override {
    work();
    if (!hold) return loop.Post(std::move(done));
    held_.push_back(std::move(done));
  }
  void Release() {
    hold = false;
    for (Task& done : std::exchange(held_, {})) done();
  }
  bool hold = false;

 private:
  std::vector<Task> held_;
};

// The scheduler on a FakeApi that also knows what the fake does not: pods/binding, and conditions
// that merge by type.
class SchedulerTest : public testing::Test {
 protected:
  SchedulerTest()
      : api_(loop_), transport_(loop_, api_, {}), client_(loop_, transport_, "scheduler") {
    api_.before_handle = [this](const net::Request& request, const net::ResponseWriterPtr& writer) {
      return BeforeHandle(request, writer);
    };
    StartScheduler();
  }

  void StartScheduler() {
    scheduler_ = nullptr;
    informers_ = std::make_unique<client::InformerSet>(client_);
    scheduler_ = std::make_unique<Scheduler>(client_, *informers_, pool_);
    scheduler_->Start();
    informers_->Start();
  }

  bool BeforeHandle(const net::Request& request, const net::ResponseWriterPtr& writer) {
    const std::string path = request.target.substr(0, request.target.find('?'));
    const std::vector<std::string_view> parts = SplitNonEmpty(path, '/');
    if (parts.size() == 7 && parts[6] == "binding") {
      Bind(std::string(parts[3]), std::string(parts[5]), client::FakeApi::BodyOf(request), *writer);
      return false;
    }
    if (parts.size() == 8 && parts[7] == "status" && refuse_group_status) {
      client::FakeApi::SendError(*writer, 503, "ServiceUnavailable", "away");
      return false;
    }
    if (parts.size() == 7 && parts[6] == "status" && parts[4] == "pods") ++pod_status_writes_;
    return true;
  }

  void Bind(const std::string& ns, const std::string& name, const json::Value& binding,
            net::ResponseWriter& writer) {
    ++binds_;
    if (refuse_bind && refuse_bind(name, writer)) return;
    const json::Value* pod = api_.Find(kPods, ns, name);
    if (pod == nullptr)
      return client::FakeApi::SendError(writer, 404, "NotFound", name + " not found");
    if (!(*pod)["spec"]["nodeName"].AsString().empty()) {
      ++double_binds_;
      return client::FakeApi::SendError(writer, 409, "Conflict", name + " is already assigned");
    }
    EXPECT_EQ(binding["metadata"]["uid"], (*pod)["metadata"]["uid"]);
    json::Value bound = pod->SetPath({"spec", "nodeName"}, binding["target"]["name"]);
    for (const auto& [key, value] : binding["metadata"]["annotations"].members()) {
      bound = bound.SetPath({"metadata", "annotations", key}, value);
    }
    api_.Put(kPods, bound);
    if (lose_bind_answers_-- > 0) return client::FakeApi::SendError(writer, 504, "Timeout", "lost");
    writer.Send({.status = 201,
                 .headers = {},
                 .body = R"({"kind":"Status","status":"Success"})",
                 .source = nullptr,
                 .value = {}});
  }

  void AddNode(const std::string& name, int gpus) {
    json::Array devices;
    for (int i = 0; i < gpus; ++i)
      devices.push_back(json::Obj({{"id", fmt::format("{}-g{}", name, i)}, {"index", i}}));
    const std::string text = json::Write(json::Obj({{"nvidia.com/gpu", json::Value(devices)}}));
    const json::Value amounts =
        json::Obj({{"cpu", "8"}, {"pods", "110"}, {"nvidia.com/gpu", std::to_string(gpus)}});
    api_.Put(kNodes,
             json::Obj({{"metadata",
                         json::Obj({{"name", name},
                                    {"annotations", json::Obj({{"muster.dev/devices", text}})}})},
                        {"status", json::Obj({{"allocatable", amounts}})}}));
  }

  json::Value MakePod(const std::string& name, int gpus, const std::string& gang = "") {
    json::Value pod = json::Obj(
        {{"apiVersion", "v1"},
         {"kind", "Pod"},
         {"metadata", json::Obj({{"namespace", "default"},
                                 {"name", name},
                                 {"creationTimestamp", "2026-01-01T00:00:00Z"}})},
         {"spec",
          json::Obj({{"containers",
                      json::List({json::Obj(
                          {{"name", "main"},
                           {"resources",
                            json::Obj({{"requests", json::Obj({{"nvidia.com/gpu",
                                                                std::to_string(gpus)}})}})}})})}})},
         {"status", json::Obj({{"phase", "Pending"}})}});
    if (gang.empty()) return pod;
    pod = pod.SetPath({"metadata", "annotations"},
                      json::Obj({{"scheduling.k8s.io/group-name", gang}}));
    return pod.SetPath(
        {"metadata", "ownerReferences"},
        json::List({json::Obj({{"kind", "PyTorchJob"}, {"name", gang}, {"controller", true}})}));
  }
  void AddPod(const std::string& name, int gpus) { api_.Put(kPods, MakePod(name, gpus)); }
  void AddGroup(const std::string& name, int min_member) {
    api_.Put(kGroups,
             json::Obj({{"apiVersion", "scheduling.volcano.sh/v1beta1"},
                        {"kind", "PodGroup"},
                        {"metadata", json::Obj({{"namespace", "default"}, {"name", name}})},
                        {"spec", json::Obj({{"minMember", min_member}})}}));
  }
  void AddGang(const std::string& name, int members, int gpus) {
    AddGroup(name, members);
    for (int i = 0; i < members; ++i)
      api_.Put(kPods, MakePod(fmt::format("{}-{}", name, i), gpus, name));
  }
  void SetPhase(const std::string& name, const std::string& phase) {
    api_.Put(kPods, api_.Find(kPods, "default", name)->SetPath({"status", "phase"}, phase));
  }

  void Settle() {
    loop_.RunFor(seconds(120));
    EXPECT_TRUE(scheduler_->Idle());
  }

  std::string NodeOf(const std::string& name) {
    const json::Value* pod = api_.Find(kPods, "default", name);
    return pod == nullptr ? "gone" : (*pod)["spec"]["nodeName"].Str();
  }
  int BoundOf(const std::string& gang, int members) {
    int bound = 0;
    for (int i = 0; i < members; ++i)
      bound += NodeOf(fmt::format("{}-{}", gang, i)).empty() ? 0 : 1;
    return bound;
  }
  json::Value Condition(const std::string& name) {
    for (const json::Value& condition :
         (*api_.Find(kPods, "default", name))["status"]["conditions"].items()) {
      if (condition["type"].AsString() == "PodScheduled") return condition;
    }
    return {};
  }
  json::Value GroupStatus(const std::string& name) {
    return (*api_.Find(kGroups, "default", name))["status"];
  }
  int Events(const std::string& reason, const std::string& message_part) {
    int count = 0;
    for (const auto& [key, object] : api_.objects) {
      if (!key.starts_with("/api/v1/events|") || object["reason"].AsString() != reason) continue;
      if (object["message"].AsString().find(message_part) != std::string_view::npos) ++count;
    }
    return count;
  }
  // No device is in two live pods.
  void ExpectDevicesOwnedOnce() {
    std::set<std::string> seen;
    for (const auto& [key, object] : api_.objects) {
      if (!key.starts_with(std::string(kPods) + "|") ||
          object["status"]["phase"].AsString() == "Succeeded")
        continue;
      for (const auto& [container, resources] : cluster::PodAssignedDevices(object)) {
        for (const auto& [resource, ids] : resources) {
          for (const std::string& id : ids) EXPECT_TRUE(seen.insert(id).second) << id;
        }
      }
    }
  }

  SimLoop loop_;
  HeldPool pool_;
  client::FakeApi api_;
  client::InProcessTransport transport_;
  client::ApiClient client_;
  std::unique_ptr<client::InformerSet> informers_;
  std::unique_ptr<Scheduler> scheduler_;
  // Answers the binding of this pod itself and returns true, or leaves it alone.
  std::function<bool(const std::string& pod, net::ResponseWriter& writer)> refuse_bind;
  int binds_ = 0;
  int double_binds_ = 0;
  int lose_bind_answers_ = 0;
  int pod_status_writes_ = 0;
  bool refuse_group_status = false;
};

}  // namespace muster::scheduler
