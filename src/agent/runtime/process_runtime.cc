#include "agent/runtime/process_runtime.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "agent/runtime/files.h"
#include "agent/runtime/mount_table.h"
#include "agent/shim/shim.h"
#include "base/log.h"
#include "base/strings.h"
#include "json/parse.h"
#include "loop/thread_pool.h"

namespace muster::agent {

std::string PodsDir(const std::string& data_dir) { return data_dir + "/pods"; }
std::string PodDir(const std::string& data_dir, const std::string& uid) {
  return data_dir + "/pods/" + uid;
}
std::string PodCgroup(const std::string& uid) { return fmt::format("{}/pod{}", kCgroupRoot, uid); }

namespace {

std::optional<ContainerExit> ReadExit(const std::string& path) {
  const auto text = ReadSmallFile(path);
  if (!text) return std::nullopt;
  const auto value = json::Parse(*text);
  if (!value) return std::nullopt;
  return ContainerExitFromJson(*value);
}

RecoveredContainer ReadContainerFolder(const std::string& dir, const std::string& name) {
  RecoveredContainer out;
  out.name = name;
  out.attempt = -1;
  for (const std::string& file : ListDir(dir)) {
    if (!file.ends_with(".start")) continue;
    const auto attempt = ParseInt(std::string_view(file).substr(0, file.size() - 6));
    if (attempt) out.attempt = std::max(out.attempt, static_cast<int>(*attempt));
  }
  if (out.attempt < 0) return out;
  if (auto started = ReadSmallFile(fmt::format("{}/{}.start", dir, out.attempt)))
    out.started_at = *started;
  out.image_name = ReadSmallFile(fmt::format("{}/{}.image", dir, out.attempt)).value_or("");
  out.exit = ReadExit(fmt::format("{}/{}.exit", dir, out.attempt));
  if (out.attempt > 0) out.last_exit = ReadExit(fmt::format("{}/{}.exit", dir, out.attempt - 1));
  return out;
}

}  // namespace

RecoveredPod ReadPodFolder(const std::string& data_dir, const std::string& uid) {
  RecoveredPod pod;
  pod.uid = uid;
  const std::string dir = PodDir(data_dir, uid);
  if (const auto text = ReadSmallFile(dir + "/pod.json")) {
    if (auto record = json::Parse(*text)) pod.record = std::move(*record);
  }
  for (const std::string& name : ListDir(dir + "/containers")) {
    RecoveredContainer container = ReadContainerFolder(dir + "/containers/" + name, name);
    if (container.attempt >= 0) pod.containers.push_back(std::move(container));
  }
  return pod;
}

namespace {
constexpr std::string_view kRemovedPrefix = ".removed-";  // no uid begins so

bool IsRemoved(const std::string& folder) { return folder.starts_with(kRemovedPrefix); }
}  // namespace

std::vector<std::string> PodFolders(const std::string& data_dir) {
  std::vector<std::string> uids = ListDir(PodsDir(data_dir));
  std::erase_if(uids, [](const std::string& name) { return name.starts_with('.'); });
  return uids;
}

Status RemovePodFolder(const std::string& data_dir, const std::string& uid,
                       const UnmountOptions& unmount) {
  const std::string dir = PodDir(data_dir, uid);
  const std::string removed = fmt::format("{}/{}{}", PodsDir(data_dir), kRemovedPrefix, uid);
  RETURN_IF_ERROR(UnmountBelow(removed, unmount));
  RETURN_IF_ERROR(RemoveTree(removed));
  RETURN_IF_ERROR(UnmountBelow(dir, unmount));
  if (rename(dir.c_str(), removed.c_str()) != 0) {
    if (errno == ENOENT) return Status::Ok();
    return SystemError("rename", dir, errno);
  }
  return RemoveTree(removed);
}

void SweepPodFolders(const std::string& data_dir, const UnmountOptions& unmount) {
  for (const std::string& name : ListDir(PodsDir(data_dir))) {
    if (!IsRemoved(name)) continue;
    const std::string dir = PodDir(data_dir, name);
    Status status = UnmountBelow(dir, unmount);
    if (status.ok()) status = RemoveTree(dir);
    if (!status.ok()) LOG_WARN("agent: sweep pods: {}", status.message());
  }
}

struct ProcessRuntime::Removal {
  std::string uid;
  std::vector<Done> done;
  TimerId timeout = 0;
  int tries = 0;
  std::optional<Duration> broke_off_at;  // monotonic; at first when the processes were killed
  bool breaks_off = false;
};

ProcessRuntime::ProcessRuntime(std::string data_dir, AsioLoop& loop, Pool& pool,
                               SpawnerClient& spawner)
    : data_dir_(std::move(data_dir)), loop_(loop), pool_(pool), spawner_(spawner) {}

ProcessRuntime::~ProcessRuntime() {
  *alive_ = false;
  *stopping_ = true;
}

Pool& ProcessRuntime::Unmounters() {
  if (unmounters_ == nullptr)
    unmounters_ = std::make_unique<ThreadPool>("unmounts", kUnmountThreads);
  return *unmounters_;
}

Status ProcessRuntime::ConnectShim(const std::string& uid) {
  ShimClient::Events events;
  events.on_event = [this, uid](const json::Value& event) { OnEvent(uid, event); };
  events.on_gone = [this, uid] { OnGone(uid); };
  ASSIGN_OR_RETURN(shims_[uid],
                   ShimClient::Connect(loop_, PodDir(data_dir_, uid), std::move(events)));
  return Status::Ok();
}

void ProcessRuntime::Call(const std::string& uid, const std::string& op, json::Value request,
                          ShimClient::Done done) {
  const auto found = shims_.find(uid);
  if (found == shims_.end()) {
    loop_.Post([alive = alive_, done = std::move(done)]() mutable {
      if (*alive) done(Error(Reason::kServiceUnavailable, "the pod has no sandbox"));
    });
    return;
  }
  found->second->Call(op, std::move(request), std::move(done));
}

void ProcessRuntime::OnEvent(const std::string& uid, const json::Value& event) {
  if (event["event"].AsString() == "exit" && events_.on_exit) {
    events_.on_exit(uid, event["name"].Str(), static_cast<int>(event["attempt"].AsInt()),
                    ContainerExitFromJson(event["exit"]));
  }
  if (event["event"].AsString() != "execExit") return;
  auto& execs = execs_[uid];
  const auto found = execs.find(event["exec"].Str());
  if (found == execs.end()) return;
  Function<void(int)> on_exit = std::move(found->second);
  execs.erase(found);
  on_exit(static_cast<int>(event["exitCode"].AsInt()));
}

void ProcessRuntime::OnGone(const std::string& uid) {
  // The client that calls this must not be destroyed under its own feet.
  loop_.Post([alive = alive_, shim = std::shared_ptr<ShimClient>(std::move(shims_[uid]))] {});
  shims_.erase(uid);
  auto execs = std::move(execs_[uid]);
  execs_.erase(uid);
  for (auto& [id, on_exit] : execs) on_exit(-1);
  const auto removal = removals_.find(uid);
  if (removal != removals_.end()) {
    RemoveCgroup(removal->second);
  } else if (events_.on_sandbox_gone) {
    events_.on_sandbox_gone(uid);
  }
}

void ProcessRuntime::CreateSandbox(const SandboxRequest& request, Done done) {
  spawner_.Call(
      "createSandbox", ToJson(request),
      [this, uid = request.uid, done = std::move(done)](Result<json::Value> answer) mutable {
        if (!answer) return done(answer.error());
        done(ConnectShim(uid));
      });
}

void ProcessRuntime::Prepare(const std::string& uid, json::Value request, Done done) {
  Call(uid, "prepare", std::move(request),
       [done = std::move(done)](Result<WireFrame> answer) mutable {
         done(answer ? Status::Ok() : answer.error());
       });
}

void ProcessRuntime::UpdateVolumes(const std::string& uid, json::Value volumes, Done done) {
  Call(uid, "volumes", json::Obj({{"volumes", std::move(volumes)}}),
       [done = std::move(done)](Result<WireFrame> answer) mutable {
         done(answer ? Status::Ok() : answer.error());
       });
}

void ProcessRuntime::StartContainer(const std::string& uid, const ContainerSpec& spec,
                                    Function<void(Result<std::string>)> done) {
  Call(uid, "start", json::Obj({{"container", ToJson(spec)}}),
       [done = std::move(done)](Result<WireFrame> answer) mutable {
         if (!answer) return done(std::unexpected(answer.error()));
         done(answer->message["startedAt"].Str());
       });
}

void ProcessRuntime::SignalContainer(const std::string& uid, const std::string& container,
                                     int signal_number) {
  Call(uid, "signal", json::Obj({{"name", container}, {"signal", signal_number}}),
       [](Result<WireFrame>) {});
}

std::string ProcessRuntime::Exec(const std::string& uid, const std::string& container,
                                 const std::vector<std::string>& arguments, bool tty,
                                 bool stdin_open, Function<void(Result<ExecStreams>)> done,
                                 Function<void(int)> on_exit) {
  const std::string id = std::to_string(next_exec_++);
  execs_[uid][id] = std::move(on_exit);
  json::Value request = json::Obj({{"name", container},
                                   {"exec", id},
                                   {"arguments", json::Strings(arguments)},
                                   {"tty", tty},
                                   {"stdin", stdin_open}});
  Call(uid, "exec", std::move(request),
       [this, uid, id, done = std::move(done)](Result<WireFrame> answer) mutable {
         if (!answer || answer->fds.empty()) {
           execs_[uid].erase(id);
           return done(answer ? Result<ExecStreams>(
                                    Error(Reason::kInternalError, "exec: the shim sent no streams"))
                              : Result<ExecStreams>(std::unexpected(answer.error())));
         }
         ExecStreams streams;
         streams.in = std::move(answer->fds[0]);
         if (answer->fds.size() > 1) streams.out = std::move(answer->fds[1]);
         if (answer->fds.size() > 2) streams.err = std::move(answer->fds[2]);
         done(std::move(streams));
       });
  return id;
}

void ProcessRuntime::KillExec(const std::string& uid, const std::string& exec) {
  Call(uid, "killExec", json::Obj({{"exec", exec}}), [](Result<WireFrame>) {});
}

void ProcessRuntime::EndSandbox(const std::string& uid, Function<void(Result<json::Value>)> done) {
  spawner_.Call("removeSandbox",
                json::Obj({{"podDir", PodDir(data_dir_, uid)}, {"cgroup", PodCgroup(uid)}}),
                std::move(done));
}

void ProcessRuntime::KillSandbox(const std::string& uid) {
  EndSandbox(uid, [uid](Result<json::Value> answer) {
    if (!answer) LOG_WARN("agent: kill sandbox of {}: {}", uid, answer.error().message());
  });
}

void ProcessRuntime::RemoveSandbox(const std::string& uid, Done done) {
  std::shared_ptr<Removal>& removal = removals_[uid];
  const bool first = removal == nullptr;
  if (first) removal = std::make_shared<Removal>();
  removal->uid = uid;
  removal->done.push_back(std::move(done));
  if (!first) return;
  const auto shim = shims_.find(uid);
  if (shim == shims_.end()) return RemoveCgroup(removal);
  // The shim ends without an answer; its closed socket is the sign. One that hangs is killed with
  // its cgroup.
  shim->second->Call("shutdown", json::Obj(), [](Result<WireFrame>) {});
  removal->timeout = loop_.After(kShutdownTimeout, [this, removal] {
    LOG_WARN("agent: shim does not end pod={}", removal->uid);
    shims_.erase(removal->uid);
    RemoveCgroup(removal);
  });
}

void ProcessRuntime::RemoveCgroup(std::shared_ptr<Removal> removal) {
  loop_.Cancel(removal->timeout);
  EndSandbox(removal->uid, [this, removal](Result<json::Value> answer) {
    if (!answer && ++removal->tries < kMaxCgroupRemovalTries) {
      BreakOffRequests(removal);
      loop_.After(kCgroupRemovalRetry, [this, removal, alive = alive_] {
        if (*alive) RemoveCgroup(removal);
      });
      return;
    }
    if (answer) return RemoveFolder(removal);
    // The folder stays, so that the next start of the agent tries again.
    Removed(*removal, answer.error());
  });
}

void ProcessRuntime::BreakOffRequests(const std::shared_ptr<Removal>& removal) {
  const Duration now = RealClock().Monotonic();
  if (!removal->broke_off_at) removal->broke_off_at = now;
  if (removal->breaks_off || now - *removal->broke_off_at < kBreakOffAfter) return;
  removal->breaks_off = true;
  Unmounters().Run(
      [dir = PodDir(data_dir_, removal->uid), stopping = stopping_] {
        BreakOffRequestsBelow(dir, {.cancelled = stopping.get()});
      },
      loop_,
      [removal] {
        removal->breaks_off = false;
        removal->broke_off_at = RealClock().Monotonic();
      });
}

void ProcessRuntime::RemoveFolder(std::shared_ptr<Removal> removal) {
  struct Work {
    Status status;
    bool has_mounts = false;  // nothing was done yet
  };
  auto work = std::make_shared<Work>();
  const auto remove = [work, data_dir = data_dir_, uid = removal->uid, stopping = stopping_] {
    work->status = RemovePodFolder(data_dir, uid, {.cancelled = stopping.get()});
  };
  const auto removed = [this, removal, work, alive = alive_] {
    if (*alive) Removed(*removal, work->status);
  };
  pool_.Run(
      [work, remove, dir = PodDir(data_dir_, removal->uid)] {
        const auto mounts = MountsBelow(dir);
        work->has_mounts = !mounts || !mounts->empty();
        if (!work->has_mounts) remove();
      },
      loop_,
      [this, work, remove, removed, alive = alive_] {
        if (!*alive) return;
        if (!work->has_mounts) return removed();
        Unmounters().Run(remove, loop_, removed);
      });
}

void ProcessRuntime::Removed(Removal& removal, const Status& status) {
  std::vector<Done> waiting = std::move(removal.done);
  removals_.erase(removal.uid);
  for (Done& done : waiting) done(status);
}

void ProcessRuntime::Recover(Function<void(std::vector<RecoveredPod>)> done) {
  auto pods = std::make_shared<std::vector<RecoveredPod>>();
  auto sweep = std::make_shared<bool>(false);
  pool_.Run(
      [data_dir = data_dir_, pods, sweep] {
        *sweep = std::ranges::any_of(ListDir(PodsDir(data_dir)), IsRemoved);
        for (const std::string& uid : PodFolders(data_dir))
          pods->push_back(ReadPodFolder(data_dir, uid));
      },
      loop_,
      [this, pods, sweep, alive = alive_, done = std::move(done)]() mutable {
        if (!*alive) return;
        // Beside the pool: something may still be mounted there.
        if (*sweep) {
          Unmounters().Run(
              [data_dir = data_dir_, stopping = stopping_] {
                SweepPodFolders(data_dir, {.cancelled = stopping.get()});
              },
              loop_, [] {});
        }
        ConnectRecovered(pods, std::move(done));
      });
}

namespace {

// The shim knows better than the files: it may have a container that runs.
void Merge(const json::Value& state, RecoveredPod& pod) {
  pod.prepared = state["prepared"].AsBool();
  for (const json::Value& entry : state["containers"].items()) {
    const std::string name = entry["name"].Str();
    auto found =
        std::find_if(pod.containers.begin(), pod.containers.end(),
                     [&](const RecoveredContainer& container) { return container.name == name; });
    if (found == pod.containers.end())
      found = pod.containers.insert(found, RecoveredContainer{.name = name});
    found->attempt = static_cast<int>(entry["attempt"].AsInt());
    found->running = entry["running"].AsBool();
    found->started_at = entry["startedAt"].Str();
    if (entry.Has("exit")) found->exit = ContainerExitFromJson(entry["exit"]);
  }
}

}  // namespace

void ProcessRuntime::ConnectRecovered(std::shared_ptr<std::vector<RecoveredPod>> pods,
                                      Function<void(std::vector<RecoveredPod>)> done) {
  auto waiting = std::make_shared<size_t>(1);
  auto shared_done = std::make_shared<Function<void(std::vector<RecoveredPod>)>>(std::move(done));
  const auto finish_one = [waiting, pods, shared_done] {
    if (--*waiting == 0) (*shared_done)(std::move(*pods));
  };
  for (RecoveredPod& pod : *pods) {
    if (!ConnectShim(pod.uid).ok()) {
      shims_.erase(pod.uid);
      continue;
    }
    ++*waiting;
    Call(pod.uid, "state", json::Obj(), [&pod, finish_one](Result<WireFrame> answer) {
      pod.sandbox_alive = answer.has_value();
      if (answer) Merge(answer->message, pod);
      finish_one();
    });
  }
  finish_one();
}

}  // namespace muster::agent
