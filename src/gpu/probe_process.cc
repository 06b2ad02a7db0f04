#include "gpu/probe_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/log.h"
#include "gpu/nvml.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::gpu {
namespace {

constexpr int kSocket = STDERR_FILENO + 1;

json::Value ToJson(const Status& status) {
  return json::Obj({{"error", status.message()}, {"reason", ReasonName(status.reason())}});
}

Result<Inventory> AnswerFromJson(const json::Value& value) {
  if (!value.Has("error")) return InventoryFromJson(value);
  return std::unexpected(
      Status(ReasonFromName(value["reason"].AsString(), 500), value["error"].Str()));
}

json::Value AskDriver(std::optional<Nvml>& nvml, bool anew) {
  if (!nvml) {
    Result<Nvml> opened = Nvml::Open(NvmlLibrary());
    if (!opened) return ToJson(opened.error());
    nvml = std::move(*opened);
  }
  const Result<Inventory> inventory = nvml->Read(anew);
  return inventory ? gpu::ToJson(*inventory) : ToJson(inventory.error());
}

bool SendText(int fd, const std::string& text) {
  ssize_t n = -1;
  do {
    n = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return n >= 0;
}

}  // namespace

std::string NvmlLibrary() {
  const char* library = std::getenv(kNvmlLibraryVariable);
  return library == nullptr ? kNvmlLibrary : library;
}

Result<ProbeChild> ExecuteProbe() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
    return Error(Reason::kInternalError, "make a socket pair: {}", std::strerror(errno));
  std::string name = "muster", command(kProbeCommand);
  char* argv[] = {name.data(), command.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&files, fds[1], kSocket);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  ProbeChild child;
  child.fd = fds[0];
  const int error = posix_spawn(&child.pid, "/proc/self/exe", &files, &attributes, argv, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  close(fds[1]);
  if (error == 0) return child;
  close(fds[0]);
  return Error(Reason::kInternalError, "start the GPU probe: {}", std::strerror(error));
}

void ServeExecutedProbe() {
  // Locks of the parent must end with it.
  syscall(SYS_close_range, static_cast<unsigned>(kSocket + 1), ~0U, 0U);
  fcntl(kSocket, F_SETFD, FD_CLOEXEC);
  setsid();  // a Ctrl-C in the terminal is for the parent to handle
  ServeProbe(kSocket);
}

void ServeProbe(int fd) {
  prctl(PR_SET_NAME, "muster-gpu", 0, 0, 0);
  std::optional<Nvml> nvml;
  std::string buffer(kMaxProbeMessageBytes, '\0');
  while (true) {
    const ssize_t n = recv(fd, buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(0);
    const auto request = json::Parse(std::string_view(buffer.data(), static_cast<size_t>(n)));
    const bool anew = request && (*request)["anew"].AsBool();
    if (!SendText(fd, json::Write(AskDriver(nvml, anew)))) _exit(1);
  }
}

ProbeProcess::ProbeProcess(AsioLoop& loop, Launch launch, Deadlines deadlines)
    : loop_(loop), launch_(std::move(launch)), deadlines_(deadlines) {}

ProbeProcess::~ProbeProcess() {
  *alive_ = false;
  loop_.Cancel(deadline_);
  End();
  ForgetEnd();
}

Status ProbeProcess::Start() {
  if (child_.fd >= 0) return Status::Ok();
  if (!Reaped())
    return Error(Reason::kTimeout, "the driver does not let go of process {}, which asked it",
                 child_.pid);
  ASSIGN_OR_RETURN(child_, launch_());
  answered_before_ = false;
  watch_ = loop_.WatchReadable(child_.fd, [this] { OnReadable(); });
  return Status::Ok();
}

// Ends the child; one that hangs in the kernel stays until the driver lets go of it.
void ProbeProcess::End() {
  watch_.reset();
  if (child_.fd >= 0) close(std::exchange(child_.fd, -1));
  if (child_.pid > 0) kill(child_.pid, SIGKILL);
  if (!Reaped()) ReapWhenItEnds();
}

// No zombie stays, also when the driver is not asked again.
void ProbeProcess::ReapWhenItEnds() {
  if (ended_fd_ >= 0) return;
  ended_fd_ = static_cast<int>(syscall(SYS_pidfd_open, child_.pid, 0));
  if (ended_fd_ < 0) return;  // then the next Start() does it
  ended_watch_ = loop_.WatchReadable(ended_fd_, [this] { (void)Reaped(); });
}

void ProbeProcess::ForgetEnd() {
  ended_watch_.reset();
  if (ended_fd_ >= 0) close(std::exchange(ended_fd_, -1));
}

bool ProbeProcess::Reaped() {
  if (child_.pid <= 0) return true;
  const pid_t ended = waitpid(child_.pid, nullptr, WNOHANG);
  if (ended == 0) return false;
  child_.pid = -1;
  ForgetEnd();
  return true;
}

void ProbeProcess::Rest() { End(); }

void ProbeProcess::Read(bool anew, Done done) {
  done_ = std::move(done);
  Status status = Start();
  if (status.ok() && !SendText(child_.fd, json::Write(json::Obj({{"anew", anew}}))))
    status = Error(Reason::kServiceUnavailable, "the process that asks the driver has died");
  if (!status.ok()) {
    return loop_.Post([this, alive = alive_, status = std::move(status)] {
      if (*alive) Answer(std::unexpected(status));
    });
  }
  const Duration limit = answered_before_ && !anew ? deadlines_.later : deadlines_.first;
  deadline_ = loop_.After(limit, [this, limit] {
    End();
    Answer(Error(Reason::kTimeout, "the driver did not answer within {} s",
                 std::chrono::duration_cast<seconds>(limit).count()));
  });
}

void ProbeProcess::OnReadable() {
  std::string buffer(kMaxProbeMessageBytes, '\0');
  const ssize_t n = recv(child_.fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    End();
    return Answer(Error(Reason::kServiceUnavailable, "the process that asks the driver has died"));
  }
  answered_before_ = true;
  const auto parsed = json::Parse(std::string_view(buffer.data(), static_cast<size_t>(n)));
  Answer(parsed ? AnswerFromJson(*parsed) : Result<Inventory>(std::unexpected(parsed.error())));
}

void ProbeProcess::Answer(Result<Inventory> answer) {
  loop_.Cancel(deadline_);
  if (!done_) return;
  Done done = std::move(done_);
  done_ = nullptr;
  done(std::move(answer));
}

}  // namespace muster::gpu
