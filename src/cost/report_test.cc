#include "cost/report.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "cost/cost_test_support.h"
#include "cost/history.h"

namespace muster::cost {
namespace {

constexpr char kH100[] = "NVIDIA H100 80GB HBM3";

std::string Namespace(const PodRow& row) { return row.ns; }

class ReportTest : public testing::Test {
 protected:
  ReportTest() { ledger_.nodes = NodeRowsOf(facts_, {}, At("12:00:00")); }
  void Add(const json::Value& pod, const std::string& end, const std::string& ns = "d") {
    PodUse use = PodUseOf(pod, facts_, nullptr, CostKeys());
    use.ns = ns;
    AddPod(use, std::vector<NodeRow>{ledger_.nodes[0]}, At(end), ledger_);
  }
  Report Make(const std::string& from, const std::string& to) {
    return MakeReport(ledger_, prices_, {At(from), At(to)}, Namespace);
  }
  static void ExpectAddsUp(const Report& report) {
    Amounts sum = report.idle;
    for (const Allocation& each : report.allocations) sum += each.amounts;
    EXPECT_NEAR(sum.Cost(), report.total.Cost(), 1e-6);
    EXPECT_GE(report.idle.Cost(), 0);
  }

  NodeFacts facts_ = NodeFactsOf(GpuNode());
  PriceBook prices_;
  Ledger ledger_;
};

TEST_F(ReportTest, AmountTimesHoursTimesPriceAndTheRestIsIdle) {
  Add(Pod("a", "nvidia.com/gpu: '2'"), "03:00:00");
  const Report report = Make("00:00:00", "12:00:00");
  ASSERT_EQ(report.allocations.size(), 1u);
  const Amounts& a = report.allocations[0].amounts;
  EXPECT_DOUBLE_EQ(a.gpu_hours, 4);
  EXPECT_DOUBLE_EQ(a.cpu_hours, 4);
  EXPECT_DOUBLE_EQ(a.memory_gib_hours, 8);
  EXPECT_DOUBLE_EQ(a.gpu_cost, 4 * 3.99);
  EXPECT_DOUBLE_EQ(a.cpu_cost, 4 * kCpuPrice);
  EXPECT_DOUBLE_EQ(a.memory_cost, 8 * kMemoryPrice);
  EXPECT_EQ(report.allocations[0].pods, 1);
  EXPECT_NEAR(report.total.Cost(), 12 * prices_.HourlyPrice(facts_.machine), 1e-9);
  EXPECT_DOUBLE_EQ(report.idle.gpu_hours, 48 - 4);
  ExpectAddsUp(report);
}

TEST_F(ReportTest, OnlyTheWindowCounts) {
  Add(Pod("a", "nvidia.com/gpu: '1'"), "05:00:00");
  const Report report = Make("04:00:00", "06:00:00");
  EXPECT_DOUBLE_EQ(report.allocations[0].amounts.gpu_hours, 1);
  EXPECT_DOUBLE_EQ(report.total.gpu_hours, 8);
  ExpectAddsUp(report);
  EXPECT_TRUE(Make("06:00:00", "07:00:00").allocations.empty());
}

TEST_F(ReportTest, GapsCountForNobody) {
  Add(Pod("a", "nvidia.com/gpu: '1'"), "05:00:00");
  // In any order, one within another, one beyond the window.
  ledger_.gaps = {{At("04:00:00"), At("04:30:00")},
                  {At("02:00:00"), At("03:00:00")},
                  {At("04:10:00"), At("04:20:00")},
                  {At("11:30:00"), At("18:00:00")}};
  const Report report = Make("00:00:00", "12:00:00");
  EXPECT_DOUBLE_EQ(report.allocations[0].amounts.gpu_hours, 2.5);
  EXPECT_DOUBLE_EQ(report.total.gpu_hours, 4 * 10);
  EXPECT_EQ(report.not_counted, hours(2));
  ExpectAddsUp(report);
}

TEST_F(ReportTest, WhoHoldsMoreThanThereIsSharesWhatItCosts) {
  for (int i = 0; i < 3; ++i)
    Add(Pod("a", "nvidia.com/gpu: '4'"), "02:00:00", i == 0 ? "one" : "two");
  const Report report = Make("01:00:00", "02:00:00");
  EXPECT_NEAR(report.allocations[0].amounts.gpu_cost, 4 * 3.99 * 2 / 3, 1e-9);
  EXPECT_EQ(report.allocations[0].name, "two");
  EXPECT_DOUBLE_EQ(report.idle.gpu_cost, 0);
  ExpectAddsUp(report);
}

TEST_F(ReportTest, SharesOfAGpuCostTheirPart) {
  for (int i = 0; i < 3; ++i)
    Add(Pod("a", "muster.dev/gpu-milli: '300'"), "02:00:00", std::to_string(i));
  const Report report = Make("01:00:00", "02:00:00");
  for (const Allocation& each : report.allocations)
    EXPECT_NEAR(each.amounts.gpu_cost, 0.3 * 3.99, 1e-9);
  EXPECT_NEAR(report.idle.gpu_hours, 4 - 0.9, 1e-9);
  ExpectAddsUp(report);
}

// The node was another machine before: each time has its own price.
TEST_F(ReportTest, ANodeThatChangedCostsWhatItWasAtEachTime) {
  Machine small = facts_.machine;
  small.gpus[kH100] = 1;
  ledger_.nodes.insert(ledger_.nodes.begin(),
                       {small, "n1", "uid-n1", {At("00:00:00"), At("02:00:00")}});
  ledger_.nodes[1].time.from = At("02:00:00");
  AddPod(PodUseOf(Pod("a", "nvidia.com/gpu: '1'"), facts_, nullptr, CostKeys()), ledger_.nodes,
         At("03:00:00"), ledger_);
  ASSERT_EQ(ledger_.pods.size(), 2u);
  EXPECT_EQ(ledger_.pods[0].pods + ledger_.pods[1].pods, 1);
  const Report report = Make("00:00:00", "04:00:00");
  EXPECT_DOUBLE_EQ(report.total.gpu_hours, 2 * 1 + 2 * 4);
  EXPECT_DOUBLE_EQ(report.allocations[0].amounts.gpu_hours, 2);
  ExpectAddsUp(report);
}

TEST_F(ReportTest, WhatEndsBeforeItsNodeWasThereCostsNothing) {
  AddPod(PodUseOf(Pod("a"), facts_, nullptr, CostKeys()),
         std::vector<NodeRow>{{facts_.machine, "n1", "u", {At("05:00:00"), At("06:00:00")}}},
         At("03:00:00"), ledger_);
  EXPECT_TRUE(ledger_.pods.empty());
}

// Whatever is put together, split at any window, and shared in any way: it adds up.
TEST_F(ReportTest, AlwaysAddsUp) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    ledger_ = {};
    ledger_.nodes = NodeRowsOf(facts_, {}, At("20:00:00"));
    for (int i = 0; i < 20; ++i) {
      const int from = static_cast<int>(rng.Below(18 * 60));
      const int to = from + static_cast<int>(rng.Below(120)) + 1;
      PodUse use = PodUseOf(Pod("a"), facts_, nullptr, CostKeys());
      use.ns = std::to_string(rng.Below(3));
      use.cpu_milli = static_cast<int64_t>(rng.Below(3000));
      use.gpu_milli[kH100] = static_cast<int64_t>(rng.Below(2000));
      use.from = At("00:00:00") + minutes(from);
      use.to = At("00:00:00") + minutes(to);
      AddPod(use, std::vector<NodeRow>{ledger_.nodes[0]}, At("20:00:00"), ledger_);
    }
    const Time start = At("00:00:00") + minutes(static_cast<int>(rng.Below(600)));
    const Interval window{start, start + minutes(static_cast<int>(rng.Below(900)) + 1)};
    ExpectAddsUp(MakeReport(ledger_, prices_, window, Namespace));
    // All of it at once is the same before and after rows were put together.
    const Interval all{At("00:00:00"), At("20:00:00")};
    const Report before = MakeReport(ledger_, prices_, all, Namespace);
    const Report after =
        MakeReport(LedgerOf(SpecOf(Compact(ledger_, hours(1)))), prices_, all, Namespace);
    EXPECT_NEAR(before.idle.Cost(), after.idle.Cost(), 1e-6);
    EXPECT_NEAR(before.total.Cost(), after.total.Cost(), 1e-6);
  }
}

}  // namespace
}  // namespace muster::cost
