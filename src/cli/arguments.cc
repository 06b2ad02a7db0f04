#include "cli/arguments.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "base/strings.h"
#include "cli/help.h"

namespace muster::cli {
namespace {

std::string Spelling(const Flag& flag) {
  return flag.letter != 0 ? fmt::format("-{},--{}", flag.letter, flag.name) : "--" + flag.name;
}

// Values and switches of one run of the parser, by flag.
struct Bound {
  const Flag* flag;
  std::vector<std::string> values;
  bool on = false;
};

Status CheckChoice(const Flag& flag, const std::string& value) {
  if (flag.choices.empty()) return Status::Ok();
  for (const std::string& choice : flag.choices) {
    if (choice == value) return Status::Ok();
  }
  return Error(Reason::kInvalid, "--{} {:?}: expected one of {}", flag.name, value,
               Join(flag.choices, ", "));
}

// " (did you mean --x?)" for the first word that is no flag and looks like one.
std::string FlagHint(const std::vector<std::string>& words, const std::vector<Flag>& flags) {
  std::vector<std::string> names;
  names.reserve(flags.size());
  for (const Flag& flag : flags) names.push_back("--" + flag.name);
  return UnknownFlagHint(words, names);
}

}  // namespace

std::string UnknownFlagHint(const std::vector<std::string>& words,
                            const std::vector<std::string>& flags) {
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (name == "--") break;
    if (!name.starts_with("--") || std::find(flags.begin(), flags.end(), name) != flags.end())
      continue;
    const std::string nearest = Nearest(name, flags);
    return nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest);
  }
  return "";
}

std::string Arguments::Get(std::string_view flag) const {
  if (const auto found = values.find(flag); found != values.end()) return found->second.back();
  const auto found = defaults.find(flag);
  return found == defaults.end() ? "" : found->second;
}

std::vector<std::string> Arguments::GetAll(std::string_view flag) const {
  const auto found = values.find(flag);
  return found == values.end() ? std::vector<std::string>() : found->second;
}

Result<int64_t> Arguments::GetInt(std::string_view flag, int64_t otherwise) const {
  const std::string text = Get(flag);
  if (text.empty()) return otherwise;
  const std::optional<int64_t> number = ParseInt(text);
  if (!number)
    return Error(Reason::kInvalid, "--{} {:?}: expected a whole number", std::string(flag), text);
  return *number;
}

Result<Arguments> ParseArguments(const Command& command, const std::vector<std::string>& words) {
  const auto dashes = std::find(words.begin(), words.end(), "--");
  Arguments out;
  if (dashes != words.end()) out.program.assign(dashes + 1, words.end());
  if (!command.takes_program && !out.program.empty()) {
    return Error(Reason::kInvalid, "muster {} runs no program: nothing may follow --",
                 command.name);
  }

  CLI::App app;
  app.set_help_flag();
  std::vector<std::unique_ptr<Bound>> bounds;
  std::vector<Flag> flags = command.flags;
  for (Flag& flag : GlobalFlags(command)) flags.push_back(std::move(flag));
  for (const Flag& flag : flags) {
    Bound& bound = *bounds.emplace_back(std::make_unique<Bound>(&flag));
    if (flag.value.empty()) {
      app.add_flag(Spelling(flag), bound.on);
    } else {
      app.add_option(Spelling(flag), bound.values)
          ->expected(1)
          ->take_all()
          ->allow_extra_args(false);
      if (!flag.otherwise.empty()) out.defaults[flag.name] = flag.otherwise;
    }
  }
  app.add_option("arguments", out.positionals);
  std::vector<std::string> reversed(std::make_reverse_iterator(dashes),
                                    words.rend());  // as CLI11 wants them
  if (std::find_if(reversed.begin(), reversed.end(), [](const std::string& word) {
        return word == "-h" || word == "--help";
      }) != reversed.end()) {
    out.values["help"] = {"true"};
    return out;
  }
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ExtrasError& error) {
    return Error(Reason::kInvalid, "{}{}", error.what(), FlagHint(words, flags));
  } catch (const CLI::Error& error) {
    return Error(Reason::kInvalid, "{}", error.what());
  }
  for (const std::unique_ptr<Bound>& bound : bounds) {
    for (const std::string& value : bound->values)
      RETURN_IF_ERROR(CheckChoice(*bound->flag, value));
    if (!bound->values.empty()) out.values[bound->flag->name] = std::move(bound->values);
    if (bound->on) out.values[bound->flag->name] = {"true"};
  }
  return out;
}

}  // namespace muster::cli
