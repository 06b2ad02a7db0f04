#include "cli/cli.h"

#include <algorithm>
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

struct Line {
  std::string name;                // of the command; "" there is none
  std::vector<std::string> words;  // all others
  std::string stray;               // a flag before the command that not every command has
};

// Flags for every command may also stand before it: muster -n team get pods.
Line SplitLine(int argc, char** argv) {
  Line line;
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; ++i) {
    const std::string word = argv[i];
    line.words.push_back(word);
    if (word == "--help" || word == "-h" || word == "--version") continue;
    const bool short_form = word.starts_with("-n") && word[1] == 'n';
    const bool known = short_form || IsGlobalFlag(word.substr(0, word.find('=')));
    if (!known && line.stray.empty()) line.stray = word;
    const bool takes_value = known && word.find('=') == word.npos && (!short_form || word == "-n");
    if (takes_value && i + 1 < argc) line.words.emplace_back(argv[++i]);
  }
  if (i >= argc) return line;
  line.name = argv[i];
  line.words.insert(line.words.begin(), argv + i + 1, argv + argc);
  return line;
}

int WrongUsage(Console& console, const std::string& fault, const std::string& command = "") {
  console.Err(
      fmt::format("error: {}. See: muster {}{}--help", fault, command, command.empty() ? "" : " "));
  return kWrongUsage;
}

int UnknownCommand(Console& console, const std::string& name) {
  const std::string nearest = NearestCommand(name);
  return WrongUsage(
      console, fmt::format("unknown command {:?}{}", name,
                           nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest)));
}

// muster, muster --help, muster --version, muster help [COMMAND].
int WithoutCommand(const Line& line, Console& console) {
  const std::string first = line.words.empty() ? "" : line.words.front();
  if (line.name.empty() && !line.stray.empty())
    return WrongUsage(console, "unknown flag " + line.stray);
  if (line.name.empty() && first == "--version")
    return RunCommand(*FindCommand("version"), {}, console);
  const bool asked = line.name == "help" || first == "--help" || first == "-h";
  if (!asked && !line.words.empty()) return WrongUsage(console, "a command is missing");
  if (line.name.empty() || line.words.empty()) {
    console.Out(GeneralHelp());
    return asked ? 0 : kWrongUsage;
  }
  const Command* topic = FindCommand(first);
  if (topic == nullptr) return UnknownCommand(console, first);
  if (line.words.size() > 1)
    return WrongUsage(console, fmt::format("unexpected argument {:?}", line.words[1]), "help");
  console.Out(HelpFor(*topic));
  return 0;
}

std::vector<Command>& MutableCommands() {
  static std::vector<Command> commands = {
      ApplyCommand(),  CompletionCommand(), CostCommand(),       DashboardCommand(),
      DeleteCommand(), DescribeCommand(),   ExecCommand(),       ExplainCommand(),
      GetCommand(),    ImageCommand(),      KubeconfigCommand(), LogsCommand(),
      ModelsCommand(), NodeCommand(),       cli::RunCommand(),   StatusCommand(),
      SyncCommand(),   TopCommand(),        VersionCommand(),    WaitCommand()};
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

bool IsGlobalFlag(std::string_view word) {
  return std::ranges::any_of(GlobalFlags(Command()),
                             [word](const Flag& flag) { return word == "--" + flag.name; });
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
  const Line line = SplitLine(argc, argv);
  if (line.name.empty() || line.name == "help") return WithoutCommand(line, console);
  const Command* command = FindCommand(line.name);
  if (command == nullptr) return UnknownCommand(console, line.name);
  Result<Arguments> arguments = ParseArguments(*command, line.words);
  if (!arguments) return WrongUsage(console, arguments.error().message(), line.name);
  if (arguments->Has("help")) {
    console.Out(HelpFor(*command));
    return 0;
  }
  return RunCommand(*command, *arguments, console);
}

}  // namespace muster::cli
