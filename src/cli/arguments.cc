#include "cli/arguments.h"

#include <algorithm>
#include <span>

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

Status CheckCount(const Command& command, std::span<const std::string> words, size_t least,
                  size_t most) {
  if (words.size() < least) {
    return Error(Reason::kInvalid, "something is missing: muster {} {}", command.name,
                 command.usage);
  }
  if (words.size() <= most) return Status::Ok();
  return Error(Reason::kInvalid, "unexpected argument {:?}{}{}", words[most],
               command.instead.empty() ? "" : ": ", command.instead);
}

Status CheckVerb(const Command& command, const Arguments& arguments) {
  std::vector<std::string> names;
  for (const Verb& verb : command.verbs) names.push_back(verb.name);
  if (arguments.positionals.empty())
    return Error(Reason::kInvalid, "say what: muster {} {}", command.name, Join(names, "|"));
  const std::string& word = arguments.positionals.front();
  const auto verb = std::ranges::find(command.verbs, word, &Verb::name);
  if (verb == command.verbs.end()) {
    const std::string nearest = Nearest(word, names);
    return Error(Reason::kInvalid, "{:?}: expected {}{}", word, Join(names, ", "),
                 nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest));
  }
  RETURN_IF_ERROR(CheckCount(command, std::span(arguments.positionals).subspan(1),
                             verb->least_words, verb->most_words));
  if (!verb->takes_program && !arguments.program.empty())
    return Error(Reason::kInvalid, "{} {}: nothing may follow --", command.name, word);
  for (const Verb& other : command.verbs) {
    for (const std::string& flag : other.flags) {
      if (arguments.Has(flag) && std::ranges::find(verb->flags, flag) == verb->flags.end())
        return Error(Reason::kInvalid, "--{} has no meaning for {} {}", flag, command.name, word);
    }
  }
  return Status::Ok();
}

bool HasNames(const std::vector<std::string>& positionals) {
  return positionals.size() > 1 ||
         (positionals.size() == 1 && positionals[0].find('/') != std::string::npos);
}

Status CheckTogether(const Command& command, const Arguments& arguments) {
  const auto has = [&arguments](const std::string& flag) {
    return flag == kNames ? HasNames(arguments.positionals) : arguments.Has(flag);
  };
  const auto shown = [](const std::string& flag) {
    return flag == kNames ? std::string("names") : "--" + flag;
  };
  for (const std::vector<std::string>& group : command.exclusive) {
    std::vector<std::string> given;
    for (const std::string& flag : group) {
      if (has(flag)) given.push_back(shown(flag));
    }
    if (given.size() > 1)
      return Error(Reason::kInvalid, "{} contradict each other: give one", Join(given, " and "));
  }
  for (const auto& [flag, others] : command.needs) {
    if (!has(flag) || std::ranges::any_of(others, has)) continue;
    std::vector<std::string> names;
    for (const std::string& other : others) names.push_back(shown(other));
    return Error(Reason::kInvalid, "{} has a meaning only with {}", shown(flag),
                 Join(names, " or "));
  }
  return Status::Ok();
}

Status CheckLine(const Command& command, const Arguments& arguments) {
  RETURN_IF_ERROR(CheckTogether(command, arguments));
  if (!command.verbs.empty()) return CheckVerb(command, arguments);
  return CheckCount(command, arguments.positionals, command.least_words, command.most_words);
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

Result<int64_t> Arguments::GetInt(std::string_view flag, int64_t otherwise, int64_t least,
                                  int64_t most) const {
  ASSIGN_OR_RETURN(const int64_t number, GetInt(flag, otherwise));
  if (number >= least && number <= most) return number;
  return Error(Reason::kInvalid, "--{} {}: expected {} to {}", std::string(flag), number, least,
               most);
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
  RETURN_IF_ERROR(CheckLine(command, out));
  return out;
}

}  // namespace muster::cli
