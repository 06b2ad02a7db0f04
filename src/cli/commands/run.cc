// muster run: a program on the cluster as if it ran here. Its directory, its environment, its
// output, its exit code.

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <unistd.h>

#include "base/rng.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/host_mounts.h"
#include "cli/job_follower.h"
#include "cli/log_follower.h"
#include "cli/run_manifest.h"
#include "cli/session.h"
#include "cli/terminal.h"
#include "cli/waiting.h"

namespace muster::cli {
namespace {

constexpr int kInterrupted = 130;
constexpr int kCommandNotFound = 127;
constexpr int kCommandNotExecutable = 126;
constexpr const char* kNoImage =
    "host";  // the process runtime needs none, but the API wants a word

Result<RunSpec> SpecFrom(const Arguments& arguments, const std::string& ns) {
  RunSpec spec;
  spec.ns = ns;
  spec.command = arguments.program;
  if (spec.command.empty()) {
    return Error(Reason::kInvalid,
                 "put the program after --: muster run --gpus 1 -- python train.py");
  }
  ASSIGN_OR_RETURN(spec.gpus, arguments.GetInt("gpus", 0));
  ASSIGN_OR_RETURN(spec.workers, arguments.GetInt("workers", 1));
  if (spec.gpus < 0) return Error(Reason::kInvalid, "--gpus {}: must not be negative", spec.gpus);
  if (spec.workers < 1 || spec.workers > kMaxRunWorkers) {
    return Error(Reason::kInvalid, "--workers {}: expected 1 to {}", spec.workers, kMaxRunWorkers);
  }
  spec.cpus = arguments.Get("cpus");
  spec.memory = arguments.Get("memory");
  spec.image = arguments.Has("image") ? arguments.Get("image") : kNoImage;
  std::error_code error;
  spec.directory = std::filesystem::current_path(error).string();
  if (error) return Error(Reason::kInvalid, "the current directory: {}", error.message());
  spec.environment =
      TakenEnvironment([](const char* name) -> const char* { return std::getenv(name); });
  for (const std::string& entry : arguments.GetAll("env")) {
    const size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos)
      return Error(Reason::kInvalid, "--env {:?}: expected NAME=VALUE", entry);
    spec.environment[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  spec.mounts = PlanMounts(spec.directory, spec.environment, spec.command, RealFiles());
  Rng rng(SeedFromSystem());
  spec.name = arguments.Has("name") ? arguments.Get("name") : RunName(spec.command, rng);
  RETURN_IF_ERROR(CheckRunName(spec.name));
  return spec;
}

const client::Target TargetOf(const RunSpec& spec) {
  return {client::resources::kPyTorchJobs, spec.ns, spec.name, ""};
}

// The container that failed first, with the name of its pod.
struct Failure {
  std::string pod, container;
  json::Value ended;  // its state.terminated; null if no status tells
};

Failure FirstFailure(const std::map<std::string, json::Value>& pods) {
  Failure first;
  for (const auto& [name, pod] : pods) {
    for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
      for (const json::Value& container : pod["status"][list].items()) {
        const json::Value& ended = container["state"]["terminated"];
        if (ended.IsNull() || ended["exitCode"].AsInt() == 0) continue;
        const std::string when = ended["finishedAt"].Str();
        if (!first.ended.IsNull() && when >= first.ended["finishedAt"].Str()) continue;
        first = {name, container["name"].Str(), ended};
      }
    }
  }
  return first;
}

// As a shell says it: 127 for a program that is not there, 126 for one that cannot be executed.
// The node can only say that the container did not start, and why.
int ExitCodeOf(const Failure& failure) {
  if (failure.ended.IsNull()) return 1;
  const int code = static_cast<int>(failure.ended["exitCode"].AsInt());
  const std::string_view message = failure.ended["message"].AsString();
  if (failure.ended["reason"].AsString() != "StartError") return code;
  if (message.find("exec: ") == std::string_view::npos) return code;
  const bool missing = message.find("executable file not found") != std::string_view::npos ||
                       message.find("No such file or directory") != std::string_view::npos;
  return missing ? kCommandNotFound : kCommandNotExecutable;
}

// "" if the exit code says it all.
std::string WhyFailed(const Failure& failure) {
  const std::string_view reason = failure.ended["reason"].AsString();
  const std::string_view message = failure.ended["message"].AsString();
  const bool plain = reason.empty() || reason == "Error";
  if (plain && message.empty()) return "";
  return fmt::format("{}: container {}: {}{}{}", failure.pod, failure.container,
                     plain ? "" : reason, plain || message.empty() ? "" : ": ", message);
}

class Runner {
 public:
  Runner(Invocation& invocation, RunSpec spec)
      : session_(invocation.session),
        console_(invocation.console),
        spec_(std::move(spec)),
        remove_(invocation.arguments.Has("rm")) {}

  Result<int> Run() {
    client::Target collection = TargetOf(spec_);
    collection.name.clear();
    Result<json::Value> job = session_.Create(collection, MakeRunJob(spec_));
    if (!job && job.error().reason() == Reason::kAlreadyExists) {
      return Error(Reason::kInvalid,
                   "a job {:?} exists already: choose another --name, or remove it with "
                   "`muster delete pytorchjob {}`",
                   spec_.name, spec_.name);
    }
    if (!job) return Error(job.error());
    for (const std::string& warning : session_.TakeWarnings()) console_.Err("Warning: " + warning);
    if (console_.err_is_terminal()) console_.Err("Job " + spec_.name + " created");
    const int code = Follow(*job);
    if (remove_ && code != kInterrupted) Delete();
    return code;
  }

 private:
  int Follow(const json::Value& job);
  int CodeFor(const json::Value& job, const std::map<std::string, json::Value>& pods);
  int OnInterrupt();
  void Delete();

  Session& session_;
  Console& console_;
  const RunSpec spec_;
  const bool remove_;
};

int Runner::CodeFor(const json::Value& job, const std::map<std::string, json::Value>& pods) {
  if (job.IsNull()) {
    console_.Err("Job " + spec_.name + " was deleted");
    return 1;
  }
  if (JobSucceeded(job)) return 0;
  const Failure failure = FirstFailure(pods);
  console_.Err(fmt::format("Job {} failed: {}", spec_.name,
                           FindCondition(job, "Failed")["message"].AsString()));
  if (const std::string why = WhyFailed(failure); !why.empty()) console_.Err("muster: " + why);
  return ExitCodeOf(failure);
}

int Runner::Follow(const json::Value& job) {
  ApiResource resource;
  resource.resource = client::resources::kPyTorchJobs;
  resource.kind = "PyTorchJob";
  bool interrupted = false;
  int code = 1;
  std::unique_ptr<JobFollower> follower;
  std::function<void()> stop;
  // Ctrl-C must not end the loop's process: the job on the cluster would go on unseen.
  if (session_.asio_loop() != nullptr) {
    auto on_signal = [&interrupted, &stop] {
      interrupted = true;
      if (stop) stop();
    };
    session_.asio_loop()->OnSignal(SIGINT, on_signal);
    session_.asio_loop()->OnSignal(SIGTERM, on_signal);
  }
  session_.RunUntilDone([&](std::function<void()> done) {
    stop = done;
    follower = std::make_unique<JobFollower>(session_, console_, resource, job, LogOptions{},
                                             [&, done](const json::Value& now) {
                                               code = CodeFor(now, follower->pods());
                                               done();
                                             });
  });
  follower.reset();
  stop = nullptr;
  console_.StatusLine("");
  return interrupted ? OnInterrupt() : code;
}

int Runner::OnInterrupt() {
  // A second Ctrl-C ends this program at once.
  signal(SIGINT, SIG_DFL);
  const bool ask = isatty(STDIN_FILENO) == 1 && console_.err_is_terminal();
  if (ask) console_.Err("");
  if (!ask || AskYesNo("Delete job " + spec_.name + "?", true)) {
    Delete();
    console_.Err("Job " + spec_.name + " deleted");
  } else {
    console_.Err(fmt::format("Job {} goes on. See it with: muster logs -f pytorchjob/{}",
                             spec_.name, spec_.name));
  }
  return kInterrupted;
}

void Runner::Delete() {
  client::DeleteOptions options;
  options.propagation_policy = "Background";
  Result<json::Value> gone = session_.Delete(TargetOf(spec_), options);
  if (!gone && gone.error().reason() != Reason::kNotFound) {
    console_.Err("muster: cannot delete job " + spec_.name + ": " + gone.error().message());
  }
}

Result<int> Run(Invocation& invocation) {
  ASSIGN_OR_RETURN(RunSpec spec, SpecFrom(invocation.arguments, invocation.session.ns()));
  return Runner(invocation, std::move(spec)).Run();
}

}  // namespace

Command RunCommand() {
  Command command;
  command.name = "run";
  command.summary = "run a program on the cluster as if it ran here";
  command.usage = "[flags] -- CMD ARGS...";
  command.details =
      "Makes a PyTorchJob: MASTER_ADDR, RANK and WORLD_SIZE are set, so torch.distributed works as "
      "it is. The current\n"
      "directory is mounted at the same place; PATH, VIRTUAL_ENV and CONDA_PREFIX go along, and so "
      "do the directories\n"
      "that they need. The output is streamed, the exit code is the program's,\n"
      "127 if it is not found, 126 if it cannot be executed. Ctrl-C asks whether to delete the job "
      "(and deletes it\n"
      "when nobody can be asked).";
  command.flags = {
      {"gpus", 0, "N", "GPUs for each worker", "0", {}},
      {"workers", 0, "M", "how many processes work together", "1", {}},
      {"cpus", 0, "AMOUNT", "CPUs for each worker, e.g. 4 or 500m", "", {}},
      {"memory", 0, "AMOUNT", "memory for each worker, e.g. 8Gi", "", {}},
      {"name", 0, "NAME", "of the job (default: made from the program's)", "", {}},
      {"image", 0, "IMAGE", "run in this image (default: the machine's own root)", "", {}},
      {"env", 'e', "NAME=VALUE", "one more variable; may be repeated", "", {}},
      {"rm", 0, "", "delete the job when it is over", "", {}}};
  command.examples = {
      {"muster run -- python train.py", "one process"},
      {"muster run --gpus 2 --workers 4 -- python train.py", "four processes with two GPUs each"},
      {"muster run --name sweep-3 --memory 16Gi -- ./sweep.sh 3", "with a name and a limit"}};
  command.instead = "the program stands after --, flags of muster before it";
  command.takes_program = true;
  command.run = Run;
  return command;
}

}  // namespace muster::cli
