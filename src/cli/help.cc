#include "cli/help.h"

#include <algorithm>

#include <fmt/core.h>

namespace muster::cli {
namespace {

std::string FlagLine(const Flag& flag) {
  std::string left = flag.letter != 0 ? fmt::format("  -{}, --{}", flag.letter, flag.name)
                                      : "      --" + flag.name;
  if (!flag.value.empty()) left += " " + flag.value;
  std::string right = flag.help;
  if (!flag.otherwise.empty()) right += fmt::format(" (default {})", flag.otherwise);
  return fmt::format("{:<32} {}\n", left, right);
}

size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string CommandLine(const std::string& name, const std::string& summary) {
  return fmt::format("  {:<12} {}\n", name, summary);
}

}  // namespace

std::string HelpFor(const Command& command) {
  std::string out = command.summary + "\n";
  if (!command.details.empty()) out += "\n" + command.details + "\n";
  out += fmt::format("\nUsage:\n  muster {} {}\n", command.name, command.usage);
  if (!command.examples.empty()) {
    out += "\nExamples:\n";
    size_t width = 0;
    for (const Example& example : command.examples) width = std::max(width, example.command.size());
    width = std::min<size_t>(width, 56);
    for (const Example& example : command.examples) {
      out += fmt::format("  {:<{}}   # {}\n", example.command, width, example.meaning);
    }
  }
  if (!command.flags.empty()) {
    out += "\nFlags:\n";
    for (const Flag& flag : command.flags) out += FlagLine(flag);
  }
  out += command.local ? "\n" : "\nEvery command:\n";
  for (const Flag& flag : GlobalFlags(command)) out += FlagLine(flag);
  return out;
}

std::string GeneralHelp() {
  std::string out = "muster: Kubernetes for machine learning, all present or none.\n";
  std::vector<std::pair<const char*, std::vector<std::string>>> groups = {
      {"The cluster:", {"up", "down"}},
      {"Run and look:", {"run", "status", "dashboard", "top", "logs", "explain"}},
      {"Objects:", {"apply", "get", "describe", "delete", "exec", "wait"}},
      {"Its state:", {"backup", "restore", "check-store"}},
      {"Around it:", {"doctor", "image", "service", "kubeconfig", "completion", "version"}}};
  // One that nobody put into a group is not forgotten.
  for (const Command& command : AllCommands()) {
    const bool listed = std::ranges::any_of(groups, [&command](const auto& group) {
      return std::ranges::find(group.second, command.name) != group.second.end();
    });
    if (!listed) groups.back().second.push_back(command.name);
  }
  for (const auto& [title, names] : groups) {
    out += fmt::format("\n{}\n", title);
    for (const std::string& name : names) {
      if (const Command* command = FindCommand(name); command != nullptr)
        out += CommandLine(name, command->summary);
    }
  }
  out +=
      "\nExamples:\n"
      "  muster up --detach                              # start a cluster on this machine\n"
      "  muster run --gpus 2 -- python train.py          # train, without any YAML\n"
      "  muster apply -f job.yaml && muster logs -f pytorchjob/NAME\n"
      "  muster explain job NAME                         # why it waits, and what would change "
      "that\n"
      "\n`muster COMMAND --help` says more. Stock kubectl works, too: export KUBECONFIG=$(muster "
      "kubeconfig --path)\n";
  return out;
}

std::string Nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = 3;  // three letters off is another word
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(word, candidate);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

std::string NearestCommand(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : AllCommands()) names.push_back(command.name);
  return Nearest(name, names);
}

}  // namespace muster::cli
