// muster completion: scripts for shells, made from the declarations of the commands.

#include "base/strings.h"
#include "cli/command.h"
#include "cli/console.h"

namespace muster::cli {
namespace {

constexpr int kMaxCompletionNames = 200;
constexpr const char* kTypes =
    "pods pytorchjobs nodes services configmaps secrets events namespaces podgroups "
    "persistentvolumeclaims serviceaccounts";

std::string FlagWords(const Command& command) {
  std::string out;
  auto add = [&out](const Flag& flag) { out += (out.empty() ? "--" : " --") + flag.name; };
  for (const Flag& flag : command.flags) add(flag);
  for (const Flag& flag : GlobalFlags(command)) add(flag);
  return out;
}

std::string AllNames() {
  std::string out;
  for (const Command& command : AllCommands()) out += command.name + " ";
  return out + "help";
}

std::string ChoiceCases() {
  std::string out;
  for (const Command& command : AllCommands()) {
    for (const Flag& flag : command.flags) {
      if (flag.choices.empty()) continue;
      std::string words;
      for (const std::string& choice : flag.choices) words += choice + " ";
      out += fmt::format("    {}:--{}", command.name, flag.name);
      if (flag.letter != 0) out += fmt::format("|{}:-{}", command.name, flag.letter);
      out += fmt::format(") COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")); return ;;\n", words);
    }
  }
  return out;
}

// Names come from the server, within kNamePatience and kMaxCompletionNames: a shell must not hang.
constexpr const char* kNamePatience = "2";

// `muster get TYPE -o name`, for the namespace on the command line. $1 is the type.
std::string NamesFunction() {
  return fmt::format(
      "_muster_names() {{\n"
      "  local i in=()\n"
      "  for ((i = 2; i < COMP_CWORD; i++)); do\n"
      "    case \"${{COMP_WORDS[i]}}\" in\n"
      "      -n|--namespace|--kubeconfig|--context) in+=(\"${{COMP_WORDS[i]}}\" "
      "\"${{COMP_WORDS[i+1]}}\") ;;\n"
      "    esac\n"
      "  done\n"
      "  timeout {} muster get \"$1\" \"${{in[@]}}\" -o name 2>/dev/null </dev/null | head -n {} | "
      "cut -d/ -f2\n"
      "}}\n",
      kNamePatience, kMaxCompletionNames);
}

// `muster logs POD`: its first word is no type.
bool TakesPod(const Command& command) { return command.name == "logs" || command.name == "exec"; }

// What a command takes besides flags: types and names, or pods.
std::string ObjectCases() {
  std::string out;
  for (const Command& command : AllCommands()) {
    if (!command.names_objects) continue;
    const std::string first = TakesPod(command) ? "$(_muster_names pods)" : kTypes;
    // The first word is a type; the words after it are names of that type.
    out += fmt::format(
        "    {}) if [[ \"$cur\" == */* ]]; then COMPREPLY=($(compgen -P \"${{cur%%/*}}/\" -W "
        "\"$(_muster_names \"${{cur%%/*}}\")\" -- \"${{cur#*/}}\"))\n"
        "      elif [ -z \"$type\" ]; then COMPREPLY=($(compgen -W \"{}\" -- \"$cur\"))\n"
        "      else COMPREPLY=($(compgen -W \"$(_muster_names \"$type\")\" -- \"$cur\")); fi ;;\n",
        command.name, first);
  }
  return out;
}

std::string FlagCases() {
  std::string out;
  for (const Command& command : AllCommands()) {
    out += fmt::format("      {}) COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")) ;;\n", command.name,
                       FlagWords(command));
  }
  return out;
}

// The first words of commands that do several things.
std::string VerbCases() {
  std::string out;
  for (const Command& command : AllCommands()) {
    if (command.verbs.empty()) continue;
    std::string names;
    for (const Verb& verb : command.verbs) names += (names.empty() ? "" : " ") + verb.name;
    out += fmt::format(
        "    {}) if [ -z \"$type\" ]; then COMPREPLY=($(compgen -W \"{}\" -- \"$cur\"))\n"
        "      else COMPREPLY=($(compgen -f -- \"$cur\")); fi ;;\n",
        command.name, names);
  }
  return out;
}

// "get:--output|get:-o|...": the flags of each command that `wanted` picks.
template <class Wanted>
std::string FlagPatterns(Wanted wanted) {
  std::string out;
  for (const Command& command : AllCommands()) {
    std::vector<Flag> flags = command.flags;
    for (Flag& flag : GlobalFlags(command)) flags.push_back(std::move(flag));
    for (const Flag& flag : flags) {
      if (!wanted(flag)) continue;
      out += fmt::format("{}{}:--{}", out.empty() ? "" : "|", command.name, flag.name);
      if (flag.letter != 0) out += fmt::format("|{}:-{}", command.name, flag.letter);
    }
  }
  return out;
}

// The word after one of these is no type and no name.
bool TakesValue(const Flag& flag) { return !flag.value.empty(); }
bool TakesFile(const Flag& flag) {
  return flag.value.starts_with("FILE") || flag.value == "DIR" || flag.name == "kubeconfig";
}
bool TakesNamespace(const Flag& flag) { return flag.name == "namespace"; }

std::string BashScript() {
  return "# bash completion for muster; try it with: source <(muster completion bash)\n" +
         NamesFunction() +
         "_muster() {\n"
         "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\" "
         "command=\"${COMP_WORDS[1]}\" type= i\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         AllNames() +
         "\" -- \"$cur\")); return\n"
         "  fi\n"
         "  for ((i = 2; i < COMP_CWORD && ${#type} == 0; i++)); do\n"
         "    case \"$command:${COMP_WORDS[i]}\" in\n      " +
         FlagPatterns(TakesValue) +
         ") ((i++)) ;;\n      *:-*) ;;\n      *) type=\"${COMP_WORDS[i]}\" ;;\n"
         "    esac\n  done\n"
         "  case \"$command:$prev\" in\n    " +
         FlagPatterns(TakesFile) + ") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n    " +
         FlagPatterns(TakesNamespace) +
         ") COMPREPLY=($(compgen -W \"$(_muster_names namespaces)\" -- \"$cur\")); return ;;\n" +
         ChoiceCases() +
         "  esac\n"
         "  if [[ \"$cur\" == -* ]]; then\n"
         "    case \"$command\" in\n" +
         FlagCases() +
         "    esac\n    return\n  fi\n  case \"$command\" in\n"
         "    help) COMPREPLY=($(compgen -W \"" +
         AllNames() + "\" -- \"$cur\")) ;;\n" + VerbCases() + ObjectCases() +
         "    *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n  esac\n}\n"
         "complete -F _muster muster\n";
}

std::string ZshScript() {
  return "#compdef muster\n# zsh completion for muster; try it with: source <(muster completion "
         "zsh)\n"
         "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         BashScript();
}

std::string FishQuote(const std::string& text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string FishFlag(const std::string& when, const Flag& flag) {
  std::string out = fmt::format("{} -l {}", when, flag.name);
  if (flag.letter != 0) out += fmt::format(" -s {}", flag.letter);
  if (TakesFile(flag)) {
    out += " -r -F";
  } else if (TakesNamespace(flag)) {
    out += fmt::format(
        " -x -a '(timeout {} muster get namespaces -o name 2>/dev/null | head -n {} | "
        "cut -d/ -f2)'",
        kNamePatience, kMaxCompletionNames);
  } else if (!flag.choices.empty()) {
    out += " -x -a " + FishQuote(Join(flag.choices, " "));
  } else if (TakesValue(flag)) {
    out += " -x";
  }
  return out + " -d " + FishQuote(flag.help) + "\n";
}

std::string FishScript() {
  std::string out =
      "# fish completion for muster; try it with: muster completion fish | source\ncomplete -c "
      "muster -f\n";
  std::string topics;
  for (const Command& command : AllCommands()) {
    out += fmt::format("complete -c muster -n __fish_use_subcommand -a {} -d {}\n", command.name,
                       FishQuote(command.summary));
    const std::string when =
        fmt::format("complete -c muster -n '__fish_seen_subcommand_from {}'", command.name);
    topics += command.name + " ";
    std::vector<Flag> flags = command.flags;
    for (Flag& flag : GlobalFlags(command)) flags.push_back(std::move(flag));
    for (const Flag& flag : flags) out += FishFlag(when, flag);
    std::string verbs;
    for (const Verb& verb : command.verbs) verbs += verb.name + " ";
    if (!verbs.empty())
      out += fmt::format("{} -n 'test (count (commandline -opc)) -eq 2' -a {}\n", when,
                         FishQuote(verbs));
    if (!command.names_objects) continue;
    const std::string names = fmt::format(
        "(timeout {} muster get {} -o name 2>/dev/null | head -n {} | cut -d/ "
        "-f2)",
        kNamePatience, TakesPod(command) ? "pods" : "(commandline -opc)[3]", kMaxCompletionNames);
    if (!TakesPod(command))
      out += fmt::format("{} -n 'test (count (commandline -opc)) -eq 2' -a {}\n", when,
                         FishQuote(kTypes));
    out += fmt::format("{} -n 'test (count (commandline -opc)) -ge {}' -a {}\n", when,
                       TakesPod(command) ? 2 : 3, FishQuote(names));
  }
  out +=
      "complete -c muster -n __fish_use_subcommand -a help\n"
      "complete -c muster -n '__fish_seen_subcommand_from help' -a " +
      FishQuote(topics) + "\n";
  return out;
}

Result<int> Run(const Arguments& arguments, Console& console) {
  const std::string& shell = arguments.positionals[0];
  console.Out(shell == "bash" ? BashScript() : shell == "zsh" ? ZshScript() : FishScript());
  return 0;
}

}  // namespace

Command CompletionCommand() {
  Command command;
  command.name = "completion";
  command.summary = "shell completion for bash, zsh and fish";
  command.usage = "bash|zsh|fish";
  command.examples = {{"source <(muster completion bash)", "this shell"},
                      {"muster completion bash > /etc/bash_completion.d/muster", "every shell"},
                      {"muster completion fish | source", "fish"}};
  command.verbs = {{"bash"}, {"zsh"}, {"fish"}};
  command.local = true;
  command.run_offline = Run;
  return command;
}

}  // namespace muster::cli
