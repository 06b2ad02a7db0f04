#include "cli/cli.h"

#include <memory>

#include "base/log.h"
#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/errors.h"
#include "cli/help.h"
#include "cli/session.h"

namespace muster::cli {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

int Fail(Console& console, const Session& session, const Status& status) {
  console.Err(DescribeError(status));
  if (status.reason() != Reason::kUnauthorized) return kFailed;
  const std::string fault = DescribeCertificate(session.certificate_pem(), RealClock().Wall());
  if (!fault.empty()) console.Err(fault);
  return kFailed;
}

int RunCommand(const Command& command, const Arguments& arguments, Console& console) {
  if (command.run_offline != nullptr) {
    Result<int> code = command.run_offline(arguments, console);
    console.StatusLine("");
    if (code) return *code;
    console.Err("error: " + code.error().message());
    return kFailed;
  }
  Result<std::unique_ptr<Session>> session = Session::Open(arguments);
  if (!session) {
    console.Err("error: " + session.error().message());
    return kFailed;
  }
  Invocation invocation{arguments, console, **session};
  Result<int> code = command.run(invocation);
  for (const std::string& warning : (*session)->TakeWarnings()) console.Err("Warning: " + warning);
  console.StatusLine("");
  return code ? *code : Fail(console, **session, code.error());
}

// Flags for every command may also stand before it: muster -n team get pods.
int SplitLine(int argc, char** argv, std::string& name, std::vector<std::string>& words) {
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; ++i) {
    words.emplace_back(argv[i]);
    const bool takes_value = words.back().find('=') == std::string::npos &&
                             words.back() != "--help" && words.back() != "-h" &&
                             words.back() != "--version";
    if (takes_value && i + 1 < argc) words.emplace_back(argv[++i]);
  }
  if (i >= argc) return i;
  name = argv[i];
  words.insert(words.begin(), argv + i + 1, argv + argc);
  return i;
}

std::vector<Command>& MutableCommands() {
  static std::vector<Command> commands = {
      ApplyCommand(),    CompletionCommand(), DeleteCommand(), DescribeCommand(),   ExecCommand(),
      ExplainCommand(),  GetCommand(),        ImageCommand(),  KubeconfigCommand(), LogsCommand(),
      cli::RunCommand(), StatusCommand(),     TopCommand(),    VersionCommand(),    WaitCommand()};
  return commands;
}

}  // namespace

std::vector<Flag> GlobalFlags(const Command& command) {
  static const std::vector<Flag> kFlags = {
      {"namespace",
       'n',
       "NAME",
       "the namespace (default: the kubeconfig's, else \"default\")",
       "",
       {}},
      {"kubeconfig",
       0,
       "FILE",
       "default: $KUBECONFIG, else that of `muster up`, else ~/.kube/config",
       "",
       {}},
      {"context", 0, "NAME", "a context of the kubeconfig (default: its current one)", "", {}},
      {"help", 'h', "", "this text", "", {}}};
  if (command.local) return {kFlags.back()};
  return kFlags;
}

const std::vector<Command>& AllCommands() { return MutableCommands(); }

void AddCommands(std::vector<Command> commands) {
  for (Command& command : commands) MutableCommands().push_back(std::move(command));
}

const Command* FindCommand(std::string_view name) {
  for (const Command& command : AllCommands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

int RunCli(int argc, char** argv) {
  SetLogLevel(LogLevel::kError);
  Console console;
  std::string name;
  std::vector<std::string> words;
  SplitLine(argc, argv, name, words);
  if (name.empty() || name == "help") {
    const Command* topic = words.empty() ? nullptr : FindCommand(words.front());
    if (!words.empty() && words.front() == "--version")
      return RunCommand(*FindCommand("version"), {}, console);
    console.Out(topic != nullptr ? HelpFor(*topic) : GeneralHelp());
    const bool asked =
        name == "help" || (!words.empty() && (words.front() == "--help" || words.front() == "-h"));
    return asked ? 0 : kWrongUsage;
  }
  const Command* command = FindCommand(name);
  if (command == nullptr) {
    const std::string nearest = NearestCommand(name);
    const std::string hint = nearest.empty() ? "" : " Did you mean `muster " + nearest + "`?";
    console.Err(fmt::format("error: unknown command {:?}.{} See: muster --help", name, hint));
    return kWrongUsage;
  }
  Result<Arguments> arguments = ParseArguments(*command, words);
  if (!arguments) {
    console.Err(fmt::format("error: {}. See: muster {} --help", arguments.error().message(), name));
    return kWrongUsage;
  }
  if (arguments->Has("help")) {
    console.Out(HelpFor(*command));
    return 0;
  }
  return RunCommand(*command, *arguments, console);
}

}  // namespace muster::cli
