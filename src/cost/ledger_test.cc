#include "cost/ledger.h"

#include <gtest/gtest.h>

#include "cost/cost_test_support.h"
#include "cost/history.h"

namespace muster::cost {
namespace {

PodRow Row(const std::string& workload, const std::string& from, const std::string& to) {
  PodRow row;
  row.machine = NodeFactsOf(GpuNode()).machine;
  row.ns = "d";
  row.workload = workload;
  row.labels["cost-center"] = "ml";
  row.time = {At(from), At(to)};
  row.pods = 1;
  row.cpu_milli_seconds = 100;
  row.gpu_milli_seconds["H100"] = 7;
  return row;
}

TEST(Ledger, ReadsWhatItWrote) {
  Ledger ledger;
  ledger.pods = {Row("a", "01:00:00", "02:00:00"), Row("b", "01:00:00", "02:00:00")};
  ledger.pods[1].machine.spot = true;
  ledger.nodes = {{ledger.pods[0].machine, "n", "u", {At("00:00:00"), At("09:00:00")}}};
  ledger.gaps = {{At("03:00:00"), At("04:00:00")}};
  const json::Value spec = SpecOf(ledger);
  EXPECT_EQ(spec["machines"].size(), 2u);
  EXPECT_EQ(LedgerOf(spec), ledger);
  EXPECT_EQ(SpecOf({}), json::Obj());
}

TEST(Ledger, WhatNobodyOfUsWroteDoesNoHarm) {
  const Ledger ledger = LedgerOf(Yaml(R"(
machines: [{cpuMilli: -5, gpus: {x: -1}}]
pods:
- {machine: 9, from: '2026-01-02T01:00:00Z', to: '2026-01-02T02:00:00Z', cpuMilliSeconds: -3}
- {from: '2026-01-02T02:00:00Z', to: '2026-01-02T01:00:00Z'}
- {from: yesterday}
nodes: [x, {to: 1}]
gaps: [{from: a, to: b}])"));
  ASSERT_EQ(ledger.pods.size(), 1u);
  EXPECT_EQ(ledger.pods[0].cpu_milli_seconds, 0);
  EXPECT_TRUE(ledger.nodes.empty());
  EXPECT_TRUE(ledger.gaps.empty());
}

TEST(Compact, EqualRowsOfOneSlotBecomeOne) {
  Ledger ledger;
  ledger.pods = {Row("a", "01:10:00", "01:20:00"), Row("b", "01:10:00", "01:20:00"),
                 Row("a", "01:30:00", "01:50:00"), Row("a", "02:10:00", "02:20:00"),
                 Row("a", "00:10:00", "02:20:00"), Row("a", "00:10:00", "02:20:00")};
  const Ledger out = Compact(ledger, hours(1));
  // The two that last over hours stay by themselves.
  ASSERT_EQ(out.pods.size(), 5u);
  const auto found = std::find_if(out.pods.begin(), out.pods.end(), [](const PodRow& row) {
    return row.workload == "a" && row.pods == 2;
  });
  ASSERT_NE(found, out.pods.end());
  EXPECT_EQ(found->time, (Interval{At("01:10:00"), At("01:50:00")}));
  EXPECT_EQ(found->gpu_milli_seconds.at("H100"), 14);
  EXPECT_EQ(Compact(out, hours(24)).pods.size(), 2u);
}

TEST(Compact, TooManyRowsForgetWhoTheSmallestWere) {
  Ledger ledger;
  for (size_t i = 0; i < kMaxLedgerRows + 10; ++i) {
    ledger.pods.push_back(Row("job" + std::to_string(i), "01:10:00", "01:20:00"));
    ledger.pods.back().gpu_milli_seconds["H100"] = static_cast<int64_t>(i);
  }
  const Ledger out = Compact(ledger, hours(1));
  EXPECT_LE(out.pods.size(), kMaxLedgerRows);
  int64_t gpu = 0, pods = 0;
  bool others = false, largest = false;
  for (const PodRow& row : out.pods) {
    gpu += row.gpu_milli_seconds.at("H100");
    pods += row.pods;
    others |= row.workload == kOthers && row.labels.at("cost-center") == "ml";
    largest |= row.workload == "job" + std::to_string(kMaxLedgerRows + 9);
  }
  const int64_t count = static_cast<int64_t>(kMaxLedgerRows) + 10;
  EXPECT_EQ(gpu, count * (count - 1) / 2);
  EXPECT_EQ(pods, count);
  EXPECT_TRUE(others);
  EXPECT_TRUE(largest);
}

TEST(Compact, TooManyLabelsAndNamespacesAreForgottenToo) {
  Ledger ledger;
  for (size_t i = 0; i < kMaxLedgerRows * 2; ++i) {
    ledger.pods.push_back(Row("job", "01:10:00", "01:20:00"));
    ledger.pods.back().labels["cost-center"] = std::to_string(i);
    ledger.pods.back().ns = "ns" + std::to_string(i);
  }
  const Ledger out = Compact(ledger, hours(1));
  EXPECT_LE(out.pods.size(), kMaxLedgerRows);
  int64_t pods = 0;
  for (const PodRow& row : out.pods) pods += row.pods;
  EXPECT_EQ(pods, static_cast<int64_t>(kMaxLedgerRows) * 2);
}

TEST(Compact, BoundsNodesAndGaps) {
  Ledger ledger;
  for (size_t i = 0; i < kMaxLedgerNodes + 5; ++i) {
    const Time to = At("00:00:00") + seconds(static_cast<int>(i));
    ledger.nodes.push_back({{}, "n" + std::to_string(i), "u", {At("00:00:00"), to}});
  }
  for (size_t i = 0; i < kMaxLedgerRows + 5; ++i)
    ledger.gaps.push_back({At("00:00:00"), At("00:00:01")});
  const Ledger out = Compact(ledger, hours(1));
  ASSERT_EQ(out.nodes.size(), kMaxLedgerNodes);
  EXPECT_EQ(out.nodes[0].name, "n" + std::to_string(kMaxLedgerNodes + 4));
  EXPECT_EQ(out.gaps.size(), kMaxLedgerRows);
}

TEST(History, NamesTellWhichPartTheyAre) {
  const Time time = At("2026-11-30T14:05:00Z");
  EXPECT_EQ(HourOf(time), "20261130-14");
  EXPECT_EQ(DayOf(time), "20261130");
  using Level = LedgerName::Level;
  EXPECT_EQ(NameOf(Level::kBatch, "20261130-14", "ab"), "b-20261130-14-ab");
  const auto batch = ParseLedgerName("b-20261130-14-ab");
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(batch->level, Level::kBatch);
  EXPECT_EQ(batch->hour, "20261130-14");
  EXPECT_EQ(batch->day, "20261130");
  EXPECT_EQ(ParseLedgerName("h-20261130-14")->level, Level::kHour);
  EXPECT_EQ(ParseLedgerName("d-20261130")->level, Level::kDay);
  for (const char* name : {"", "b", "seen", "b-20261130-14", "b-20261130-1x-a", "h-2026113014",
                           "d-2026-11-30", "x-20261130-14", "h-20261130-14-a"})
    EXPECT_FALSE(ParseLedgerName(name).has_value()) << name;
}

json::Value Object(LedgerName::Level level, const std::string& time, const std::string& rest,
                   const std::string& workload) {
  Ledger ledger;
  ledger.pods = {Row(workload, "01:00:00", "01:10:00")};
  return LedgerObject(level, time, rest, ledger);
}

std::set<std::string> WorkloadsOf(const json::Array& objects) {
  std::set<std::string> out;
  const Ledger history = HistoryOf(objects);
  for (const PodRow& row : history.pods) out.insert(row.workload);
  return out;
}

// A compaction that was interrupted between the new object and the deletions counts nothing twice.
TEST(History, TheLongerPartCounts) {
  using Level = LedgerName::Level;
  const json::Value batch = Object(Level::kBatch, "20261130-14", "a", "batch");
  const json::Value other = Object(Level::kBatch, "20261130-15", "a", "other batch");
  const json::Value hour = Object(Level::kHour, "20261130-14", "", "hour");
  const json::Value day = Object(Level::kDay, "20261130", "", "day");
  EXPECT_EQ(WorkloadsOf({batch, other}), (std::set<std::string>{"batch", "other batch"}));
  EXPECT_EQ(WorkloadsOf({batch, hour, other}), (std::set<std::string>{"hour", "other batch"}));
  EXPECT_EQ(WorkloadsOf({hour, batch, day, other}), (std::set<std::string>{"day"}));
  EXPECT_EQ(batch["metadata"]["labels"][kHourLabel].AsString(), "20261130-14");
  EXPECT_EQ(hour["metadata"]["labels"][kDayLabel].AsString(), "20261130");
}

TEST(History, ANodeGoesOnWhereItsLastEntryEnds) {
  const NodeFacts facts = NodeFactsOf(GpuNode());
  Ledger history;
  history.nodes = {{{}, "n1", "other", {At("00:00:00"), At("09:00:00")}},
                   {{}, "n1", "uid-n1", {At("00:00:00"), At("03:00:00")}}};
  const std::vector<NodeRow> rows = NodeRowsOf(facts, history, At("05:00:00"));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].time, (Interval{At("03:00:00"), At("05:00:00")}));
  EXPECT_EQ(NodeRowsOf(facts, {}, At("05:00:00"))[0].time.from, At("00:00:00"));
}

}  // namespace
}  // namespace muster::cost
