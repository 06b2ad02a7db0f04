#include "agent/node/idle_gpu_events.h"

#include <gtest/gtest.h>

#include <map>

#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "json/parse.h"
#include "loop/sim_loop.h"

namespace muster::agent {
namespace {

class IdleGpuEventsTest : public testing::Test {
 protected:
  IdleGpuEventsTest() {
    inventory_.gpus.resize(1);
    inventory_.gpus[0].uuid = "GPU-a";
    inventory_.gpus[0].model = "NVIDIA H200";
  }
  void Look(Duration time, int64_t percent) {
    inventory_.gpus[0].sample.utilization_percent = percent;
    for (const Time end = loop_.Now() + time; loop_.Now() < end; loop_.RunFor(seconds(5))) {
      health_.Observe(inventory_, true);
      idle_.Observe(health_, loop_.Now());
    }
  }
  // "Warning GPUIdle of Pod p: message".
  std::vector<std::string> Events() const {
    std::vector<std::string> out;
    for (const auto& [key, event] : api_.objects) {
      if (!key.starts_with("/api/v1/events|")) continue;
      const json::Value& object = event["involvedObject"];
      out.push_back(fmt::format("{} {} of {} {}: {}", event["type"].AsString(),
                                event["reason"].AsString(), object["kind"].AsString(),
                                object["name"].AsString(), event["message"].AsString()));
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  SimLoop loop_;
  client::FakeApi api_{loop_};
  client::InProcessTransport transport_{loop_, api_, {}};
  client::ApiClient client_{loop_, transport_, "tester"};
  client::EventRecorder events_{client_, "kubelet", "n"};
  std::vector<std::string> holders_{"u"};
  json::Value pod_ = *json::Parse(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"d","uid":"u",
          "ownerReferences":[{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","name":"digits",
                              "uid":"j","controller":true}]}})");
  gpu::Inventory inventory_;
  gpu::GpuHealth health_{1};
  IdleGpuEvents idle_{events_,
                      "n",
                      minutes(30),
                      {.holders_of = [this](const std::string&) { return holders_; },
                       .pod_of = [this](const std::string& uid) -> const json::Value* {
                         return uid == "u" ? &pod_ : nullptr;
                       }}};
};

TEST_F(IdleGpuEventsTest, ThePodAndItsJobAreToldAndToldAgainWhenItWorks) {
  Look(minutes(29), 0);
  EXPECT_TRUE(Events().empty());
  Look(minutes(2), 3);
  const std::string idle =
      "GPU 0 (GPU-a, NVIDIA H200) of node n has done nothing for 30m (at most 5 % busy); pod d/p "
      "of pytorchjob digits holds it, so nobody else can use it: delete the pod if it is needed no "
      "more (kubectl logs says what it waits for), or let it share a GPU (muster.dev/gpu-milli)";
  EXPECT_EQ(Events(), (std::vector<std::string>{"Warning GPUIdle of Pod p: " + idle,
                                                "Warning GPUIdle of PyTorchJob digits: " + idle}));
  api_.objects.clear();
  Look(minutes(1), 80);
  const std::string busy =
      "GPU 0 (GPU-a, NVIDIA H200) of node n works again after 31m; pod d/p of pytorchjob digits "
      "holds it";
  EXPECT_EQ(Events(), (std::vector<std::string>{"Normal GPUBusy of Pod p: " + busy,
                                                "Normal GPUBusy of PyTorchJob digits: " + busy}));
}

TEST_F(IdleGpuEventsTest, APodOfNobodyAndOneThatIsGone) {
  pod_ = pod_.RemovePath({"metadata", "ownerReferences"});
  Look(minutes(31), 0);
  ASSERT_EQ(Events().size(), 1u);
  EXPECT_NE(Events()[0].find("pod d/p holds it"), std::string::npos) << Events()[0];
  holders_ = {"gone"};
  Look(minutes(31), 0);
  EXPECT_EQ(Events().size(), 1u);
}

}  // namespace
}  // namespace muster::agent
