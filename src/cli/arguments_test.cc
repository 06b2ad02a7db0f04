#include "cli/arguments.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/cli_testing.h"
#include "cli/duration_flag.h"
#include "cli/help.h"

namespace muster::cli {
namespace {

TEST(ParseArguments, ReadsFlagsAsKubectlUsersWriteThem) {
  auto parsed = ParseArguments(*FindCommand("get"),
                               {"pods", "-owide", "-l", "a=b", "-A", "--field-selector=c=d"});
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
  EXPECT_EQ(parsed->Get("output"), "wide");
  EXPECT_EQ(parsed->Get("selector"), "a=b");
  EXPECT_EQ(parsed->Get("field-selector"), "c=d");
  EXPECT_TRUE(parsed->Has("all-namespaces"));
  EXPECT_FALSE(parsed->Has("watch"));
  EXPECT_EQ(parsed->positionals, (std::vector<std::string>{"pods"}));
}

TEST(ParseArguments, SuggestsTheFlagThatWasMeant) {
  const auto message = [](const char* command, const char* word) {
    const auto parsed = ParseArguments(*FindCommand(command), {"pods", word});
    return parsed ? "" : parsed.error().message();
  };
  const std::string text = message("get", "--namespce=x");
  EXPECT_NE(text.find("(did you mean --namespace?)"), text.npos) << text;
  EXPECT_NE(message("logs", "--folow").find("--follow"), text.npos);
  EXPECT_EQ(message("get", "--nonsense").find("did you mean"), text.npos);
  EXPECT_EQ(UnknownFlagHint({"--", "--data-dur"}, {"--data-dir"}), "") << "the program's";
}

TEST(ParseArguments, ACommandOnFilesHasNoFlagsOfAClient) {
  Command command;
  command.name = "check";
  command.local = true;
  EXPECT_FALSE(ParseArguments(command, {"--namespace", "x"}).has_value());
  EXPECT_TRUE(ParseArguments(command, {"--help"}).has_value());
  EXPECT_EQ(HelpFor(command).find("kubeconfig"), std::string::npos) << HelpFor(command);
}

TEST(ParseArguments, LeavesTheProgramAlone) {
  auto parsed = ParseArguments(*FindCommand("exec"),
                               {"-it", "web-0", "-n", "team", "--", "ls", "-n", "--help"});
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
  EXPECT_TRUE(parsed->Has("stdin"));
  EXPECT_TRUE(parsed->Has("tty"));
  EXPECT_FALSE(parsed->Has("help"));
  EXPECT_EQ(parsed->Get("namespace"), "team");
  EXPECT_EQ(parsed->positionals, (std::vector<std::string>{"web-0"}));
  EXPECT_EQ(parsed->program, (std::vector<std::string>{"ls", "-n", "--help"}));
}

TEST(ParseArguments, RepeatsFlagsAndFillsDefaults) {
  auto parsed = ParseArguments(*FindCommand("apply"), {"-f", "a", "-f", "b"});
  EXPECT_EQ(parsed->GetAll("filename"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(ParseArguments(*FindCommand("wait"), {})->Get("timeout"), "30s");
}

TEST(ParseArguments, RefusesWhatItDoesNotKnow) {
  EXPECT_FALSE(ParseArguments(*FindCommand("get"), {"pods", "--colour"}).has_value());
  EXPECT_FALSE(ParseArguments(*FindCommand("get"), {"pods", "-o", "xml"}).has_value());
  EXPECT_FALSE(ParseArguments(*FindCommand("get"), {"pods", "--", "x"}).has_value());
  auto number = ParseArguments(*FindCommand("run"), {"--gpus", "two", "--", "x"});
  EXPECT_FALSE(number->GetInt("gpus", 0).has_value());
}

TEST(ParseDurationFlag, ReadsKubectlDurations) {
  EXPECT_EQ(*ParseDurationFlag("timeout", "1m30s"), seconds(90));
  EXPECT_EQ(*ParseDurationFlag("timeout", "500ms"), milliseconds(500));
  EXPECT_EQ(*ParseDurationFlag("timeout", "0"), Duration(0));
  EXPECT_GT(*ParseDurationFlag("timeout", "-1s"), hours(24));
  for (const char* bad : {"", "5", "s", "5d", "1h x"})
    EXPECT_FALSE(ParseDurationFlag("timeout", bad).has_value()) << bad;
}

TEST(ParseSpanFlag, HasAnEnd) {
  EXPECT_EQ(*ParseSpanFlag("for", "1h30m"), minutes(90));
  EXPECT_EQ(*ParseSpanFlag("for", "168h"), hours(168));
  for (const char* bad : {"", "-3m", "-1s", "168h1s", "277777h277777h277777h", "5"})
    EXPECT_FALSE(ParseSpanFlag("for", bad).has_value()) << bad;
}

TEST(Help, EveryCommandHasExamples) {
  for (const Command& command : AllCommands()) {
    const std::string help = HelpFor(command);
    EXPECT_NE(help.find("Examples:"), std::string::npos) << command.name;
    EXPECT_NE(GeneralHelp().find("  " + command.name + " "), std::string::npos) << command.name;
    EXPECT_TRUE((command.run == nullptr) != (command.run_offline == nullptr)) << command.name;
  }
  EXPECT_EQ(NearestCommand("gte"), "get");
  EXPECT_EQ(NearestCommand("decsribe"), "describe");
  EXPECT_EQ(NearestCommand("frobnicate"), "");
}

TEST(Completion, ScriptsAreValidShell) {
  const Command& command = *FindCommand("completion");
  for (const char* shell : {"bash", "zsh", "fish"}) {
    Console console{Console::Capture{}};
    Arguments arguments;
    arguments.positionals = {shell};
    ASSERT_TRUE(command.run_offline(arguments, console).has_value());
    EXPECT_NE(console.out.find("pytorchjobs"), std::string::npos);
    if (std::string(shell) != "bash") continue;
    const std::string path =
        std::filesystem::temp_directory_path() / ("muster-completion-" + std::to_string(getpid()));
    std::ofstream(path) << console.out;
    EXPECT_EQ(system(("bash -n " + path).c_str()), 0);
    const std::string probe =
        "bash -c 'source " + path +
        "; COMP_WORDS=(muster ge); COMP_CWORD=1; _muster; echo ${COMPREPLY[*]}' | grep -qx get";
    EXPECT_EQ(system(probe.c_str()), 0);
    std::filesystem::remove(path);
  }
}

}  // namespace
}  // namespace muster::cli
