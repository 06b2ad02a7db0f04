#include "agent/shim/shim.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "agent/runtime/files.h"
#include "agent/runtime/process_lock.h"
#include "agent/runtime/wire.h"
#include "agent/shim/cri_log.h"
#include "agent/shim/launch.h"
#include "agent/shim/plain_processes.h"
#include "agent/shim/pod_layer.h"
#include "agent/shim/shim_volumes.h"
#include "agent/shim/user_root.h"
#include "agent/volumes/atomic_files.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/time.h"
#include "json/write.h"

namespace muster::agent {

std::string SandboxLayer(const std::string& pod_dir) { return pod_dir + "/sandbox/layer"; }
std::string SandboxShm(const std::string& pod_dir) { return pod_dir + "/sandbox/shm"; }
std::string SandboxVolume(const std::string& pod_dir, const std::string& name) {
  return pod_dir + "/sandbox/volumes/" + name;
}
std::string ContainerBase(const std::string& pod_dir, const std::string& container, int attempt) {
  return fmt::format("{}/containers/{}/{}", pod_dir, container, attempt);
}

namespace {

struct Container {
  ContainerSpec spec;
  pid_t pid = -1;
  UniqueFd pid_fd, out, err;
  std::unique_ptr<CriLogWriter> log;
  std::string started_at;
  int64_t bytes_read = 0;  // of both streams
  int64_t oom_kills_before = 0;
  bool running = false;
  ContainerExit exit;
};

struct Exec {
  std::string id;
  pid_t pid = -1;
};

class Shim {
 public:
  Shim(ShimConfig config, Cgroups cgroups, UniqueFd listener, UniqueFd signals)
      : config_(std::move(config)),
        cgroups_(std::move(cgroups)),
        listener_(std::move(listener)),
        signals_(std::move(signals)) {}

  [[noreturn]] void Serve();

 private:
  void PollOnce();
  void Accept();
  void Read(WireConnection& connection);
  void Handle(WireConnection& connection, const json::Value& request);
  Result<json::Value> Answer(const json::Value& request, std::vector<UniqueFd>& fds);
  json::Value State() const;
  Result<json::Value> Prepare(const json::Value& request);
  Result<json::Value> Start(const json::Value& request);
  Result<json::Value> Signal(const json::Value& request);
  Result<json::Value> StartExec(const json::Value& request, std::vector<UniqueFd>& fds);
  // Reads what a container wrote; false at the end of the stream.
  bool Pump(Container& container, bool is_err);
  void Reap();
  void OnExit(Container& container, int status);
  void Tell(const json::Value& event);
  std::string ExitPath(const Container& container) const;

  ShimConfig config_;
  Cgroups cgroups_;
  UniqueFd listener_;
  UniqueFd signals_;
  std::vector<std::unique_ptr<WireConnection>> connections_;
  std::map<std::string, Container> containers_;
  std::vector<Exec> execs_;
  bool prepared_ = false;
  std::vector<std::string> overlays_;  // PlanUserRoot()
};

void Shim::Serve() {
  while (true) PollOnce();
}

void Shim::PollOnce() {
  std::vector<pollfd> fds = {{listener_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
  for (const auto& connection : connections_) {
    fds.push_back({connection->fd(),
                   static_cast<short>(POLLIN | (connection->WantsWrite() ? POLLOUT : 0)), 0});
  }
  const size_t first_stream = fds.size();
  std::vector<std::pair<Container*, bool>> streams;
  for (auto& [name, container] : containers_) {
    for (bool is_err : {false, true}) {
      const UniqueFd& fd = is_err ? container.err : container.out;
      if (!fd.valid()) continue;
      fds.push_back({fd.get(), POLLIN, 0});
      streams.emplace_back(&container, is_err);
    }
  }
  if (poll(fds.data(), fds.size(), -1) < 0) return;  // EINTR
  for (size_t i = 0; i < streams.size(); ++i) {
    if (fds[first_stream + i].revents != 0) Pump(*streams[i].first, streams[i].second);
  }
  if (fds[1].revents != 0) Reap();
  for (size_t i = 2; i < first_stream; ++i) {
    WireConnection& connection = *connections_[i - 2];
    if ((fds[i].revents & POLLOUT) != 0) connection.Flush();
    if ((fds[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) Read(connection);
  }
  std::erase_if(connections_, [](const auto& connection) { return connection->broken(); });
  if (fds[0].revents != 0) Accept();
}

void Shim::Accept() {
  UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) return;
  // A new agent replaces one that hangs: the oldest connection goes.
  if (connections_.size() >= kMaxShimConnections) connections_.erase(connections_.begin());
  connections_.push_back(std::make_unique<WireConnection>(std::move(fd)));
}

void Shim::Read(WireConnection& connection) {
  connection.ReadAvailable();
  while (auto frame = connection.Next()) Handle(connection, frame->message);
}

void Shim::Handle(WireConnection& connection, const json::Value& request) {
  std::vector<UniqueFd> fds;
  Result<json::Value> answer = Answer(request, fds);
  if (answer) {
    connection.Send(answer->Set("id", request["id"]), std::move(fds));
  } else {
    connection.Send(json::Obj({{"id", request["id"]}, {"error", answer.error().message()}}));
  }
}

Result<json::Value> Shim::Answer(const json::Value& request, std::vector<UniqueFd>& fds) {
  const std::string_view op = request["op"].AsString();
  if (op == "state") return State();
  if (op == "prepare") return Prepare(request);
  if (op == "volumes") {
    RETURN_IF_ERROR(WriteShimVolumes(config_.pod_dir, request["volumes"]));
    return json::Obj();
  }
  if (op == "start") return Start(request);
  if (op == "signal") return Signal(request);
  if (op == "exec") return StartExec(request, fds);
  if (op == "killExec") {
    for (const Exec& exec : execs_) {
      if (exec.id == request["exec"].AsString()) kill(exec.pid, kKillExecSignal);
    }
    return json::Obj();
  }
  if (op == "shutdown") {
    for (auto& [name, container] : containers_) cgroups_.KillAll(container.spec.cgroup);
    if (config_.plain) (void)EndPlainProcesses(config_.pod_dir);
    unlink((config_.pod_dir + "/" + kShimSocketName).c_str());
    _exit(0);  // the kernel ends what is left in the PID namespace
  }
  return Error(Reason::kBadRequest, "shim: unknown request {:?}", op);
}

json::Value Shim::State() const {
  json::Array list;
  for (const auto& [name, container] : containers_) {
    json::Value entry = json::Obj({{"name", name},
                                   {"attempt", container.spec.attempt},
                                   {"running", container.running},
                                   {"startedAt", container.started_at}});
    if (!container.running) entry = entry.Set("exit", ToJson(container.exit));
    list.push_back(std::move(entry));
  }
  return json::Obj(
      {{"uid", config_.uid}, {"prepared", prepared_}, {"containers", std::move(list)}});
}

Result<json::Value> Shim::Prepare(const json::Value& request) {
  if (config_.plain) {
    RETURN_IF_ERROR(MakeDirs(PlainHome(config_.pod_dir), 0700));
    prepared_ = true;
    return json::Obj();
  }
  PodLayerContents contents;
  contents.hidden = json::ToStrings(request["hidden"]);
  contents.secrets = json::ToStrings(request["secrets"]);
  for (const json::Member& file : request["files"].members()) {
    contents.files.emplace_back(file.first, file.second.Str());
  }
  if (config_.user_namespace) {
    ASSIGN_OR_RETURN(contents.user_root, PlanUserRoot(config_.pod_dir, HiddenFolders(contents)));
    overlays_ = contents.user_root->overlays;
  }
  RETURN_IF_ERROR(BuildPodLayer(SandboxLayer(config_.pod_dir), contents));
  RETURN_IF_ERROR(SizeShm(SandboxShm(config_.pod_dir), request["shmBytes"].AsInt()));
  RETURN_IF_ERROR(WriteShimVolumes(config_.pod_dir, request["volumes"]));
  prepared_ = true;
  return json::Obj();
}

std::string Shim::ExitPath(const Container& container) const {
  return ContainerBase(config_.pod_dir, container.spec.name, container.spec.attempt) + ".exit";
}

Result<json::Value> Shim::Start(const json::Value& request) {
  ASSIGN_OR_RETURN(ContainerSpec spec, ContainerSpecFromJson(request["container"]));
  if (config_.plain) {
    spec.environment = PlainEnvironment(std::move(spec.environment), config_.pod_dir, spec.name);
    if (spec.working_dir.empty()) spec.working_dir = PlainHome(config_.pod_dir);
  }
  // Without the layer a container would see what it must not.
  if (!prepared_) return Error(Reason::kConflict, "the sandbox is not prepared");
  Container& container = containers_[spec.name];
  if (container.running) return Error(Reason::kConflict, "container {} runs already", spec.name);
  container = Container();
  container.spec = std::move(spec);
  const ContainerSpec& made = container.spec;
  const std::string base = ContainerBase(config_.pod_dir, made.name, made.attempt);
  RETURN_IF_ERROR(MakeDirs(base, 0700));
  RETURN_IF_ERROR(WriteFile(base + "/termination-log", "", 0666));
  ASSIGN_OR_RETURN(CriLogWriter log, CriLogWriter::Open(made.log_path));
  container.log = std::make_unique<CriLogWriter>(std::move(log));
  RETURN_IF_ERROR(cgroups_.Create(made.cgroup, made.limits));
  container.oom_kills_before = cgroups_.OomKills(made.cgroup);
  container.started_at = FormatNanoTime(RealClock().Wall());
  if (!made.image_name.empty()) RETURN_IF_ERROR(WriteFile(base + ".image", made.image_name));
  RETURN_IF_ERROR(WriteFile(base + ".start", container.started_at));

  const RootfsPlace place = {SandboxLayer(config_.pod_dir),
                             base,
                             SandboxShm(config_.pod_dir),
                             &cgroups_,
                             overlays_,
                             config_.plain};
  Result<Launched> launched = LaunchContainer(made, place, cgroups_);
  if (!launched) {
    container.exit = {
        128, 0, "StartError", launched.error().message(), "", FormatNanoTime(RealClock().Wall())};
    (void)cgroups_.Remove(made.cgroup);
    RETURN_IF_ERROR(
        WriteFileAtomic(ExitPath(container), json::Write(ToJson(container.exit)), 0600));
    return Error(launched.error());
  }
  container.pid = launched->pid;
  container.pid_fd = std::move(launched->pid_fd);
  container.out = std::move(launched->out);
  container.err = std::move(launched->err);
  for (const UniqueFd* fd : {&container.out, &container.err}) {
    if (fd->valid()) fcntl(fd->get(), F_SETFL, fcntl(fd->get(), F_GETFL) | O_NONBLOCK);
  }
  container.running = true;
  return json::Obj({{"startedAt", container.started_at}});
}

Result<json::Value> Shim::Signal(const json::Value& request) {
  const auto found = containers_.find(request["name"].Str());
  if (found == containers_.end() || !found->second.running) return json::Obj();
  const int number = static_cast<int>(request["signal"].AsInt(SIGTERM));
  if (number == SIGKILL) cgroups_.KillAll(found->second.spec.cgroup);
  syscall(SYS_pidfd_send_signal, found->second.pid_fd.get(), number, nullptr, 0);
  return json::Obj();
}

Result<json::Value> Shim::StartExec(const json::Value& request, std::vector<UniqueFd>& fds) {
  const auto found = containers_.find(request["name"].Str());
  if (found == containers_.end() || !found->second.running) {
    return Error(Reason::kNotFound, "container {} does not run", request["name"].AsString());
  }
  if (execs_.size() >= kMaxExecsPerPod) {
    return Error(Reason::kTooManyRequests, "{} commands run in this pod already", kMaxExecsPerPod);
  }
  const Container& container = found->second;
  ExecSpec spec;
  spec.arguments = json::ToStrings(request["arguments"]);
  spec.environment = container.spec.environment;
  if (request["tty"].AsBool()) spec.environment.push_back("TERM=xterm");
  spec.working_dir = container.spec.working_dir;
  spec.user = container.spec.user;
  spec.tty = request["tty"].AsBool();
  spec.stdin_open = request["stdin"].AsBool();
  spec.no_new_privileges = container.spec.no_new_privileges;
  spec.capabilities = container.spec.capabilities;
  spec.groups = container.spec.groups;
  spec.only_groups = container.spec.only_groups;
  spec.cgroup = container.spec.cgroup;
  spec.oom_score_adj = container.spec.oom_score_adj;
  spec.plain = config_.plain;
  ASSIGN_OR_RETURN(ExecLaunched launched,
                   LaunchExec(spec, container.pid, container.spec.share_pid_namespace, cgroups_));
  execs_.push_back({request["exec"].Str(), launched.pid});
  fds.push_back(std::move(launched.in));
  if (!spec.tty) {
    fds.push_back(std::move(launched.out));
    fds.push_back(std::move(launched.err));
  }
  return json::Obj({{"exec", request["exec"]}});
}

bool Shim::Pump(Container& container, bool is_err) {
  UniqueFd& fd = is_err ? container.err : container.out;
  char buffer[64 * 1024];
  const ssize_t n = read(fd.get(), buffer, sizeof buffer);
  if (n > 0) {
    container.bytes_read += n;
    const auto stream = is_err ? CriLogWriter::Stream::kStderr : CriLogWriter::Stream::kStdout;
    container.log->Feed(stream, std::string_view(buffer, static_cast<size_t>(n)),
                        RealClock().Wall());
    return true;
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  fd.Reset();  // end of file; EIO from a terminal means the same
  return false;
}

void Shim::Reap() {
  signalfd_siginfo ignored;
  while (read(signals_.get(), &ignored, sizeof ignored) > 0) {
  }
  int status = 0;
  while (true) {
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid <= 0) return;
    for (auto& [name, container] : containers_) {
      if (container.running && container.pid == pid) OnExit(container, status);
    }
    const auto exec =
        std::find_if(execs_.begin(), execs_.end(), [&](const Exec& e) { return e.pid == pid; });
    if (exec == execs_.end()) continue;
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    Tell(json::Obj({{"event", "execExit"}, {"exec", exec->id}, {"exitCode", code}}));
    execs_.erase(exec);
  }
}

void Shim::OnExit(Container& container, int status) {
  container.running = false;
  // With a shared PID namespace children may be left; they belong to the container.
  if (container.spec.share_pid_namespace) cgroups_.KillAll(container.spec.cgroup);
  if (config_.plain) (void)EndPlainProcesses(config_.pod_dir, container.spec.name);
  for (bool is_err : {false, true}) {
    UniqueFd& fd = is_err ? container.err : container.out;
    // What a pipe can hold and no more: whoever else has its other end may write for ever.
    const int64_t until = container.bytes_read + kMaxLastOutputBytes;
    while (fd.valid() && container.bytes_read < until && Pump(container, is_err)) {
    }
    fd.Reset();
  }
  const Time now = RealClock().Wall();
  container.log->Finish(now);
  container.log.reset();
  ContainerExit& exit = container.exit;
  exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  exit.exit_code = exit.signal != 0 ? 128 + exit.signal : WEXITSTATUS(status);
  exit.reason = exit.exit_code == 0 ? "Completed" : "Error";
  if (exit.exit_code != 0 &&
      cgroups_.OomKills(container.spec.cgroup) > container.oom_kills_before) {
    exit.reason = "OOMKilled";
  }
  exit.started_at = container.started_at;
  exit.finished_at = FormatNanoTime(now);
  const std::string base =
      ContainerBase(config_.pod_dir, container.spec.name, container.spec.attempt);
  if (auto message = ReadTail(base + "/termination-log", kMaxTerminationMessageBytes))
    exit.message = std::move(*message);
  if (exit.message.empty() && exit.exit_code != 0 && container.spec.message_from_log)
    exit.message = LastLogText(container.spec.log_path);
  const Status written = WriteFileAtomic(ExitPath(container), json::Write(ToJson(exit)), 0600);
  if (!written.ok())
    LOG_ERROR("shim: keep exit of {} in {}: {}", container.spec.name, config_.uid,
              written.message());
  Tell(json::Obj({{"event", "exit"},
                  {"name", container.spec.name},
                  {"attempt", container.spec.attempt},
                  {"exit", ToJson(exit)}}));
  (void)cgroups_.Remove(container.spec.cgroup);
}

void Shim::Tell(const json::Value& event) {
  for (auto& connection : connections_) connection->Send(event);
}

// Joins the peer's network namespace; the tree of mounts that is its /dev/shm. Not valid without a
// peer.
Result<UniqueFd> JoinPeer(const ShimConfig& config) {
  UniqueFd shm;
  if (config.peer < 0) return shm;
  if (setns(config.peer, CLONE_NEWNET) != 0)
    return SystemError("enter", "the network of the gang", errno);
  const UniqueFd own(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
  // A mount can be copied only from inside its namespace.
  if (!own.valid() || setns(config.peer, CLONE_NEWNS) != 0)
    return SystemError("enter", "the mounts of the gang", errno);
  const std::string path = SandboxShm(config.peer_dir);
  shm.Reset(static_cast<int>(
      syscall(SYS_open_tree, AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  const int error_number = errno;
  if (setns(own.get(), CLONE_NEWNS) != 0) return SystemError("leave", "a namespace", errno);
  if (!shm.valid()) return SystemError("open_tree", path, error_number);
  return shm;
}

// In a network of its own a pod need not be root to listen on port 80, or to ping. As containerd
// has it by default; where it cannot be had, root may.
void OpenLowPorts() {
  (void)WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
  (void)WriteFile("/proc/sys/net/ipv4/ping_group_range", "0 2147483647");
}

constexpr int kShimStarter = 3, kShimShm = 4;

// Moves a descriptor to a number of its own.
void MoveTo(int number, UniqueFd& fd) {
  if (!fd.valid() || fd.get() == number) return;
  dup2(fd.get(), number);
  fd = UniqueFd(number);
}

// Its own session, no descriptors but `starter` and `shm`, nothing of the terminal.
void Detach(const ShimConfig& config, UniqueFd& starter, UniqueFd& shm) {
  setsid();
  prctl(PR_SET_NAME, "muster-shim", 0, 0, 0);
  (void)WriteFile("/proc/self/oom_score_adj", std::to_string(kShimOomScore));
  // First out of each other's way.
  if (shm.valid()) shm.Reset(fcntl(shm.get(), F_DUPFD, kShimShm + 1));
  MoveTo(kShimStarter, starter);
  MoveTo(kShimShm, shm);
  for (const int number : {kShimStarter, kShimShm}) fcntl(number, F_SETFD, FD_CLOEXEC);
  const int first_free = shm.valid() ? kShimShm + 1 : kShimStarter + 1;
  syscall(SYS_close_range, static_cast<unsigned>(first_free), ~0U, 0U);
  UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  UniqueFd log(open((config.pod_dir + "/shim.log").c_str(),
                    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  dup2(null.get(), 0);
  dup2(null.get(), 1);
  dup2(log.valid() ? log.get() : null.get(), 2);
  (void)!chdir("/");
  umask(022);
}

// Before Linux 6.6 memory has none of the attributes that mark a folder of a layer: then it lies on
// the disk.
Status PlaceUserLayer(const std::string& pod_dir) {
  const std::string layer = SandboxLayer(pod_dir);
  if (setxattr(layer.c_str(), kUserOpaque, "n", 1, 0) == 0 || errno != EOPNOTSUPP)
    return Status::Ok();
  const std::string on_disk = pod_dir + "/layer";
  RETURN_IF_ERROR(RemoveTree(on_disk));
  RETURN_IF_ERROR(MakeDirs(on_disk));
  if (mount(on_disk.c_str(), layer.c_str(), nullptr, MS_BIND, nullptr) != 0)
    return SystemError("mount on", layer, errno);
  return Status::Ok();
}

Status MountSandbox(const ShimConfig& config, const UniqueFd& shared_shm) {
  const std::string& pod_dir = config.pod_dir;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return SystemError("make private", "/", errno);
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    return SystemError("mount", "/proc", errno);
  }
  const std::string sandbox = pod_dir + "/sandbox";
  RETURN_IF_ERROR(MakeDirs(sandbox, 0700));
  if (mount("tmpfs", sandbox.c_str(), "tmpfs", MS_NOSUID, "mode=0700") != 0) {
    return SystemError("mount", sandbox, errno);
  }
  for (const std::string& dir :
       {SandboxLayer(pod_dir), SandboxShm(pod_dir), sandbox + "/volumes"}) {
    RETURN_IF_ERROR(MakeDirs(dir));
  }
  if (config.user_namespace) RETURN_IF_ERROR(PlaceUserLayer(pod_dir));
  const std::string shm = SandboxShm(pod_dir);
  if (!shared_shm.valid()) return MountShm(shm);
  if (syscall(SYS_move_mount, shared_shm.get(), "", AT_FDCWD, shm.c_str(),
              MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return SystemError("mount the gang's memory on", shm, errno);
  }
  return Status::Ok();
}

Result<UniqueFd> WatchChildren() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_SETMASK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return SystemError("make", "a signalfd", errno);
  return fd;
}

Status MakeSandbox(const ShimConfig& config, const UniqueFd& shared_shm) {
  if (!config.hostname.empty() && config.peer < 0) OpenLowPorts();
  if (!config.hostname.empty() &&
      sethostname(config.hostname.data(), config.hostname.size()) != 0) {
    return SystemError("set hostname", config.hostname, errno);
  }
  return MountSandbox(config, shared_shm);
}

Result<std::unique_ptr<Shim>> MakeShim(const ShimConfig& config, const Cgroups& cgroups,
                                       const Result<UniqueFd>& shared_shm) {
  if (!shared_shm) return Error(shared_shm.error());
  RETURN_IF_ERROR(TakeProcessLock(config.pod_dir + "/" + kShimLockName));
  if (!config.plain) RETURN_IF_ERROR(MakeSandbox(config, *shared_shm));
  ASSIGN_OR_RETURN(UniqueFd signals, WatchChildren());
  ASSIGN_OR_RETURN(UniqueFd listener, ListenUnix(config.pod_dir, kShimSocketName));
  return std::make_unique<Shim>(config, cgroups, std::move(listener), std::move(signals));
}

}  // namespace

void RunShim(const ShimConfig& config, const Cgroups& cgroups, UniqueFd starter) {
  Result<UniqueFd> shared_shm = JoinPeer(config);
  UniqueFd none;
  Detach(config, starter, shared_shm ? *shared_shm : none);
  Result<std::unique_ptr<Shim>> shim = MakeShim(config, cgroups, shared_shm);
  if (shared_shm) shared_shm->Reset();  // the mount keeps it
  const std::string_view answer = shim ? kShimReady : std::string_view(shim.error().message());
  if (send(starter.get(), answer.data(), answer.size(), MSG_NOSIGNAL) < 0 || !shim) _exit(1);
  char heard[8] = {};
  ssize_t n = -1;
  do {
    n = recv(starter.get(), heard, sizeof heard, 0);
  } while (n < 0 && errno == EINTR);
  if (n < 0 || std::string_view(heard, static_cast<size_t>(n)) != kShimGo) _exit(1);
  starter.Reset();
  (*shim)->Serve();
}

}  // namespace muster::agent
