// muster completion: scripts for shells, made from the declarations of the commands.

#include "cli/command.h"
#include "cli/console.h"
#include "cli/help.h"

namespace muster::cli {
namespace {

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
  for (const OtherCommand& other : OtherCommands()) out += std::string(other.name) + " ";
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

std::string BashScript() {
  std::string out =
      "# bash completion for muster; try it with: source <(muster completion bash)\n"
      "_muster() {\n"
      "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\" "
      "command=\"${COMP_WORDS[1]}\"\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"" +
      AllNames() +
      "\" -- \"$cur\")); return\n"
      "  fi\n"
      "  case \"$prev\" in\n"
      "    -f|--filename|--kubeconfig|--data-dir) COMPREPLY=($(compgen -f -- \"$cur\")); return "
      ";;\n"
      "    -n|--namespace) COMPREPLY=($(compgen -W \"$(muster get namespaces -o name 2>/dev/null | "
      "cut -d/ -f2)\" -- \"$cur\")); return ;;\n"
      "  esac\n"
      "  case \"$command:$prev\" in\n" +
      ChoiceCases() +
      "  esac\n"
      "  if [[ \"$cur\" == -* ]]; then\n"
      "    case \"$command\" in\n";
  for (const Command& command : AllCommands()) {
    out += fmt::format("      {}) COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")) ;;\n", command.name,
                       FlagWords(command));
  }
  for (const OtherCommand& other : OtherCommands()) {
    std::string words;
    for (const char* flag : other.flags) words += std::string(flag) + " ";
    out += fmt::format("      {}) COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")) ;;\n", other.name,
                       words);
  }
  out +=
      "    esac\n    return\n  fi\n  case \"$command\" in\n    completion) COMPREPLY=($(compgen -W "
      "\"bash zsh fish\" -- \"$cur\")) ;;\n";
  out += "    help) COMPREPLY=($(compgen -W \"" + AllNames() + "\" -- \"$cur\")) ;;\n";
  for (const Command& command : AllCommands()) {
    if (!command.names_objects) continue;
    // The first word is a type; the words after it are names of that type.
    out += fmt::format(
        "    {}) if [ \"$COMP_CWORD\" = 2 ]; then COMPREPLY=($(compgen -W \"{}\" -- \"$cur\"))\n"
        "      else COMPREPLY=($(compgen -W \"$(muster get \"${{COMP_WORDS[2]}}\" -o name "
        "2>/dev/null | cut -d/ -f2)\" "
        "-- \"$cur\")); fi ;;\n",
        command.name, kTypes);
  }
  out += "    *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n  esac\n}\ncomplete -F _muster muster\n";
  return out;
}

std::string ZshScript() {
  return "#compdef muster\n# zsh completion for muster; try it with: source <(muster completion "
         "zsh)\n"
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

std::string FishScript() {
  std::string out =
      "# fish completion for muster; try it with: muster completion fish | source\ncomplete -c "
      "muster -f\n";
  for (const OtherCommand& other : OtherCommands()) {
    out += fmt::format("complete -c muster -n __fish_use_subcommand -a {} -d {}\n", other.name,
                       FishQuote(other.summary));
    for (const char* flag : other.flags) {
      out += fmt::format("complete -c muster -n '__fish_seen_subcommand_from {}' -l {}\n",
                         other.name, flag + 2);
    }
  }
  for (const Command& command : AllCommands()) {
    out += fmt::format("complete -c muster -n __fish_use_subcommand -a {} -d {}\n", command.name,
                       FishQuote(command.summary));
    const std::string when =
        fmt::format("complete -c muster -n '__fish_seen_subcommand_from {}'", command.name);
    for (const Flag& flag : command.flags) {
      out += fmt::format("{} -l {}", when, flag.name);
      if (flag.letter != 0) out += fmt::format(" -s {}", flag.letter);
      if (flag.name == "filename") out += " -r -F";
      if (!flag.choices.empty()) {
        std::string words;
        for (const std::string& choice : flag.choices) words += choice + " ";
        out += " -x -a " + FishQuote(words);
      }
      out += " -d " + FishQuote(flag.help) + "\n";
    }
    if (command.names_objects) out += fmt::format("{} -a {}\n", when, FishQuote(kTypes));
  }
  return out;
}

Result<int> Run(const Arguments& arguments, Console& console) {
  const std::string shell = arguments.positionals.empty() ? "" : arguments.positionals[0];
  if (shell == "bash") {
    console.Out(BashScript());
  } else if (shell == "zsh") {
    console.Out(ZshScript());
  } else if (shell == "fish") {
    console.Out(FishScript());
  } else {
    return Error(Reason::kInvalid, "name a shell: muster completion bash, zsh or fish");
  }
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
  command.run_offline = Run;
  return command;
}

}  // namespace muster::cli
