#include "app/app_commands.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/help.h"

namespace muster::app {
namespace {

using cli::Command;

// Every command of the binary.
const std::vector<Command>& All() {
  static const bool added = [] {
    cli::AddCommands(AppCommands());
    return true;
  }();
  EXPECT_TRUE(added);
  return cli::AllCommands();
}

std::string Refusal(const Command& command, const std::vector<std::string>& words) {
  const auto parsed = cli::ParseArguments(command, words);
  return parsed ? "" : parsed.error().message();
}

using Words = std::vector<std::string>;

TEST(AllCommands, RefuseWhatTheyDoNotKnow) {
  std::set<std::string> names;
  for (const Command& command : All()) {
    EXPECT_TRUE(names.insert(command.name).second) << command.name;
    EXPECT_NE(Refusal(command, {"--bogus"}), "") << command.name;
    EXPECT_NE(Refusal(command, {"-Z"}), "") << command.name;
    if (!command.takes_program) {
      EXPECT_NE(Refusal(command, {"--", "ls"}), "") << command.name;
    }
    if (command.verbs.empty() && command.most_words != cli::kAnyNumber) {
      const Words many(command.most_words + 1, "extra");
      EXPECT_NE(Refusal(command, many).find("unexpected argument \"extra\""), std::string::npos)
          << command.name;
    }
    for (const cli::Verb& verb : command.verbs) {
      if (verb.most_words == cli::kAnyNumber) continue;
      Words many(verb.most_words + 1, "extra");
      many.insert(many.begin(), verb.name);
      EXPECT_NE(Refusal(command, many), "") << command.name << " " << verb.name;
    }
    if (!command.verbs.empty()) {
      EXPECT_NE(Refusal(command, {"bogus"}).find("expected"), std::string::npos) << command.name;
      EXPECT_NE(Refusal(command, {}).find("say what"), std::string::npos) << command.name;
    }
  }
}

// What is declared about a flag names a flag that is there.
TEST(AllCommands, DeclareOnlyFlagsThatTheyHave) {
  for (const Command& command : All()) {
    std::set<std::string> flags = {cli::kNames};
    std::set<char> letters;
    std::vector<cli::Flag> all = command.flags;
    for (const cli::Flag& flag : cli::GlobalFlags(command)) all.push_back(flag);
    for (const cli::Flag& flag : all) {
      EXPECT_TRUE(flags.insert(flag.name).second) << command.name << " --" << flag.name;
      EXPECT_TRUE(flag.letter == 0 || letters.insert(flag.letter).second) << command.name;
    }
    std::vector<std::string> named;
    for (const auto& group : command.exclusive)
      named.insert(named.end(), group.begin(), group.end());
    for (const auto& [flag, others] : command.needs) {
      named.push_back(flag);
      named.insert(named.end(), others.begin(), others.end());
    }
    for (const cli::Verb& verb : command.verbs)
      named.insert(named.end(), verb.flags.begin(), verb.flags.end());
    for (const std::string& flag : named)
      EXPECT_TRUE(flags.contains(flag)) << command.name << " --" << flag;
  }
}

TEST(AllCommands, RefuseWhatContradictsItself) {
  const std::vector<std::pair<const char*, Words>> refused = {
      {"kubeconfig", {"--merge", "--unmerge"}},
      {"kubeconfig", {"--path", "--merge"}},
      {"kubeconfig", {"--no-switch"}},
      {"kubeconfig", {"--into", "x"}},
      {"kubeconfig", {"--data-dir", "x", "--kubeconfig", "y"}},
      {"completion", {"bash", "zsh"}},
      {"delete", {"pods", "x", "--all"}},
      {"delete", {"pod/x", "-l", "a=b"}},
      {"delete", {"-f", "x", "--all"}},
      {"delete", {"pods", "x", "--now", "--force"}},
      {"delete", {"pods", "x", "-R"}},
      {"get", {"pods", "x", "-l", "a=b"}},
      {"get", {"pods", "x", "-A"}},
      {"describe", {"pod/x", "-l", "a=b"}},
      {"wait", {"pod/x", "--all"}},
      {"wait", {"pods", "--all", "-l", "a=b"}},
      {"image", {"pull"}},
      {"image", {"list", "x"}},
      {"image", {"pull", "x", "--name", "y"}},
      {"service", {"status", "--print"}},
      {"service", {"uninstall", "--", "--listen", "x"}},
      {"top", {"gpus", "x"}},
      {"simulate", {"--nodes", "1x8", "--jobs", "x", "--seed", "2"}},
      {"simulate", {"--policy", "lottery"}},
      {"backup", {}},
      {"restore", {"a", "b"}},
      {"check-store", {"a", "b"}},
      {"doctor", {"extra"}},
      {"up", {"extra"}},
      {"down", {"--detach"}},
      {"status", {"x"}},
      {"version", {"x"}},
      {"apply", {"x.yaml"}},
      {"run", {"python"}},
  };
  for (const auto& [name, words] : refused) {
    for (const Command& command : All()) {
      if (command.name != name) continue;
      EXPECT_NE(Refusal(command, words), "") << name << " " << testing::PrintToString(words);
    }
  }
}

// As they stand in --help, up to a pipe or a second command.
TEST(AllCommands, AcceptTheirOwnExamples) {
  for (const Command& command : All()) {
    for (const cli::Example& example : command.examples) {
      Words words;
      std::string line = example.command.substr(0, example.command.find_first_of("|><;&("));
      if (!line.starts_with("muster " + command.name)) continue;
      for (size_t at = line.find(command.name) + command.name.size(); at < line.size();) {
        const size_t begin = line.find_first_not_of(' ', at);
        if (begin == line.npos) break;
        at = std::min(line.find(' ', begin), line.size());
        words.push_back(line.substr(begin, at - begin));
      }
      EXPECT_EQ(Refusal(command, words), "") << example.command;
    }
  }
}

// From one declaration: neither help nor completion can forget a command, a flag or a word.
TEST(AllCommands, AreInHelpAndEveryCompletion) {
  const Command& completion = *cli::FindCommand("completion");
  const std::string help = cli::GeneralHelp();
  std::vector<std::string> scripts;
  for (const cli::Verb& shell : completion.verbs) {
    cli::Console console{cli::Console::Capture{}};
    cli::Arguments arguments;
    arguments.positionals = {shell.name};
    ASSERT_TRUE(completion.run_offline(arguments, console).has_value());
    scripts.push_back(console.out);
  }
  for (const Command& command : All()) {
    EXPECT_NE(help.find("\n  " + command.name + " "), std::string::npos) << command.name;
    const std::string own = cli::HelpFor(command);
    for (const cli::Flag& flag : command.flags)
      EXPECT_NE(own.find("--" + flag.name), std::string::npos) << command.name << flag.name;
    for (const std::string& script : scripts) {
      std::vector<std::string> wanted = {command.name};
      for (const cli::Flag& flag : command.flags) wanted.push_back(flag.name);
      for (const cli::Verb& verb : command.verbs) wanted.push_back(verb.name);
      for (const std::string& word : wanted)
        EXPECT_NE(script.find(word), std::string::npos) << command.name << " " << word;
    }
  }
}

}  // namespace
}  // namespace muster::app
