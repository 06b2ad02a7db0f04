// simulation_test [--seed N | --seeds FIRST:COUNT] [--verbose]
//
// Without arguments: the fixed seeds, some of them twice (the same seed must leave the same trace),
// then the counts of every fault and rare branch. Exit status 1 when anything is wrong.

#include <cstdio>
#include <cstring>
#include <string>

#include "base/log.h"
#include "base/strings.h"
#include "simulation/world.h"

namespace {

using muster::simulation::Counts;
using muster::simulation::Outcome;

struct Arguments {
  int64_t first = 1;
  int64_t count = 100;
  bool verbose = false;
  bool one = false;
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--verbose") arguments.verbose = true;
    if (i + 1 >= argc) continue;
    const auto parts = muster::Split(argv[i + 1], ':');
    if (flag == "--seed") {
      arguments.one = true;
      arguments.first = muster::ParseInt(argv[i + 1]).value_or(1);
      arguments.count = 1;
    } else if (flag == "--seeds" && parts.size() == 2) {
      arguments.first = muster::ParseInt(parts[0]).value_or(1);
      arguments.count = muster::ParseInt(parts[1]).value_or(1);
    }
  }
  return arguments;
}

// Every tenth seed runs twice.
constexpr int64_t kReplayEvery = 10;

bool RunOne(int64_t seed, Counts& counts, bool verbose, bool replay) {
  const Outcome outcome = muster::simulation::RunSeed(static_cast<uint64_t>(seed), counts, verbose);
  bool good = outcome.violations.empty();
  for (const std::string& violation : outcome.violations) {
    std::printf("seed %ld: %s\n", static_cast<long>(seed), violation.c_str());
  }
  if (replay) {
    Counts ignored({});
    const Outcome again = muster::simulation::RunSeed(static_cast<uint64_t>(seed), ignored, false);
    if (again.trace_hash != outcome.trace_hash) {
      std::printf("seed %ld: another trace when run again\n", static_cast<long>(seed));
      good = false;
    }
  }
  if (verbose || !good) {
    std::printf("seed %ld: %s, trace %016lx, %lu revisions, %lu steps\n", static_cast<long>(seed),
                good ? "good" : "BAD", static_cast<unsigned long>(outcome.trace_hash),
                static_cast<unsigned long>(outcome.revisions),
                static_cast<unsigned long>(outcome.steps));
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a run that is cut short has shown what it found
  muster::SetLogLevel(arguments.verbose ? muster::LogLevel::kDebug : muster::LogLevel::kNone);
  Counts counts(muster::simulation::ExpectedCounts());
  int64_t bad = 0;
  for (int64_t seed = arguments.first; seed < arguments.first + arguments.count; ++seed) {
    const bool replay = arguments.one || seed % kReplayEvery == 0;
    if (!RunOne(seed, counts, arguments.verbose, replay)) ++bad;
  }
  int zeros = 0;
  for (const auto& [name, count] : counts.all()) {
    std::printf("%8ld  %s\n", static_cast<long>(count), name.c_str());
    if (count == 0) ++zeros;
  }
  std::printf("%ld seeds, %ld bad, %d counts at zero\n", static_cast<long>(arguments.count),
              static_cast<long>(bad), zeros);
  // A single seed need not show everything.
  return bad > 0 || (zeros > 0 && arguments.count >= 100) ? 1 : 0;
}
