#include "cli/training_faults.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "json/parse.h"

namespace muster::cli {
namespace {

const Time kNow = *ParseTime("2026-01-02T04:00:00Z");

json::Value Yaml(std::string_view text) {
  auto documents = json::ParseYaml(text);
  CHECK(documents.has_value() && documents->size() == 1);
  return (*documents)[0];
}

// One that runs since three, and spoke last at `last_word`.
Rank RankAt(const std::string& name, const char* last_word, std::optional<double> cores = {}) {
  Rank rank;
  rank.name = name;
  rank.node = "n1";
  rank.pod = Yaml(
      "{status: {phase: Running, containerStatuses: [{name: pytorch, restartCount: 0, "
      "state: {running: {startedAt: '2026-01-02T03:00:00Z'}}}]}}");
  if (*last_word != '\0') rank.last_word = ParseTime(last_word);
  rank.cores = cores;
  return rank;
}

std::string Told(const std::vector<Rank>& ranks, int64_t wanted = 2, Duration silence = kSilence) {
  std::string text;
  for (const std::string& line : HangFaults(ranks, wanted, kNow, silence)) text += line + "\n";
  return text;
}

bool Says(const std::string& text, std::string_view what) { return text.find(what) != text.npos; }

TEST(TrainingFaults, WhoSpokeLatelyIsNotSuspected) {
  EXPECT_EQ(Told({RankAt("a", "2026-01-02T03:59:00Z"), RankAt("b", "")}), "");
  EXPECT_EQ(Told({RankAt("a", "2026-01-02T03:50:00Z"), RankAt("b", "2026-01-02T03:50:00Z")}, 2,
                 minutes(30)),
            "");
  Rank young = RankAt("a", "");
  young.pod = Yaml(
      "{status: {phase: Running, containerStatuses: [{name: pytorch, state: {running: {startedAt: "
      "'2026-01-02T03:58:00Z'}}}]}}");
  EXPECT_EQ(Told({young, RankAt("b", "")}), "");
  Rank unread = RankAt("a", "");
  unread.log_read = false;
  EXPECT_EQ(Told({unread, RankAt("b", "")}), "") << "what cannot be read is no silence";
  EXPECT_EQ(Told({}), "");
}

TEST(TrainingFaults, SilenceOfAllRanksIsSuspicious) {
  const std::string told = Told({RankAt("a", "2026-01-02T03:48:00Z"), RankAt("b", "")});
  EXPECT_TRUE(Says(told, "no rank has logged anything for 12 minutes")) << told;
  EXPECT_TRUE(Says(told, "NCCL_DEBUG=INFO")) << told;
}

TEST(TrainingFaults, NamesTheRankThatDiffers) {
  const char* then = "2026-01-02T03:30:00Z";
  EXPECT_TRUE(
      Says(Told({RankAt("a", then, 0.0), RankAt("b", then, 0.98), RankAt("c", "", 0.01)}, 3),
           "b keeps a CPU busy while a, c sleep: the others wait for b"));
  EXPECT_TRUE(Says(Told({RankAt("a", then, 1.0), RankAt("b", then, 1.0), RankAt("c", "", 0.0)}, 3),
                   "c sleeps while a, b keep a CPU busy: the others spin, as over NCCL, and wait "
                   "for c"));
  EXPECT_TRUE(Says(Told({RankAt("a", then, 0.0), RankAt("b", then, 0.01)}),
                   "all of a, b use no CPU: they sleep"));
  EXPECT_TRUE(
      Says(Told({RankAt("a", then, 1.0), RankAt("b", then, 1.0)}), "all of a, b keep a CPU busy"));
  // On a busy machine a loop gets little, and is still not one who sleeps.
  EXPECT_TRUE(Says(Told({RankAt("a", then, 0.0), RankAt("b", then, 0.04)}),
                   "b keeps a CPU busy while a sleeps"));
  // Who does a little is neither; who was not measured is not judged.
  EXPECT_FALSE(Says(Told({RankAt("a", then, 0.1), RankAt("b", then, 1.0)}), "CPU"));
  EXPECT_FALSE(Says(Told({RankAt("a", then), RankAt("b", then, 1.0)}), "CPU"));
}

TEST(TrainingFaults, NamesTheRankThatIsGone) {
  Rank ended = RankAt("b", "2026-01-02T03:10:00Z");
  ended.pod = Yaml(
      "{status: {phase: Failed, containerStatuses: [{name: pytorch, state: {terminated: {exitCode: "
      "1, reason: Error}}}]}}");
  EXPECT_TRUE(Says(Told({RankAt("a", ""), ended}),
                   "b has ended with exit code 1 (Error), and a still runs: those wait for it"));
  EXPECT_TRUE(Says(Told({RankAt("a", ""), RankAt("b", "")}, 4),
                   "2 of 4 ranks are there: the others wait for 2 more"));
  // One that waits for a node is the scheduler's to explain.
  Rank pending = RankAt("c", "");
  pending.pod = Yaml("{status: {phase: Pending}}");
  EXPECT_EQ(Told({RankAt("a", ""), pending}), "");
}

TEST(TrainingFaults, NamesTheRankThatBeganAnew) {
  Rank again = RankAt("b", "");
  again.pod = Yaml(
      "{status: {phase: Running, containerStatuses: [{name: pytorch, restartCount: 1, state: "
      "{running: {startedAt: '2026-01-02T03:20:00Z'}}, lastState: {terminated: {exitCode: 139, "
      "reason: Error}}}]}}");
  EXPECT_TRUE(Says(Told({RankAt("a", ""), again}),
                   "b was started again after exit code 139 (Error), and a was not"));
  EXPECT_FALSE(Says(Told({again, again}), "was started again")) << "all began anew";
}

TEST(TrainingFaults, TellsOfDriversThatDiffer) {
  Rank a = RankAt("a", ""), b = RankAt("b", "");
  a.driver = "580.1";
  b.driver = "535.9";
  b.node = "n2";
  EXPECT_TRUE(Says(Told({a, b}), "different NVIDIA drivers (535.9 on n2; 580.1 on n1)"));
  b.driver = "580.1";
  EXPECT_FALSE(Says(Told({a, b}), "drivers"));
}

Rank WithGpu(const std::string& name, Figures figures, const char* model = "A100") {
  Rank rank = RankAt(name, "");
  rank.gpus.push_back({"GPU-" + name, model, std::move(figures)});
  return rank;
}

TEST(TrainingFaults, FindsTheSlowGpuAmongItsPeers) {
  const Figures fine = {{"DCGM_FI_DEV_SM_CLOCK", "1410"},
                        {"DCGM_FI_DEV_GPU_TEMP", "60"},
                        {"DCGM_FI_DEV_GPU_UTIL", "99"},
                        {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "0"}};
  EXPECT_TRUE(SlowGpus({WithGpu("a", fine), WithGpu("b", fine)}).empty());
  Figures slow = fine;
  slow["DCGM_FI_DEV_SM_CLOCK"] = "705";
  slow["DCGM_FI_DEV_GPU_TEMP"] = "91";
  slow["DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"] = "72";
  const auto told = SlowGpus({WithGpu("a", fine), WithGpu("b", slow), WithGpu("c", fine)});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0],
            "GPU GPU-b of b on node n1 differs from its 2 peers: its clock is 705 MHz and theirs "
            "1410; the driver holds it back (hardware slowdown, too hot, by hardware); it is at 91 "
            "C and they at 60; all ranks go at its pace");
  // Of another model it is no peer, and of one that does nothing the clock is low.
  EXPECT_TRUE(
      SlowGpus(
          {WithGpu("a", fine),
           WithGpu("b", {{"DCGM_FI_DEV_SM_CLOCK", "705"}, {"DCGM_FI_DEV_GPU_UTIL", "99"}}, "T4")})
          .empty());
  Figures idle = {{"DCGM_FI_DEV_SM_CLOCK", "210"}, {"DCGM_FI_DEV_GPU_UTIL", "0"}};
  const auto starved = SlowGpus({WithGpu("a", fine), WithGpu("b", idle)});
  ASSERT_EQ(starved.size(), 1u);
  EXPECT_TRUE(Says(starved[0], "it is busy 0 % of the time and they 99 %: its input"));
  EXPECT_FALSE(Says(starved[0], "clock"));
}

TEST(TrainingFaults, AFaultyGpuNeedsNoPeer) {
  const auto told = SlowGpus(
      {WithGpu("a", {{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "2"}, {"DCGM_FI_DEV_XID_ERRORS", "94"}})});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(Says(told[0],
                   "is not at its best: its memory had 2 uncorrected errors (ECC); its "
                   "last error was XID 94"));
  EXPECT_EQ(SlowdownText(0x1 | 0x2 | 0x10 | 0x100), "") << "idle, or what somebody set";
  EXPECT_EQ(SlowdownText(0x84), "power limit, power brake");
}

TEST(TrainingFaults, SaysWhoseMemoryRanOut) {
  const json::Value pod = Yaml(R"(
metadata: {name: p}
spec: {containers: [{name: main, resources: {limits: {memory: 256Mi}}}, {name: side}]}
status:
  containerStatuses:
  - {name: main, restartCount: 3, state: {running: {}},
     lastState: {terminated: {reason: OOMKilled, exitCode: 137}}}
  - {name: side, state: {terminated: {reason: OOMKilled, exitCode: 137}}}
)");
  EXPECT_TRUE(WasOomKilled(pod));
  const auto told = MemoryFaults(pod, "", "180Mi");
  ASSERT_EQ(told.size(), 2u);
  EXPECT_TRUE(told[0].starts_with(
      "container main of p reached its memory limit of 256Mi (OOMKilled, 3 times); started again "
      "it uses 180Mi now; raise resources.limits.memory, or use less: a smaller batch"));
  EXPECT_TRUE(told[1].starts_with(
      "container side of p was ended for memory (OOMKilled) without a limit of its own"));
  const json::Value fine = Yaml("{metadata: {name: p}, status: {containerStatuses: [{name: c}]}}");
  EXPECT_FALSE(WasOomKilled(fine));
  EXPECT_TRUE(MemoryFaults(fine, "all is well", "").empty());
  const auto gpu = MemoryFaults(
      fine, "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 39.59 GiB)", "");
  ASSERT_EQ(gpu.size(), 1u);
  EXPECT_TRUE(Says(gpu[0], "the memory of its GPU ran out"));
  EXPECT_TRUE(Says(gpu[0], "expandable_segments:True"));
}

TEST(GpuFigures, AreReadFromPrometheusText) {
  const GpuFigures figures = ParseGpuFigures(
      "# HELP DCGM_FI_DEV_GPU_UTIL x\n"
      "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",pod=\"p\"} 37\n"
      "DCGM_FI_DEV_SM_CLOCK{gpu=\"0\",UUID=\"GPU-a\",pod=\"p\"} 1410\n"
      "other{UUID=\"GPU-a\"} 1\n");
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures.at("GPU-a").at("DCGM_FI_DEV_GPU_UTIL"), "37");
  EXPECT_EQ(figures.at("GPU-a").size(), 2u);
}

}  // namespace
}  // namespace muster::cli
