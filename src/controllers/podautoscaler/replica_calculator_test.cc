#include "controllers/podautoscaler/replica_calculator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "base/strings.h"

namespace muster::controllers {
namespace {

constexpr Time kNow{hours(1'000'000)};
constexpr int64_t kNobody = -1;

// A pod by its letter:
//   R ready for long; U never ready; N ready before and not now; P pending; D on its way out;
//   F failed; H started two minutes ago and ready for half a window; W the same, ready for a whole
//   window; X started two minutes ago, not ready; O no conditions.
json::Value PodOf(char state, const std::string& name, std::string_view request) {
  Time started = kNow - hours(1), since = started + seconds(10);
  std::string_view ready = "True", phase = "Running";
  if (state == 'U') ready = "False";
  if (state == 'N') {
    ready = "False";
    since = started + minutes(20);
  }
  if (state == 'H' || state == 'W' || state == 'X') {
    started = kNow - minutes(2);
    since = kNow - seconds(state == 'H' ? 30 : 90);
    if (state == 'X') ready = "False";
  }
  if (state == 'P') phase = "Pending";
  if (state == 'F') phase = "Failed";
  json::Value metadata = json::Obj({{"name", name}});
  if (state == 'D') metadata = metadata.Set("deletionTimestamp", FormatTime(kNow));
  json::Value container = json::Obj({{"name", "main"}});
  if (request != "-") {
    container = container.SetPath({"resources", "requests"},
                                  json::Obj({{"cpu", request}, {"memory", request}}));
  }
  json::Value status = json::Obj({{"phase", phase}, {"startTime", FormatTime(started)}});
  if (state != 'O') {
    status = status.Set(
        "conditions",
        json::List({json::Obj(
            {{"type", "Ready"}, {"status", ready}, {"lastTransitionTime", FormatTime(since)}})}));
  }
  return json::Obj({{"metadata", metadata},
                    {"spec", json::Obj({{"containers", json::List({container})}})},
                    {"status", status}});
}

struct Case {
  Fleet fleet;
  Samples samples;
};

// "R300 U100 P- ?500": state and milli-units in use ("-": not measured); "?": a sample of no pod.
// Every pod asks for `request`, or for what stands after a slash: "R300/500m".
Case Make(int64_t wanted, std::string_view text, std::string_view request = "1") {
  Case made;
  made.fleet.wanted = made.fleet.counted = wanted;
  made.fleet.now = kNow;
  int number = 0;
  for (const std::string_view word : SplitNonEmpty(text, ' ')) {
    const std::string name = fmt::format("pod-{}", number++);
    const size_t slash = std::min(word.find('/'), word.size());
    const std::string_view used = word.substr(1, slash - 1);
    const std::string_view asked = slash == word.size() ? request : word.substr(slash + 1);
    if (word[0] != '?') made.fleet.pods.push_back(PodOf(word[0], name, asked));
    if (used != "-") made.samples[name] = {ParseInt(used).value_or(0), kNow, minutes(1)};
  }
  return made;
}

struct Row {
  const char* what;
  int64_t wanted;
  const char* pods;
  int64_t target;
  int64_t replicas;  // expected; kNobody: an error
  int64_t milli;
  int64_t utilization = 0;
  const char* error = "";
};

void Expect(const Row& row, const Result<Proposal>& got) {
  SCOPED_TRACE(fmt::format("{}: {}", row.what, row.pods));
  if (row.replicas == kNobody) {
    ASSERT_FALSE(got.has_value());
    EXPECT_EQ(got.error().message(), row.error);
    return;
  }
  ASSERT_TRUE(got.has_value()) << got.error().ToString();
  EXPECT_EQ(got->replicas, row.replicas);
  EXPECT_EQ(got->milli, row.milli);
  EXPECT_EQ(got->utilization, row.utilization);
}

constexpr char kNoMetrics[] = "did not receive metrics for targeted pods (pods might be unready)";
constexpr char kNoPods[] = "no pods returned by selector while calculating replica count";
constexpr char kNoMatch[] = "no metrics returned matched known pods";

// Percent of the requests, by cpu.
const Row kUtilizationRows[] = {
    {"up", 3, "R300 R500 R700", 30, 5, 500, 50},
    {"up, one was never ready", 3, "U300 R500 R700", 30, 4, 600, 60},
    {"up, one is hot from its start", 3, "H300 R500 R700", 30, 4, 600, 60},
    {"up, one has been measured for a window", 3, "W300 R500 R700", 30, 5, 500, 50},
    {"up, one started and is not ready", 3, "X300 R500 R700", 30, 4, 600, 60},
    {"up, one is pending", 3, "P- R500 R700", 30, 4, 600, 60},
    {"up, one is pending and yet measured", 3, "P300 R500 R700", 30, 4, 600, 60},
    {"up, one was ready before", 3, "N300 R500 R700", 30, 5, 500, 50},
    {"up, one says nothing of its state", 3, "O300 R500 R700", 30, 4, 600, 60},
    {"unready ones would turn it around", 3, "R400 U500 H700", 30, 3, 400, 40},
    {"hot ones would turn it around", 3, "R400 H500 H700", 30, 3, 400, 40},
    {"up, failed ones do not count", 2, "R500 R700 F- F-", 30, 4, 600, 60},
    {"up, measured failed ones do not count", 2, "R500 R700 F900 F900", 30, 4, 600, 60},
    {"up, those that go do not count", 2, "R500 R700 D900 D-", 30, 4, 600, 60},
    {"up by requests of different size", 2, "R900/1500m R600/500m", 50, 3, 750, 75},
    {"down", 5, "R100 R300 R500 R250 R250", 50, 3, 280, 28},
    {"down, unready ones do not count", 5, "R100 R300 R500 U250 U250", 50, 2, 300, 30},
    {"down, hot ones do not count", 5, "R100 R300 R500 H250 H250", 50, 2, 300, 30},
    {"down, pending ones do not count", 5, "R100 P- P- P- P-", 50, 1, 100, 10},
    {"down, failed ones do not count", 5, "R100 R300 R500 R250 R250 F- F-", 50, 3, 280, 28},
    {"down, those that go do not count", 5, "R100 R300 R500 R250 R250 D- D-", 50, 3, 280, 28},
    {"down to nothing", 3, "R0 R0 R0", 50, 0, 0, 0},
    {"near enough", 3, "R1010/900m R1030 R1020/1100m", 100, 3, 1020, 102},
    {"a tenth above is near enough", 3, "R1100 R1100 R1100", 100, 3, 1100, 110},
    {"more than that is not", 3, "R1110 R1110 R1110", 100, 4, 1110, 111},
    {"a tenth below is near enough", 10, "R900 R900", 100, 10, 900, 90},
    {"less than that is not", 2, "R890 R890", 100, 2, 890, 89},
    {"less than that is not, with many", 8, "R890 R890 R890 R890 R890 R890 R890 R890", 100, 8, 890,
     89},
    {"samples of strangers are left out", 4, "R4000 R9500 R3000 R7000 ?3200 ?2000", 100, 24, 5875,
     587},
    {"missing, down: as if they used it all", 4, "R400 R95 R- R-", 100, 3, 247, 24},
    {"missing, at the target", 2, "R1000 R-", 100, 2, 1000, 100},
    {"missing, up: as if they used nothing", 2, "R1900 R-", 100, 2, 1900, 190},
    {"missing, down: too little for a change", 2, "R600 R-", 100, 2, 600, 60},
    {"missing and unready: no change", 3, "U100 R450 R-", 50, 3, 450, 45},
    {"missing and hot: no change", 3, "H100 R450 R-", 50, 3, 450, 45},
    {"missing and unready: up", 3, "U100 R2000 R-", 50, 4, 2000, 200},
    {"missing and hot: up", 3, "H100 R2000 R-", 50, 4, 2000, 200},
    {"missing and unready: down", 4, "U100 R100 R100 R-", 50, 3, 100, 10},
    {"missing and hot: down", 4, "H100 R100 R100 R-", 50, 3, 100, 10},
    {"missing, a target above all: as if at the target", 4, "R1000 R1000 R- R-", 300, 3, 1000, 100},
    {"more pods than wanted, in a roll-out: not up when it goes down", 2, "R100 R100 R-", 50, 2,
     100, 10},
    {"fewer pods than wanted: not down when it goes up", 8, "R900 R900 R-", 50, 8, 900, 90},
    {"none of them measured", 2, "R- R-", 50, kNobody, 0, 0, kNoMetrics},
    {"only pending ones", 2, "P100 P100", 50, kNobody, 0, 0, kNoMetrics},
    {"only hot ones", 2, "H100 H100", 50, kNobody, 0, 0, kNoMetrics},
    {"only strangers measured", 1, "R- ?100", 50, kNobody, 0, 0, kNoMatch},
    {"nobody", 1, "", 50, kNobody, 0, 0, kNoPods},
    {"nothing requested", 1, "R200/-", 50, kNobody, 0, 0,
     "missing request for cpu in container main of Pod pod-0"},
    {"one requests nothing", 2, "R200 R200/-", 50, kNobody, 0, 0,
     "missing request for cpu in container main of Pod pod-1"},
    {"zero requested", 1, "R200/0", 50, kNobody, 0, 0, kNoMatch},
    {"astronomic", 1, "R9000000000000000000 R9000000000000000000", 1, 2147483647,
     9000000000000000000, 2147483647},
};

TEST(ReplicaCalculator, ByUtilizationOfCpu) {
  for (const Row& row : kUtilizationRows) {
    Case made = Make(row.wanted, row.pods);
    Expect(row, ReplicasForUtilization(made.fleet, made.samples, "cpu", "", row.target));
  }
}

// An average, of what is no resource: readiness does not matter.
const Row kAverageRows[] = {
    {"up", 3, "R20000 R10000 R30000", 15000, 4, 20000},
    {"up, unready and hot ones count", 3, "R50000 U10000 H30000", 15000, 6, 30000},
    {"up, and not less for the unready", 3, "H50000 U15000 R30000", 15000, 7, 31666},
    {"up, a pending one uses nothing", 3, "R50000 P- R30000", 15000, 6, 40000},
    {"down", 5, "R12000 R12000 R12000 R12000 R12000", 20000, 3, 12000},
    {"down to nothing", 5, "R0 R0", 20000, 0, 0},
    {"near enough", 3, "R20000 R21000 R21000", 20000, 3, 20666},
    {"missing, down: as if at the target", 4, "R1000 R1000 R- R-", 4000, 3, 1000},
    {"missing, up: as if they used nothing", 2, "R9000 R-", 3000, 3, 9000},
    {"missing, up: turned around", 3, "R4000 R- R-", 3000, 3, 4000},
    {"missing, in a roll-out", 2, "R10000 R10000 R-", 17000, 2, 10000},
    {"failed ones do not count", 2, "R9000 R9000 F1 F-", 3000, 6, 9000},
    {"those that go do not count", 2, "R9000 R9000 D1 D-", 3000, 6, 9000},
    {"below zero", 2, "R-5000 R-5000", 1000, -10, -5000},
    {"none of them measured", 2, "R- R-", 50, kNobody, 0, 0, kNoMetrics},
    {"nobody", 1, "?100", 50, kNobody, 0, 0, kNoPods},
};

TEST(ReplicaCalculator, ByAverage) {
  for (const Row& row : kAverageRows) {
    Case made = Make(row.wanted, row.pods);
    Expect(row, ReplicasForAverage(made.fleet, made.samples, "", row.target));
  }
}

// An average of cpu: without requests, with readiness.
const Row kRawCpuRows[] = {
    {"up", 3, "R300/- R500/- R700/-", 300, 5, 500},
    {"up, one was never ready", 3, "U300/- R500/- R700/-", 300, 4, 600},
    {"down, hot ones do not count", 5, "R100/- R300/- R500/- H250/- H250/-", 500, 2, 300},
    {"unready ones would turn it around", 3, "R400 U500 H700", 300, 3, 400},
};

TEST(ReplicaCalculator, ByAverageOfCpu) {
  for (const Row& row : kRawCpuRows) {
    Case made = Make(row.wanted, row.pods);
    Expect(row, ReplicasForAverage(made.fleet, made.samples, "cpu", row.target));
  }
}

// One number; `milli` is what was measured.
const Row kValueRows[] = {
    {"up", 3, "R- R- R-", 15000, 4, 20000},
    {"up, only ready ones count", 3, "R- U- U-", 10000, 5, 50000},
    {"up, a failed one does not count", 2, "R- F-", 4400, 2, 8600},
    {"down", 5, "R- R- R- R- R-", 20000, 3, 12000},
    {"down to nothing", 5, "R- R- R- R- R-", 20000, 0, 0},
    {"near enough", 3, "R- R- R-", 20000, 3, 20666},
    {"near enough below", 3, "R- R- R-", 8888, 3, 8600},
    {"up from nothing", 0, "", 4000, 3, 8600},
    {"nothing stays nothing", 0, "", 4000, 0, 0},
    {"nobody is ready", 2, "U- U-", 1000, 0, 5000},
    {"nobody", 2, "", 1000, kNobody, 5000, 0,
     "unable to calculate ready pods: no pods returned by selector while calculating replica "
     "count"},
};

TEST(ReplicaCalculator, ByValue) {
  for (const Row& row : kValueRows)
    Expect(row, ReplicasForValue(Make(row.wanted, row.pods).fleet, row.milli, row.target));
}

// A number that is divided: pods, what was measured, the target of each, the replicas, the share.
struct ShareRow {
  const char* what;
  int64_t counted, measured, target, replicas, share;
};
const ShareRow kShareRows[] = {
    {"up", 3, 40000, 10000, 4, 13334},
    {"up a little", 3, 8600, 2150, 4, 2867},
    {"down", 5, 6000, 2000, 3, 1200},
    {"down by one", 5, 8600, 2867, 3, 1720},
    {"near enough", 4, 20166, 5000, 4, 5042},
    {"down to nothing", 5, 0, 2000, 0, 0},
    {"up from nothing", 0, 5000, 2000, 3, 5000},
    {"nothing stays", 0, 0, 2000, 0, 0},
};

TEST(ReplicaCalculator, ByShare) {
  for (const ShareRow& row : kShareRows) {
    SCOPED_TRACE(row.what);
    const Proposal got = ReplicasForShare(Make(row.counted, "").fleet, row.measured, row.target);
    EXPECT_EQ(got.replicas, row.replicas);
    EXPECT_EQ(got.milli, row.share);
  }
}

TEST(ReplicaCalculator, TheToleranceOfEachDirection) {
  Case made = Make(4, "R1300 R1300 R1300 R1300");
  made.fleet.tolerance = {.down = 0.5, .up = 0.3};
  EXPECT_EQ(ReplicasForUtilization(made.fleet, made.samples, "cpu", "", 100)->replicas, 4);
  EXPECT_EQ(ReplicasForUtilization(made.fleet, made.samples, "cpu", "", 260)->replicas, 4);
  EXPECT_EQ(ReplicasForUtilization(made.fleet, made.samples, "cpu", "", 99)->replicas, 6);
  EXPECT_EQ(ReplicasForUtilization(made.fleet, made.samples, "cpu", "", 261)->replicas, 2);
}

TEST(ReplicaCalculator, CountsContainersThatLastAndTheOneThatIsNamed) {
  Case made = Make(1, "R900");
  json::Value spec = made.fleet.pods[0]["spec"];
  const json::Value one = json::Obj({{"requests", json::Obj({{"cpu", "1"}})}});
  spec = spec.Set(
      "initContainers",
      json::List(
          {json::Obj({{"name", "first"}}),
           json::Obj({{"name", "sidecar"}, {"restartPolicy", "Always"}, {"resources", one}})}));
  made.fleet.pods[0] = made.fleet.pods[0].Set("spec", spec);
  EXPECT_EQ(ReplicasForUtilization(made.fleet, made.samples, "cpu", "", 50)->utilization, 45);
  EXPECT_EQ(ReplicasForUtilization(made.fleet, made.samples, "cpu", "main", 50)->utilization, 90);
  made.fleet.pods[0] = made.fleet.pods[0].SetPath({"spec", "resources", "requests", "cpu"}, "3");
  EXPECT_EQ(ReplicasForUtilization(made.fleet, made.samples, "cpu", "", 50)->utilization, 30);
}

// Whatever the pods do, more use does not ask for fewer replicas where it asks for a change.
TEST(ReplicaCalculator, MoreUseNeverAsksForLess) {
  Rng rng(7);
  for (int round = 0; round < 2000; ++round) {
    std::string pods;
    const int count = static_cast<int>(rng.Between(1, 12));
    for (int i = 0; i < count; ++i)
      pods += fmt::format("{}{} ", "RRRRUNPHWXO"[rng.Below(11)], rng.Between(0, 3000));
    Case made = Make(count, pods);
    const int64_t target = rng.Between(1, 150);
    const auto before = ReplicasForUtilization(made.fleet, made.samples, "cpu", "", target);
    for (auto& [name, sample] : made.samples) sample.milli += rng.Between(0, 2000);
    const auto after = ReplicasForUtilization(made.fleet, made.samples, "cpu", "", target);
    ASSERT_EQ(before.has_value(), after.has_value()) << pods;
    if (!before) continue;
    EXPECT_GE(after->utilization, before->utilization) << pods;
    if (before->replicas > count || after->replicas < count) {
      EXPECT_GE(after->replicas, before->replicas) << pods << " target " << target;
    }
    EXPECT_GE(before->replicas, 0);
  }
}

}  // namespace
}  // namespace muster::controllers
