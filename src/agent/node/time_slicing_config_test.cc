#include "agent/node/time_slicing_config.h"

#include <gtest/gtest.h>

#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "loop/sim_loop.h"

namespace muster::agent {
namespace {

constexpr char kConfigMaps[] = "/api/v1/configmaps";
constexpr char kEvents[] = "/api/v1/events";

// The file that asks for so many replicas.
std::string Replicas(int count) {
  return fmt::format(
      "{{version: v1, sharing: {{timeSlicing: {{resources: [{{name: nvidia.com/gpu, replicas: "
      "{}}}]}}}}}}",
      count);
}

class TimeSlicingConfigTest : public testing::Test {
 protected:
  void SetUp() override {
    config_.Watch();
    config_.Watch();  // as whenever the node's GPUs are looked at
    informers_.Start();
    loop_.RunReady();
  }
  void Put(std::string_view ns, const std::string& file, const std::string& label = "") {
    api_.Put(kConfigMaps,
             json::Obj({{"apiVersion", "v1"},
                        {"kind", "ConfigMap"},
                        {"metadata", json::Obj({{"name", kTimeSlicingConfigMap},
                                                {"namespace", ns},
                                                {"labels", json::Obj({{"label", label}})}})},
                        {"data", json::Obj({{std::string(kTimeSlicingFile), file}})}}));
    loop_.RunReady();
  }
  // Of the ConfigMap and of the node.
  std::vector<std::string> Refusals() const {
    std::vector<std::string> messages;
    for (const auto& [key, object] : api_.objects) {
      if (object["reason"].AsString() != "TimeSlicingRefused") continue;
      messages.push_back(object["involvedObject"]["kind"].Str() + ": " + object["message"].Str());
    }
    std::ranges::sort(messages);
    return messages;
  }

  SimLoop loop_;
  client::FakeApi api_{loop_};
  client::InProcessTransport transport_{loop_, api_, {}};
  client::ApiClient client_{loop_, transport_, "tester"};
  client::InformerSet informers_{client_};
  client::EventRecorder events_{client_, "kubelet", "n1"};
  std::vector<int64_t> taken_;
  Status answer_ = Status::Ok();
  TimeSlicingConfig config_{
      informers_, events_,
      json::Obj(
          {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", json::Obj({{"name", "n1"}})}}),
      [this](const gpu::TimeSlicing& slicing) {
        taken_.push_back(slicing.replicas);
        return answer_;
      }};
};

TEST_F(TimeSlicingConfigTest, TakesWhatTheFileSaysAndNothingOnceItIsGone) {
  Put(kTimeSlicingNamespace, Replicas(4));
  Put(kTimeSlicingNamespace, Replicas(2));
  api_.Remove(kConfigMaps, std::string(kTimeSlicingNamespace), std::string(kTimeSlicingConfigMap));
  loop_.RunReady();
  EXPECT_EQ(taken_, (std::vector<int64_t>{4, 2, 1}));
  EXPECT_EQ(api_.Count(kEvents), 0u);
}

TEST_F(TimeSlicingConfigTest, IsDeafToOtherNamespacesAndToWhatIsNotTheFile) {
  Put("default", Replicas(8));
  Put(kTimeSlicingNamespace, Replicas(4));
  Put(kTimeSlicingNamespace, Replicas(4), "changed");
  EXPECT_EQ(taken_, (std::vector<int64_t>{4}));
}

TEST_F(TimeSlicingConfigTest, TellsTheConfigMapAndTheNodeWhatCannotBeRead) {
  Put(kTimeSlicingNamespace, Replicas(4));
  Put(kTimeSlicingNamespace, Replicas(0));
  EXPECT_EQ(taken_, (std::vector<int64_t>{4}));
  const std::vector<std::string> told = Refusals();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_TRUE(told[0].starts_with(
      "ConfigMap: ConfigMap kube-system/nvidia-device-plugin-config, config.yaml: "))
      << told[0];
  EXPECT_TRUE(told[0].ends_with("; what held before goes on")) << told[0];
  EXPECT_TRUE(told[1].starts_with("Node: ConfigMap kube-system/")) << told[1];
}

TEST_F(TimeSlicingConfigTest, TellsWhatTheNodeCannotDo) {
  answer_ = Error(Reason::kInvalid, "its GPUs are simulated");
  Put(kTimeSlicingNamespace, Replicas(4));
  const std::vector<std::string> told = Refusals();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_TRUE(told[1].find("its GPUs are simulated; what held before goes on") != std::string::npos)
      << told[1];
}

}  // namespace
}  // namespace muster::agent
