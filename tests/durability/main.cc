// durability_test power-cuts [--seeds FIRST:COUNT] [--mutant NAME]
//                 io-errors [--seed N] [--stride N]
//                 kill-rounds [--rounds N] [--seed N]
//                 churn [--updates N] [--rate N] [--max-database-mb N] [--max-growth-mb N]
//
// power-cuts  COUNT seeds of kCutsPerSeed cuts each, some twice (the same seed must leave the same
//             trace). With --mutant synchronous-off or reply-before-commit the store is wrong, and
//             the test fails unless it finds that out.
// io-errors   one piece of work, with each (or each N-th) call of the disk failing in turn.
// kill-rounds a process on real files, killed with SIGKILL at random moments.
// churn       many updates of a small working set; prints the curves of file sizes and memory.

#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "base/log.h"
#include "base/strings.h"
#include "durability/churn.h"
#include "durability/io_errors.h"
#include "durability/kill_rounds.h"
#include "durability/power_cuts.h"

namespace muster::durability {
namespace {

constexpr int kCutsPerSeed = 5;
constexpr int64_t kReplayEvery = 10;

class Arguments {
 public:
  Arguments(int argc, char** argv) {
    for (int i = 2; i + 1 < argc; i += 2) values_[argv[i]] = argv[i + 1];
  }
  std::string Get(const std::string& flag, const std::string& otherwise) const {
    const auto found = values_.find(flag);
    return found == values_.end() ? otherwise : found->second;
  }
  int64_t GetInt(const std::string& flag, int64_t otherwise) const {
    return ParseInt(Get(flag, "")).value_or(otherwise);
  }

 private:
  std::map<std::string, std::string> values_;
};

// Prints the counts; how many are zero.
int PrintCounts(const simulation::Counts& counts) {
  int zeros = 0;
  for (const auto& [name, count] : counts.all()) {
    fmt::print("{:>8}  {}\n", count, name);
    if (count == 0) ++zeros;
  }
  return zeros;
}

int PowerCuts(const Arguments& arguments) {
  const auto range = Split(arguments.Get("--seeds", "1:40"), ':');
  const int64_t first = ParseInt(range[0]).value_or(1);
  const int64_t count = range.size() == 2 ? ParseInt(range[1]).value_or(1) : 1;
  const std::string name = arguments.Get("--mutant", "");
  const Mutant mutant = name == "synchronous-off"       ? Mutant::kSynchronousOff
                        : name == "reply-before-commit" ? Mutant::kReplyBeforeCommit
                                                        : Mutant::kNone;
  if (!name.empty() && mutant == Mutant::kNone) {
    fmt::print("unknown mutant {}\n", name);
    return 2;
  }
  simulation::Counts counts(PowerCutCounts());
  int64_t cuts = 0, bad = 0;
  for (int64_t seed = first; seed < first + count; ++seed) {
    const Outcome outcome = RunPowerCuts(static_cast<uint64_t>(seed), kCutsPerSeed, mutant, counts);
    cuts += outcome.cuts;
    if (!outcome.violations.empty()) {
      ++bad;
      fmt::print("seed {}: {}\n", seed, outcome.violations.front());
    }
    if (seed % kReplayEvery != 0) continue;
    simulation::Counts ignored({});
    const Outcome again = RunPowerCuts(static_cast<uint64_t>(seed), kCutsPerSeed, mutant, ignored);
    if (again.trace != outcome.trace) {
      ++bad;
      fmt::print("seed {}: another trace when run again\n", seed);
    }
  }
  if (mutant != Mutant::kNone) {
    fmt::print("result: mutant {}: {} after {} power cuts, {} of {} seeds saw it\n", name,
               bad > 0 ? "caught" : "NOT CAUGHT", cuts, bad, count);
    return bad > 0 ? 0 : 1;
  }
  const int zeros = PrintCounts(counts);
  fmt::print("result: {} power cuts of {} seeds, {} bad, {} counts at zero\n", cuts, count, bad,
             zeros);
  return bad > 0 || zeros > 0 ? 1 : 0;
}

int PrintViolations(const std::vector<std::string>& violations) {
  for (size_t i = 0; i < violations.size() && i < 20; ++i) fmt::print("{}\n", violations[i]);
  return violations.empty() ? 0 : 1;
}

int IoErrors(const Arguments& arguments) {
  simulation::Counts counts(IoErrorCounts());
  const auto violations =
      RunIoErrors(static_cast<uint64_t>(arguments.GetInt("--seed", 1)),
                  static_cast<uint64_t>(arguments.GetInt("--stride", 1)), counts);
  const int zeros = PrintCounts(counts);
  fmt::print("result: {} runs with a failing disk, {} bad, {} counts at zero\n",
             counts.all().at("runs"), violations.size(), zeros);
  return PrintViolations(violations) != 0 || zeros > 0 ? 1 : 0;
}

int KillRounds(const Arguments& arguments) {
  simulation::Counts counts(KillRoundCounts());
  const auto violations = RunKillRounds(static_cast<uint64_t>(arguments.GetInt("--seed", 1)),
                                        static_cast<int>(arguments.GetInt("--rounds", 50)), counts);
  const int zeros = PrintCounts(counts);
  fmt::print("result: {} kills with SIGKILL, {} acknowledged writes, {} bad, {} counts at zero\n",
             counts.all().at("kills"), counts.all().at("acknowledged writes"), violations.size(),
             zeros);
  return PrintViolations(violations) != 0 || zeros > 0 ? 1 : 0;
}

int Churn(const Arguments& arguments) {
  ChurnOptions options;
  options.updates = arguments.GetInt("--updates", options.updates);
  options.rate = arguments.GetInt("--rate", options.rate);
  options.max_database_mb = static_cast<double>(arguments.GetInt("--max-database-mb", 0));
  options.max_growth_mb = static_cast<double>(arguments.GetInt("--max-growth-mb", 0));
  return PrintViolations(RunChurn(options));
}

int Run(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  SetLogLevel(LogLevel::kNone);
  const std::map<std::string_view, std::function<int(const Arguments&)>> modes = {
      {"power-cuts", PowerCuts},
      {"io-errors", IoErrors},
      {"kill-rounds", KillRounds},
      {"churn", Churn}};
  const auto mode = modes.find(argc > 1 ? argv[1] : "");
  if (mode == modes.end()) {
    fmt::print("usage: see tests/durability/main.cc\n");
    return 2;
  }
  return mode->second(Arguments(argc, argv));
}

}  // namespace
}  // namespace muster::durability

int main(int argc, char** argv) { return muster::durability::Run(argc, argv); }
