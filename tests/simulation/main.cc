// simulation_test [--seeds FIRST:COUNT] [--scenarios EVERY] [--jobs N] [--until-failure 1]
//     Every EVERY-th death of each scenario (0, the default: none). Then the seeds (1:100 unless
//     said otherwise), each in some of the stories: about jobs, about preemption, about workloads,
//     and those of chapters_story.h; some twice: the same seed must leave the same trace. Then the
//     counts of every fault and rare branch. Exit status 1 when anything is wrong.
// simulation_test --seed N | --preemption N | --workloads N | --chapters N |
//                 --scenario NAME[/PART/before|after/K]
//     One run, told change by change.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/strings.h"
#include "simulation/chapters_story.h"
#include "simulation/preemption_story.h"
#include "simulation/scenarios.h"
#include "simulation/story.h"
#include "simulation/workload_story.h"

namespace {

using muster::simulation::Counts;
using muster::simulation::Death;
using muster::simulation::Outcome;

// Every fifteenth seed runs twice, so that each story does.
constexpr int64_t kReplayEvery = 15;
// Fewer seeds need not show everything.
constexpr int64_t kSeedsThatShowAll = 100;
constexpr int64_t kMaxViolationsShown = 8;  // of one run

struct Story {
  std::string_view flag;  // with a seed: to tell it once
  Outcome (*run)(uint64_t seed, Counts& counts, bool verbose);
  std::array<bool, 4> told;  // of numbers with the remainder 0, 1, 2, 3
};
// By turns: nine stories in four numbers.
constexpr Story kStories[] = {
    {"--seed", muster::simulation::RunSeed, {true, true, true, false}},
    {"--preemption", muster::simulation::RunPreemptionSeed, {true, false, true, false}},
    {"--workloads", muster::simulation::RunWorkloadSeed, {true, false, true, false}},
    {"--chapters", muster::simulation::RunChaptersSeed, {false, true, false, true}}};

bool IsToldOf(const Story& story, int64_t seed) {
  return story.told[static_cast<size_t>(seed) % story.told.size()];
}

struct Arguments {
  int64_t first = 1;
  int64_t count = 100;
  int64_t every = 0;
  int64_t jobs = 1;
  bool until_failure = false;
  int64_t seed = 0;
  const Story* story = &kStories[0];
  std::string scenario;
};

bool Parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    const std::string_view value = argv[i + 1];
    const auto parts = muster::Split(value, ':');
    const int64_t number = muster::ParseInt(parts[0]).value_or(-1);
    const auto story = std::find_if(std::begin(kStories), std::end(kStories),
                                    [&](const Story& each) { return each.flag == flag; });
    if (flag == "--scenario") {
      arguments.scenario = value;
    } else if (number < 0) {
      return false;
    } else if (story != std::end(kStories)) {
      arguments.seed = number;
      arguments.story = story;
    } else if (flag == "--seeds" && parts.size() == 2) {
      arguments.first = number;
      arguments.count = muster::ParseInt(parts[1]).value_or(1);
    } else if (flag == "--scenarios") {
      arguments.every = number;
    } else if (flag == "--until-failure") {
      arguments.until_failure = number != 0;
    } else if (flag == "--jobs" && number > 0) {
      arguments.jobs = number;
    } else {
      return false;
    }
  }
  return argc % 2 == 1;
}

// Prints what was wrong and how to see it again.
bool Report(const std::string& name, const std::string& replay, const Outcome& outcome) {
  int64_t shown = 0;
  for (const std::string& violation : outcome.violations) {
    if (shown++ == kMaxViolationsShown) break;
    std::printf("%s: %s\n", name.c_str(), violation.c_str());
  }
  if (outcome.violations.empty()) return true;
  std::printf("%s: BAD, %zu violations; see it: tools/dev sim %s\n", name.c_str(),
              outcome.violations.size(), replay.c_str());
  return false;
}

bool RunSeedOnce(const Story& story, int64_t seed, Counts& counts) {
  const Outcome outcome = story.run(static_cast<uint64_t>(seed), counts, false);
  const std::string name = fmt::format("{} {}", story.flag, seed);
  bool good = Report(name, name, outcome);
  if (seed % kReplayEvery != 0) return good;
  Counts ignored({});
  const Outcome again = story.run(static_cast<uint64_t>(seed), ignored, false);
  if (again.trace_hash == outcome.trace_hash) return good;
  std::printf("%s: another trace when run again\n", name.c_str());
  return false;
}

bool RunDeath(const Death& death, Counts& counts) {
  const std::string name = death.ToString();
  return Report(name, "--scenario " + name, muster::simulation::RunScenario(death, counts, false));
}

using Task = std::function<bool(Counts&)>;  // false: something was wrong

std::vector<Task> Tasks(const Arguments& arguments) {
  std::vector<Task> tasks;
  if (arguments.every > 0) {
    for (const std::string& scenario : muster::simulation::ScenarioNames()) {
      const std::vector<Death> deaths = muster::simulation::DeathsIn(scenario);
      for (size_t i = 0; i < deaths.size(); i += static_cast<size_t>(arguments.every))
        tasks.push_back([death = deaths[i]](Counts& counts) { return RunDeath(death, counts); });
    }
  }
  for (int64_t seed = arguments.first; seed < arguments.first + arguments.count; ++seed) {
    for (const Story& story : kStories) {
      if (!IsToldOf(story, seed)) continue;
      tasks.push_back([&story, seed](Counts& counts) { return RunSeedOnce(story, seed, counts); });
    }
  }
  return tasks;
}

struct Sum {
  int64_t runs = 0;
  int64_t bad = 0;
};

// Every `step`-th task from `first`.
Sum RunTasks(const std::vector<Task>& tasks, size_t first, size_t step, bool until_failure,
             Counts& counts) {
  Sum sum;
  for (size_t i = first; i < tasks.size(); i += step) {
    ++sum.runs;
    if (!tasks[i](counts)) ++sum.bad;
    if (sum.bad > 0 && until_failure) break;
  }
  return sum;
}

// One process for each job; their counts come back as lines "NUMBER NAME".
Sum RunInProcesses(const std::vector<Task>& tasks, const Arguments& arguments, Counts& counts) {
  const auto jobs = static_cast<size_t>(arguments.jobs);
  if (jobs == 1) return RunTasks(tasks, 0, 1, arguments.until_failure, counts);
  std::vector<FILE*> results;
  for (size_t job = 0; job < jobs; ++job) {
    int ends[2];
    if (pipe(ends) != 0) return {0, 1};
    if (fork() == 0) {
      close(ends[0]);
      FILE* out = fdopen(ends[1], "w");
      const Sum sum = RunTasks(tasks, job, jobs, arguments.until_failure, counts);
      std::fprintf(out, "%ld runs\n%ld bad\n", static_cast<long>(sum.runs),
                   static_cast<long>(sum.bad));
      for (const auto& [name, count] : counts.all())
        std::fprintf(out, "%ld %s\n", static_cast<long>(count), name.c_str());
      std::fclose(out);
      std::fflush(stdout);
      _exit(0);
    }
    close(ends[1]);
    results.push_back(fdopen(ends[0], "r"));
  }
  Sum sum;
  for (FILE* result : results) {
    char line[256];
    int64_t lines = 0;
    for (; std::fgets(line, sizeof(line), result) != nullptr; ++lines) {
      const std::string_view text = muster::Trim(line);
      const size_t space = text.find(' ');
      const int64_t number = muster::ParseInt(text.substr(0, space)).value_or(0);
      if (lines == 0) {
        sum.runs += number;
      } else if (lines == 1) {
        sum.bad += number;
      } else {
        counts.Add(text.substr(space + 1), number);
      }
    }
    std::fclose(result);
    int status = 0;
    wait(&status);
    if (status != 0 || lines == 0) ++sum.bad;  // it crashed
  }
  return sum;
}

int TellOne(const Arguments& arguments) {
  muster::SetLogLevel(muster::LogLevel::kWarn);
  Counts counts({});
  if (arguments.scenario.empty()) {
    const std::string name = fmt::format("{} {}", arguments.story->flag, arguments.seed);
    const auto seed = static_cast<uint64_t>(arguments.seed);
    const Outcome outcome = arguments.story->run(seed, counts, true);
    std::printf("%s: trace %016lx, %ld revisions, %lu steps\n", name.c_str(),
                static_cast<unsigned long>(outcome.trace_hash),
                static_cast<long>(outcome.revisions), static_cast<unsigned long>(outcome.steps));
    return Report(name, name, outcome) ? 0 : 1;
  }
  const auto death = muster::simulation::ParseDeath(arguments.scenario);
  if (!death) {
    std::printf("no scenario %s; there are: %s\n", arguments.scenario.c_str(),
                muster::Join(muster::simulation::ScenarioNames(), ", ").c_str());
    return 2;
  }
  const Outcome outcome = muster::simulation::RunScenario(*death, counts, true);
  return Report(arguments.scenario, "--scenario " + arguments.scenario, outcome) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!Parse(argc, argv, arguments)) {
    std::printf("usage: see the first lines of tests/simulation/main.cc\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a run that is cut short has shown what it found
  if (arguments.seed > 0 || !arguments.scenario.empty()) return TellOne(arguments);
  muster::SetLogLevel(muster::LogLevel::kNone);
  const std::vector<Task> tasks = Tasks(arguments);
  Counts counts(muster::simulation::ExpectedCounts());
  for (const auto* names : {&muster::simulation::ExpectedWorkloadCounts(),
                            &muster::simulation::ExpectedChapterCounts()}) {
    for (const std::string_view name : *names) counts.Add(name, 0);
  }
  const Sum sum = RunInProcesses(tasks, arguments, counts);
  int zeros = 0;
  for (const auto& [name, count] : counts.all()) {
    std::printf("%8ld  %s\n", static_cast<long>(count), name.c_str());
    if (count == 0) ++zeros;
  }
  int64_t runs_of_seeds = 0;
  for (int64_t seed = arguments.first; seed < arguments.first + arguments.count; ++seed) {
    for (const Story& story : kStories) runs_of_seeds += IsToldOf(story, seed);
  }
  std::printf("%ld seeds, %ld deaths in scenarios, %ld bad, %d counts at zero\n",
              static_cast<long>(arguments.count), static_cast<long>(sum.runs - runs_of_seeds),
              static_cast<long>(sum.bad), zeros);
  return sum.bad > 0 || (zeros > 0 && arguments.count >= kSeedsThatShowAll) ? 1 : 0;
}
