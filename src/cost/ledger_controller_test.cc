#include "cost/ledger_controller.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "cost/cost_test_support.h"
#include "cost/report.h"
#include "loop/sim_loop.h"

namespace muster::cost {
namespace {

constexpr char kPods[] = "/api/v1/pods";
constexpr char kNodes[] = "/api/v1/nodes";
constexpr char kNamespaces[] = "/api/v1/namespaces";
constexpr char kLedgerPath[] = "/apis/cost.muster.dev/v1alpha1/costledgers";

// What dies and starts again with the process.
struct Process {
  explicit Process(SimLoop& loop, client::FakeApi& api)
      : transport(loop, api, {}), client(loop, transport, "tester") {
    runtime.Add(std::make_unique<LedgerController>());
    runtime.Start();
    informers.Start();
  }
  client::InProcessTransport transport;
  client::ApiClient client;
  client::InformerSet informers{client};
  client::Runtime runtime{client, informers, Rng(1)};
};

class LedgerControllerTest : public testing::Test {
 protected:
  LedgerControllerTest() {
    api_.Put(kNodes, GpuNode());
    api_.Put(kNamespaces, Yaml("{metadata: {name: d, annotations: {team: red}}}"));
    StartProcess();
  }
  void StartProcess() {
    process_ = std::make_unique<Process>(loop_, api_);
    loop_.RunFor(seconds(1));
  }
  void Kill() { process_.reset(); }
  void PutPod(const std::string& name, const std::string& node = "n1") {
    api_.Put(kPods, Pod(name, "nvidia.com/gpu: '1'", ", annotations: {cost-center: ml}", node));
    loop_.RunFor(seconds(1));
  }
  void Remove(const std::string& name) { api_.Remove(kPods, "d", name); }
  json::Array Objects() const {
    json::Array out;
    for (const auto& [key, object] : api_.objects)
      if (key.starts_with(std::string(kLedgerPath) + "|")) out.push_back(object);
    return out;
  }
  std::set<std::string> Names() const {
    std::set<std::string> out;
    for (const json::Value& object : Objects()) out.insert(object["metadata"]["name"].Str());
    return out;
  }
  size_t Count(std::string_view prefix) const {
    size_t count = 0;
    for (const std::string& name : Names()) count += name.starts_with(prefix) ? 1 : 0;
    return count;
  }
  size_t Writes() const {
    size_t count = 0;
    for (const std::string& line : api_.requests) count += line.starts_with("GET") ? 0 : 1;
    return count;
  }
  Ledger History() const { return HistoryOf(Objects()); }
  int64_t PodsCounted() const {
    const Ledger history = History();
    int64_t count = 0;
    for (const PodRow& row : history.pods) count += row.pods;
    return count;
  }

  SimLoop loop_{At("02:30:00")};
  client::FakeApi api_{loop_};
  std::unique_ptr<Process> process_;
};

TEST_F(LedgerControllerTest, APodThatGoesIsWrittenDown) {
  PutPod("a");
  loop_.RunFor(hours(1));
  EXPECT_TRUE(History().pods.empty());  // it is there: no entry
  Remove("a");
  loop_.RunFor(kBatchDelay + seconds(1));
  const Ledger history = History();
  ASSERT_EQ(history.pods.size(), 1u);
  const PodRow& row = history.pods[0];
  EXPECT_EQ(row.workload, "pod/a");
  EXPECT_EQ(row.labels,
            (std::map<std::string, std::string>{{"cost-center", "ml"}, {"team", "red"}}));
  EXPECT_EQ(row.time.from, At("01:00:00"));
  EXPECT_EQ(row.time.to, At("03:30:02"));
  EXPECT_EQ(row.gpu_milli_seconds.begin()->second, (150 * 60 + 2) * 1000);
  EXPECT_EQ(process_->runtime.CountWritesOfExtraPass(), 0u);
}

TEST_F(LedgerControllerTest, WhatGoesTogetherIsOneObject) {
  for (int i = 0; i < 50; ++i) PutPod("p" + std::to_string(i));
  for (int i = 0; i < 50; ++i) Remove("p" + std::to_string(i));
  loop_.RunFor(kBatchDelay + seconds(1));
  EXPECT_EQ(Count("b-"), 1u);
  EXPECT_EQ(History().pods.size(), 50u);
}

TEST_F(LedgerControllerTest, WhatNeverRanIsNot) {
  api_.Put(kPods, Yaml("{metadata: {name: w, namespace: d, uid: u}, spec: {nodeName: n1}}"));
  api_.Put(kPods, Yaml("{metadata: {name: x, namespace: d, uid: v}, "
                       "status: {startTime: '2026-01-02T01:00:00Z'}}"));
  loop_.RunFor(seconds(1));
  Remove("w");
  Remove("x");
  loop_.RunFor(seconds(5));
  EXPECT_EQ(Count("b-"), 0u);
}

TEST_F(LedgerControllerTest, OfAPodWithTheNameOfOneThatWentBothCount) {
  PutPod("a");
  Remove("a");
  api_.Put(kPods, Pod("a").SetPath({"metadata", "uid"}, "another"));
  loop_.RunFor(seconds(5));
  EXPECT_EQ(History().pods.size(), 1u);
  Remove("a");
  loop_.RunFor(seconds(5));
  EXPECT_EQ(History().pods.size(), 2u);
}

// opencost #3900 and others: history must not need the process that saw it.
TEST_F(LedgerControllerTest, HistoryOutlivesTheProcess) {
  PutPod("a");
  Remove("a");
  loop_.RunFor(seconds(5));
  PutPod("b");
  Kill();
  StartProcess();
  Remove("b");
  loop_.RunFor(seconds(5));
  EXPECT_EQ(History().pods.size(), 2u);
}

TEST_F(LedgerControllerTest, ABatchIsThereOnceWhateverBecomesOfItsWrite) {
  PutPod("a");
  int lost = 0;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method != "POST" || request.target.find("costledgers") == std::string::npos ||
        lost >= 3)
      return true;
    ++lost;
    if (lost == 2) api_.Put(kLedgerPath, client::FakeApi::BodyOf(request));  // it happened
    client::FakeApi::SendError(*writer, 504, "Timeout", "no answer");
    return false;
  };
  Remove("a");
  loop_.RunFor(minutes(1));
  EXPECT_GE(lost, 2);
  EXPECT_EQ(Count("b-"), 1u);
  EXPECT_EQ(History().pods.size(), 1u);
}

TEST_F(LedgerControllerTest, IdleCostsOneSmallWriteInTenMinutes) {
  loop_.RunFor(minutes(1));
  const size_t before = Writes();
  loop_.RunFor(hours(10));
  EXPECT_LE(Writes() - before, 60u);
  EXPECT_EQ(Names(), std::set<std::string>{"seen"});
}

TEST_F(LedgerControllerTest, TimeInWhichNoServerRanIsAGap) {
  PutPod("a");
  Kill();
  loop_.RunFor(hours(3));
  StartProcess();
  loop_.RunFor(seconds(5));
  const Ledger history = History();
  ASSERT_EQ(history.gaps.size(), 1u);
  EXPECT_LE(history.gaps[0].from, At("02:31:00"));
  EXPECT_GE(history.gaps[0].to, At("05:30:00"));
  loop_.RunFor(hours(1));
  EXPECT_EQ(History().gaps.size(), 1u);
}

TEST_F(LedgerControllerTest, AShortRestartIsNone) {
  Kill();
  loop_.RunFor(kMaxUnseen - kSeenPeriod);
  StartProcess();
  loop_.RunFor(minutes(30));
  EXPECT_TRUE(History().gaps.empty());
}

TEST_F(LedgerControllerTest, ANodeThatGoesOrChangesIsWrittenDown) {
  api_.Put(kNodes, GpuNode().SetPath({"metadata", "annotations", "muster.dev/hourly-price"}, "9"));
  loop_.RunFor(seconds(5));
  ASSERT_EQ(History().nodes.size(), 1u);
  EXPECT_EQ(History().nodes[0].time.from, At("00:00:00"));
  EXPECT_EQ(History().nodes[0].machine.hourly_price, "");
  // What has no price changes nothing.
  api_.Put(kNodes, GpuNode()
                       .SetPath({"metadata", "annotations", "muster.dev/hourly-price"}, "9")
                       .SetPath({"metadata", "labels", "zone"}, "a"));
  loop_.RunFor(hours(1));
  EXPECT_EQ(History().nodes.size(), 1u);
  api_.Remove(kNodes, "", "n1");
  loop_.RunFor(seconds(5));
  const Ledger history = History();
  ASSERT_EQ(history.nodes.size(), 2u);
  const NodeRow& last =
      history.nodes[0].machine.hourly_price.empty() ? history.nodes[1] : history.nodes[0];
  EXPECT_EQ(last.machine.hourly_price, "9");
  EXPECT_GE(last.time.from, At("02:30:01"));
  EXPECT_GE(last.time.to, At("03:30:00"));
}

// Pods of a lost node are removed after it (pod GC).
TEST_F(LedgerControllerTest, PodsThatGoAfterTheirNodeEndWithIt) {
  PutPod("a");
  api_.Remove(kNodes, "", "n1");
  loop_.RunFor(minutes(20));
  Remove("a");
  loop_.RunFor(seconds(5));
  const Ledger history = History();
  ASSERT_EQ(history.pods.size(), 1u);
  EXPECT_LE(history.pods[0].time.to, At("02:30:10"));
  const Report report = MakeReport(history, {}, {At("00:00:00"), At("04:00:00")},
                                   [](const PodRow& row) { return row.ns; });
  EXPECT_NEAR(report.idle.Cost() + report.allocations[0].amounts.Cost(), report.total.Cost(), 1e-9);
}

TEST_F(LedgerControllerTest, HoursAndDaysArePutTogether) {
  int64_t pods = 0;
  for (int hour = 0; hour < 60; ++hour) {
    for (int i = 0; i < 3; ++i) {
      PutPod("p");
      Remove("p");
      ++pods;
      loop_.RunFor(minutes(20) - seconds(1));
    }
  }
  loop_.RunFor(hours(1));
  EXPECT_LE(Count("b-"), 3u);
  EXPECT_GE(Count("h-"), 40u);
  EXPECT_EQ(PodsCounted(), pods);
  loop_.RunFor(hours(24 * 5));
  EXPECT_EQ(Count("b-") + Count("h-"), 0u);
  EXPECT_EQ(Count("d-"), 3u);
  EXPECT_EQ(PodsCounted(), pods);
  Kill();
  loop_.RunFor(hours(24) * (kKeptDays + 1));
  StartProcess();
  loop_.RunFor(seconds(5));
  EXPECT_EQ(Count("d-"), 0u);
  EXPECT_TRUE(History().pods.empty());
}

TEST_F(LedgerControllerTest, ABusyHourHasFewObjects) {
  loop_.RunFor(minutes(30));
  for (int i = 0; i < 1000; ++i) {
    PutPod("p");
    Remove("p");
    loop_.RunFor(seconds(2));
  }
  EXPECT_LE(Count("b-"), 2 * (kBusyBatches + 60));  // of two hours
  loop_.RunFor(kBusyBatchDelay + seconds(1));
  EXPECT_EQ(PodsCounted(), 1000);
}

TEST_F(LedgerControllerTest, WhileNothingCanBeWrittenRowsArePutTogether) {
  bool refuses = true;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (!refuses || request.method != "POST") return true;
    client::FakeApi::SendError(*writer, 503, "ServiceUnavailable", "the disk is full");
    return false;
  };
  const int count = static_cast<int>(kMaxPendingRows) + 500;
  for (int i = 0; i < count; ++i) {
    const std::string name = "p" + std::to_string(i);
    api_.Put(kPods, Pod(name));
    if (i % 100 == 0) loop_.RunFor(milliseconds(10));
  }
  loop_.RunFor(seconds(1));
  for (int i = 0; i < count; ++i) Remove("p" + std::to_string(i));
  loop_.RunFor(minutes(1));
  refuses = false;
  loop_.RunFor(hours(1));
  EXPECT_EQ(PodsCounted(), count);
  EXPECT_LE(History().pods.size(), 2 * kMaxLedgerRows);
}

TEST_F(LedgerControllerTest, NodesThatAreGoneAreForgottenByAndBy) {
  for (size_t i = 0; i < kMaxGoneNodes + 1; ++i) {
    const std::string name = "m" + std::to_string(i);
    api_.Put(kNodes, GpuNode(name));
    loop_.RunFor(milliseconds(10));
    if (i == 0 || i == kMaxGoneNodes) PutPod("on-" + name, name);
    api_.Remove(kNodes, "", name);
    loop_.RunFor(milliseconds(10));
  }
  Remove("on-m0");
  Remove("on-m" + std::to_string(kMaxGoneNodes));
  loop_.RunFor(minutes(2));
  std::set<std::string> workloads;
  const Ledger history = History();
  for (const PodRow& row : history.pods) workloads.insert(row.workload);
  EXPECT_EQ(workloads, std::set<std::string>{"pod/on-m" + std::to_string(kMaxGoneNodes)});
}

}  // namespace
}  // namespace muster::cost
