// src/cli/command.h
//
// Command: one subcommand, declared once. Parsing, --help and shell completion are all made from
// this declaration.
//
// Life cycle: commands are static values (AllCommands()); an Invocation lives for one run.
// Thread:     the loop thread.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::cli {

class Console;
class Session;

struct Flag {
  std::string name;   // "namespace": --namespace
  char letter = 0;    // 'n': -n; 0 = none
  std::string value;  // what stands for its value in the help, "NAME"; "" = a switch
  std::string help;
  std::string otherwise;             // the value when it is not given
  std::vector<std::string> choices;  // completion and check; empty = anything
};

struct Example {
  std::string command;
  std::string meaning;
};

class Arguments {
 public:
  bool Has(std::string_view flag) const { return values.contains(flag); }
  std::string Get(std::string_view flag) const;  // the last one given, else its default, else ""
  std::vector<std::string> GetAll(std::string_view flag) const;  // as often as it was given
  // nullopt-like Result: Invalid names the flag if it is not a whole number.
  Result<int64_t> GetInt(std::string_view flag, int64_t otherwise) const;
  // ... or outside of these.
  Result<int64_t> GetInt(std::string_view flag, int64_t otherwise, int64_t least,
                         int64_t most) const;

  std::map<std::string, std::vector<std::string>, std::less<>> values;  // a switch has "true"
  std::map<std::string, std::string, std::less<>> defaults;
  std::vector<std::string> positionals;
  std::vector<std::string> program;  // what stood after "--"
};

struct Invocation {
  const Arguments& arguments;
  Console& console;
  Session& session;
};

inline constexpr size_t kAnyNumber = SIZE_MAX;
// In Command::exclusive: names of objects among the words.
inline constexpr const char* kNames = "NAME";

// The first word of a command that does several things.
struct Verb {
  std::string name;
  size_t least_words = 0, most_words = 0;  // after it
  std::vector<std::string> flags = {};     // of the command's, that no other verb knows
  bool takes_program = false;
};

struct Command {
  std::string name;
  std::string summary;  // one line
  std::string usage;    // after the name: "TYPE [NAME...] [flags]"
  std::string details;  // more sentences for --help; may be ""
  std::vector<Flag> flags;
  std::vector<Example> examples;
  // What may stand on the line is checked before the command runs, and offered by completion: a
  // command that says nothing takes no words.
  size_t least_words = 0, most_words = 0;
  std::string instead = {};      // what to do where words are not taken; may be ""
  std::vector<Verb> verbs = {};  // then these say how many words
  std::vector<std::vector<std::string>> exclusive = {};  // at most one flag of each (or kNames)
  std::map<std::string, std::vector<std::string>> needs = {};  // a flag needs one of these
  bool takes_program = false;                                  // "-- CMD ARGS..."
  bool names_objects = false;                                  // completion offers types and names
  bool local = false;  // works on this machine's files: has no flags that choose a cluster
  // Exactly one. A Status becomes an error message and exit code 1.
  Result<int> (*run)(Invocation&) = nullptr;
  Result<int> (*run_offline)(const Arguments&, Console&) = nullptr;  // needs no cluster
};

const std::vector<Command>& AllCommands();
// Commands of folders below this one, before RunCli().
void AddCommands(std::vector<Command> commands);
const Command* FindCommand(std::string_view name);
// --namespace, --kubeconfig, --context, --help: those that a command has besides its own.
std::vector<Flag> GlobalFlags(const Command& command);
bool IsGlobalFlag(std::string_view word);  // "--context"

// The subcommands, one file each.
Command ApplyCommand();
Command CompletionCommand();
Command CostCommand();
Command DashboardCommand();
Command DeleteCommand();
Command DescribeCommand();
Command ExecCommand();
Command ExplainCommand();
Command GetCommand();
Command ImageCommand();
Command KubeconfigCommand();
Command LogsCommand();
Command ModelsCommand();
Command NodeCommand();
Command RunCommand();
Command StatusCommand();
Command SyncCommand();
Command TopCommand();
Command VersionCommand();
Command WaitCommand();

}  // namespace muster::cli
