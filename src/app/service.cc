#include "app/service.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/core.h>

#include "app/up_options.h"
#include "base/files.h"
#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/console.h"

namespace muster::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnitName = "muster.service";

// Where `systemctl` (of root or of the user) finds units, below --root.
Result<std::string> UnitFile(const cli::Arguments& arguments) {
  const std::string root = arguments.Get("root");
  if (arguments.Has("root") && root.empty())
    return Error(Reason::kInvalid, "--root: expected a directory, got an empty name");
  if (geteuid() == 0) return fmt::format("{}/etc/systemd/system/{}", root, kUnitName);
  const char* home = std::getenv("HOME");
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && *config != '\0')
    return fmt::format("{}{}/systemd/user/{}", root, config, kUnitName);
  if (home == nullptr) return Error(Reason::kInvalid, "HOME is not set: cannot find units");
  return fmt::format("{}{}/.config/systemd/user/{}", root, home, kUnitName);
}

// As sd_booted(3) looks for it.
Status CheckSystemd() {
  std::error_code error;
  if (fs::is_directory("/run/systemd/system", error)) return Status::Ok();
  return Error(Reason::kInvalid,
               "this machine does not run systemd; start muster yourself (muster up --detach), or "
               "look at the unit: muster service install --print");
}

Result<int> Systemctl(std::vector<std::string> words) {
  words.insert(words.begin(), "systemctl");
  if (geteuid() != 0) words.insert(words.begin() + 1, "--user");
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawnp(&child, "systemctl", nullptr, nullptr, argv.data(), environ);
  if (error != 0) return Error(Reason::kInternalError, "start systemctl: {}", std::strerror(error));
  int state = 0;
  while (waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) return Error(Reason::kInternalError, "wait for systemctl");
  }
  return WIFEXITED(state) ? WEXITSTATUS(state) : 128;
}

Status RunSystemctl(const std::vector<std::string>& words) {
  ASSIGN_OR_RETURN(const int code, Systemctl(words));
  if (code == 0) return Status::Ok();
  return Error(Reason::kInternalError, "systemctl {} failed (exit code {})", Join(words, " "),
               code);
}

// Without --data-dir, which the unit says itself.
std::vector<std::string> OtherWords(const std::vector<std::string>& words) {
  constexpr std::string_view kFlag = "--data-dir";
  std::vector<std::string> out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == kFlag)
      ++i;
    else if (!words[i].starts_with(fmt::format("{}=", kFlag)))
      out.push_back(words[i]);
  }
  return out;
}

// The options of `up` as they were given, checked by its own parser.
Result<ServiceUnit> UnitOf(const cli::Arguments& arguments) {
  ServiceUnit unit;
  std::error_code error;
  unit.program = fs::read_symlink("/proc/self/exe", error);
  unit.words = OtherWords(arguments.program);
  ASSIGN_OR_RETURN(const cli::Arguments up, cli::ParseArguments(DeclareUp(), arguments.program));
  if (up.Has("help")) return Error(Reason::kInvalid, "the options of muster up: muster up --help");
  ASSIGN_OR_RETURN(const UpOptions options, UpOptionsOf(up));
  if (options.detach)
    return Error(Reason::kInvalid, "--detach: systemd itself keeps the service in the background");
  unit.data_dir = options.data_dir;
  unit.is_root = geteuid() == 0;
  return unit;
}

Result<int> Install(const cli::Arguments& arguments, cli::Console& console) {
  ASSIGN_OR_RETURN(const ServiceUnit unit, UnitOf(arguments));
  const std::string text = UnitText(unit);
  if (arguments.Has("print")) {
    console.Out(text);
    return 0;
  }
  const bool elsewhere = arguments.Has("root");
  if (!elsewhere) RETURN_IF_ERROR(CheckSystemd());
  ASSIGN_OR_RETURN(const std::string file, UnitFile(arguments));
  std::error_code error;
  fs::create_directories(fs::path(file).parent_path(), error);
  RETURN_IF_ERROR(WriteFileAtomic(file, text, 0644, true));
  console.Print("{} is written\n", file);
  if (elsewhere) return 0;
  RETURN_IF_ERROR(RunSystemctl({"daemon-reload"}));
  RETURN_IF_ERROR(RunSystemctl({"enable", "--now", kUnitName}));
  console.Print("muster runs now and after every start of the machine: muster service status\n");
  if (!unit.is_root)
    console.Print("so that it also runs while you are not logged in: loginctl enable-linger\n");
  return 0;
}

Result<int> Uninstall(const cli::Arguments& arguments, cli::Console& console) {
  const bool elsewhere = arguments.Has("root");
  if (!elsewhere) RETURN_IF_ERROR(CheckSystemd());
  ASSIGN_OR_RETURN(const std::string file, UnitFile(arguments));
  if (access(file.c_str(), F_OK) != 0) {
    console.Print("{} does not exist: nothing to do\n", file);
    return 0;
  }
  if (!elsewhere) RETURN_IF_ERROR(RunSystemctl({"disable", "--now", kUnitName}));
  std::error_code error;
  fs::remove(file, error);
  if (error) return Error(Reason::kInternalError, "delete {}: {}", file, error.message());
  if (!elsewhere) RETURN_IF_ERROR(RunSystemctl({"daemon-reload"}));
  console.Print("{} is gone; pods that run go on: muster down ends them\n", file);
  return 0;
}

Result<int> Run(const cli::Arguments& arguments, cli::Console& console) {
  const std::string& verb = arguments.positionals[0];
  if (verb == "install") return Install(arguments, console);
  if (verb == "uninstall") return Uninstall(arguments, console);
  RETURN_IF_ERROR(CheckSystemd());
  return Systemctl({"status", "--no-pager", kUnitName});
}

}  // namespace

std::string QuoteForSystemd(const std::string& word) {
  std::string out = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '%' || c == '$') out += c;
    out += c;
  }
  return out + "\"";
}

std::string UnitText(const ServiceUnit& unit) {
  std::string command = QuoteForSystemd(unit.program) + " up";
  for (const std::string& word : unit.words) command += " " + QuoteForSystemd(word);
  // Which directory it is must not hang on the environment of the service.
  command += " --data-dir " + QuoteForSystemd(unit.data_dir);
  return fmt::format(
      "# Made by `muster service install`; `muster service uninstall` takes it away.\n"
      "[Unit]\n"
      "Description=muster, a Kubernetes for machine learning\n"
      "Wants=network-online.target\n"
      "After=network-online.target\n"
      "\n"
      "[Service]\n"
      "Type=exec\n"
      "ExecStart={}\n"
      "# Pods have groups of their own below this one.\n"
      "Delegate=yes\n"
      "# A restart ends the control plane alone: pods go on, and the next one finds them.\n"
      "KillMode=process\n"
      "Restart=on-failure\n"
      "RestartSec=2\n"
      "TasksMax=infinity\n"
      "OOMPolicy=continue\n"
      "\n"
      "[Install]\n"
      "WantedBy={}\n",
      command, unit.is_root ? "multi-user.target" : "default.target");
}

cli::Command ServiceCommand() {
  cli::Command command;
  command.name = "service";
  command.summary = "run muster as a service of systemd";
  command.usage = "install|uninstall|status [flags] [-- OPTIONS OF UP]";
  command.details =
      "Root's service starts with the machine, a user's with his first login (or with the "
      "machine:\n"
      "loginctl enable-linger). Pods go on when it is restarted or stopped; muster down ends them.";
  command.flags = {
      {"print", 0, "", "with install: show the unit, change nothing", "", {}},
      {"root", 0, "DIR", "write below DIR and start nothing, as for an image", "", {}}};
  command.examples = {
      {"muster service install", "as root, or as a user"},
      {"muster service install -- --listen 0.0.0.0:6443", "with options of muster up"},
      {"muster service install --print", "only look"}};
  command.verbs = {
      {"install", 0, 0, {"print", "root"}, true}, {"uninstall", 0, 0, {"root"}}, {"status"}};
  command.takes_program = true;
  command.local = true;
  command.run_offline = Run;
  return command;
}

}  // namespace muster::app
