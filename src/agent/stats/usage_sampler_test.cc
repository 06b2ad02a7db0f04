#include "agent/stats/usage_sampler.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "agent/runtime/files.h"
#include "loop/sim_loop.h"

namespace muster::agent {
namespace {

TEST(ReadNodeUsage, AddsWhatWasNotIdle) {
  const UsageReading reading =
      ReadNodeUsage("cpu  100 10 50 9000 500 1 2 3 77 0\ncpu0 1 1 1 1\n",
                    "MemTotal:       1000 kB\nMemFree:        100 kB\nMemAvailable:    400 kB\n",
                    Time(seconds(5)));
  EXPECT_EQ(reading.cpu_ns, (100 + 10 + 50 + 1 + 2 + 3) * 10'000'000LL);
  EXPECT_EQ(reading.memory_bytes, 600 * 1024);
  EXPECT_EQ(ReadNodeUsage("", "", {}).cpu_ns, 0);
  EXPECT_EQ(ReadNodeUsage("intr 5\n", "MemTotal: x kB", {}).memory_bytes, 0);
}

// A container whose counters are plain files.
class UsageSamplerTest : public testing::Test {
 protected:
  UsageSamplerTest() {
    char path[] = "/tmp/agent-usage-XXXXXX";
    root_ = mkdtemp(path);
    EXPECT_TRUE(MakeDirs(Dir()).ok());
    Set(0, 0);
    pods_ = {{"default", "p", "u1", {{"main", FormatNanoTime(loop_.Now())}}}};
    sampler_ = std::make_unique<UsageSampler>(
        loop_, pool_, Cgroups::Detect("41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n", root_), "n1",
        [this] { return pods_; });
  }
  ~UsageSamplerTest() override {
    sampler_.reset();
    EXPECT_TRUE(RemoveTree(root_).ok());
  }
  std::string Dir() const { return root_ + "/cg/muster/podu1/main"; }
  void Set(int64_t cpu_ms, int64_t bytes) {
    ASSERT_TRUE(WriteFile(Dir() + "/cpu.stat", fmt::format("usage_usec {}\n", cpu_ms * 1000)).ok());
    ASSERT_TRUE(WriteFile(Dir() + "/memory.current", std::to_string(bytes)).ok());
  }
  json::Value Container() {
    json::Value summary;
    sampler_->Summary([&](json::Value answer) { summary = std::move(answer); });
    loop_.RunReady();
    EXPECT_EQ(summary["node"]["nodeName"].AsString(), "n1");
    EXPECT_EQ(summary["pods"].At(0)["podRef"]["name"].AsString(), "p");
    return summary["pods"].At(0)["containers"].At(0);
  }

  SimLoop loop_;
  SimPool pool_;
  std::string root_;
  std::vector<MeasuredPod> pods_;
  std::unique_ptr<UsageSampler> sampler_;
};

TEST_F(UsageSamplerTest, AveragesBetweenLooksAndAtFirstSinceTheStart) {
  sampler_->Start();
  loop_.RunReady();
  EXPECT_TRUE(Container().IsNull()) << "nothing can be said of a container that just began";
  loop_.RunFor(seconds(10));
  Set(5000, 4096);
  EXPECT_EQ(Container()["cpu"]["usageNanoCores"].AsInt(), 500'000'000);
  EXPECT_EQ(Container()["memory"]["workingSetBytes"].AsInt(), 4096);
  EXPECT_EQ(Container()["cpu"]["windowSeconds"].AsInt(), 10);
  // An answer of less than kUsageAge ago is given again.
  Set(6000, 8192);
  loop_.RunFor(seconds(4));
  EXPECT_EQ(Container()["memory"]["workingSetBytes"].AsInt(), 4096);
  loop_.RunFor(seconds(1));  // the periodic look
  EXPECT_EQ(Container()["cpu"]["usageNanoCores"].AsInt(), 200'000'000);
  EXPECT_EQ(Container()["memory"]["workingSetBytes"].AsInt(), 8192);
}

TEST_F(UsageSamplerTest, ARestartedContainerCountsFromItsStart) {
  sampler_->Start();
  loop_.RunFor(seconds(10));
  Set(9000, 1);
  Container();
  loop_.RunFor(seconds(10));
  pods_[0].containers[0].started_at = FormatNanoTime(loop_.Now() - seconds(2));
  Set(1000, 1);
  EXPECT_EQ(Container()["cpu"]["usageNanoCores"].AsInt(), 500'000'000);
}

TEST_F(UsageSamplerTest, APodThatIsGoneIsForgotten) {
  sampler_->Start();
  loop_.RunFor(seconds(20));
  pods_.clear();
  loop_.RunFor(seconds(20));
  json::Value summary;
  sampler_->Summary([&](json::Value answer) { summary = std::move(answer); });
  loop_.RunReady();
  EXPECT_TRUE(summary["pods"].empty());
}

}  // namespace
}  // namespace muster::agent
