#include "simulator/submission.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"

namespace muster::simulator {
namespace {

std::string_view NameOf(Submission::Answer answer) {
  switch (answer) {
    case Submission::Answer::kStarts:
      return "Starts";
    case Submission::Answer::kUnknown:
      return "Unknown";
    case Submission::Answer::kNever:
      return "Never";
  }
  return "";
}

}  // namespace

std::vector<Submission> SubmissionsOf(const Workload& workload, const Outcome& outcome,
                                      size_t first, size_t count) {
  std::vector<Submission> out;
  for (size_t i = first; i < first + count; ++i) {
    const Job& job = workload.jobs[i];
    Submission& submission = out.emplace_back();
    submission.ns = job.ns;
    submission.name = job.name;
    if (outcome.jobs[i].placed) {
      submission.start = outcome.jobs[i].start;
      submission.nodes = outcome.jobs[i].nodes;
      continue;
    }
    const auto never = std::find_if(outcome.never_placed.begin(), outcome.never_placed.end(),
                                    [&](const NeverPlaced& each) { return each.job == i; });
    if (never == outcome.never_placed.end()) continue;
    submission.answer =
        never->fits_never ? Submission::Answer::kNever : Submission::Answer::kUnknown;
    submission.why = never->why;
  }
  return out;
}

std::string ToText(const Submission& submission, size_t unknown_ends, std::optional<Time> now) {
  const std::string name = submission.ns + "/" + submission.name;
  switch (submission.answer) {
    case Submission::Answer::kNever:
      return fmt::format("{} never starts: {}\n", name, submission.why);
    case Submission::Answer::kUnknown:
      return fmt::format(
          "{}: nobody can tell when it starts; {} that run or wait before it have no "
          "known end (annotation {}). {}\n",
          name, unknown_ends, kRunTimeAnnotation, submission.why);
    case Submission::Answer::kStarts:
      break;
  }
  std::vector<std::string> nodes;
  for (const std::string& node : submission.nodes) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
  if (submission.start == Duration(0))
    return fmt::format("{} starts at once on {}\n", name, Join(nodes, ", "));
  return fmt::format(
      "{} starts in {}{} on {}\n", name, HumanDuration(submission.start),
      now.has_value() ? fmt::format(" ({})", FormatTime(*now + submission.start)) : "",
      Join(nodes, ", "));
}

json::Value ToJson(const Submission& submission, std::optional<Time> now) {
  json::Value out = json::Obj({{"namespace", submission.ns},
                               {"name", submission.name},
                               {"answer", NameOf(submission.answer)}});
  if (submission.answer != Submission::Answer::kStarts) return out.Set("why", submission.why);
  out = out.Set("startsInSeconds", std::chrono::duration<double>(submission.start).count());
  if (now.has_value()) out = out.Set("startsAt", FormatTime(*now + submission.start));
  return out.Set("nodes", json::Strings(submission.nodes));
}

}  // namespace muster::simulator
