#include "agent/kubelet_server/exec_session.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/log.h"
#include "json/parse.h"
#include "json/write.h"
#include "net/websocket.h"

namespace muster::agent {
namespace {

constexpr char kStdin = 0, kStdout = 1, kStderr = 2, kError = 3, kResize = 4;
constexpr char kClose = static_cast<char>(255);

json::Value FailureStatus(const std::string& message) {
  return json::Obj({{"metadata", json::Obj()}, {"status", "Failure"}, {"message", message}});
}

class ExecSession : public std::enable_shared_from_this<ExecSession> {
 public:
  ExecSession(AsioLoop& loop, ExecRequest exec, std::unique_ptr<net::WebSocket> socket)
      : loop_(loop), exec_(std::move(exec)), socket_(std::move(socket)) {}

  void Start(PodRuntime& runtime) {
    self_ = shared_from_this();
    socket_->OnMessage([this](std::string_view message, bool) { OnMessage(message); });
    socket_->OnClose([this](uint16_t, std::string_view) { End(); });
    socket_->OnPong([this] { RunAfter(kExecStreamsDelay); });
    runtime_ = &runtime;
    RunAfter(kExecPongTime);
    socket_->Ping();
  }

 private:
  void RunAfter(Duration delay) {
    if (running_) return;
    loop_.Cancel(start_);
    start_ = loop_.After(delay, [self = self_] { self->Run(); });
  }

  void Run() {
    if (ended_ || std::exchange(running_, true)) return;
    loop_.Cancel(start_);
    runtime_->Exec(
        exec_.pod_uid, exec_.container, exec_.command, exec_.tty, exec_.in,
        [self = self_](Result<ExecStreams> streams) { self->OnStarted(std::move(streams)); },
        [self = self_](int code) { self->OnExit(code); });
  }

  struct Output {
    char channel = 0;
    bool wanted = false;
    UniqueFd* fd = nullptr;
    std::unique_ptr<FdWatch> watch;
    bool open = false;
  };

  void OnStarted(Result<ExecStreams> streams) {
    if (ended_) return;  // the streams close here, and the command sees that
    if (!streams) {
      Send(kError, json::Write(FailureStatus(streams.error().message())));
      socket_->Close();
      return End();
    }
    streams_ = std::move(*streams);
    for (UniqueFd* fd : {&streams_.in, &streams_.out, &streams_.err}) {
      if (fd->valid()) fcntl(fd->get(), F_SETFL, fcntl(fd->get(), F_GETFL) | O_NONBLOCK);
    }
    if (streams_.in.valid()) fcntl(streams_.in.get(), F_SETPIPE_SZ, kExecPipeBytes);
    if (exec_.tty) {
      Watch(outputs_[0], kStdout, true, streams_.in);
    } else {
      Watch(outputs_[0], kStdout, exec_.out, streams_.out);
      Watch(outputs_[1], kStderr, exec_.err, streams_.err);
      if (!exec_.in) streams_.in.Reset();
    }
    ResizeTerminal();
    WriteInput();
  }

  void Watch(Output& output, char channel, bool wanted, UniqueFd& fd) {
    output.channel = channel;
    output.wanted = wanted;
    output.fd = &fd;
    output.open = true;
    output.watch = loop_.WatchReadable(fd.get(), [this, &output] { ReadOutput(output); });
  }

  void ReadOutput(Output& output) {
    char buffer[32 * 1024];
    while (output.open && !ended_) {
      if (socket_->BufferedBytes() > kMaxExecBacklogBytes) {
        RetryLater();
        return;
      }
      const ssize_t n = read(output.fd->get(), buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) {
        output.open = false;  // EIO from a terminal is its end too
        break;
      }
      // Read in any case: the command must not block on a stream that nobody asked for.
      if (output.wanted) Send(output.channel, std::string_view(buffer, static_cast<size_t>(n)));
    }
    FinishIfDone();
  }

  void OnMessage(std::string_view message) {
    if (message.empty() || ended_) return;
    Run();
    const char channel = message.front();
    message.remove_prefix(1);
    if (channel == kStdin) {
      if (!exec_.in || input_closed_) return;
      input_ += message;
      WriteInput();
    } else if (channel == kClose && !message.empty() && message.front() == kStdin) {
      input_closed_ = true;
      WriteInput();
    } else if (channel == kResize && exec_.tty) {
      const auto size = json::Parse(message);
      if (!size) return;
      window_.ws_col = static_cast<unsigned short>((*size)["Width"].AsInt(80));
      window_.ws_row = static_cast<unsigned short>((*size)["Height"].AsInt(24));
      ResizeTerminal();
    }
  }

  // A client sends the size at once, often before the terminal exists.
  void ResizeTerminal() {
    if (exec_.tty && streams_.in.valid() && window_.ws_col > 0) {
      ioctl(streams_.in.get(), TIOCSWINSZ, &window_);
    }
  }

  void WriteInput() {
    while (written_ < input_.size() && streams_.in.valid()) {
      const ssize_t n =
          write(streams_.in.get(), input_.data() + written_, input_.size() - written_);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) {
        RetryLater();
        break;
      }
      // After an error nobody reads any more.
      written_ = n < 0 ? input_.size() : written_ + static_cast<size_t>(n);
    }
    // Seldom enough that each byte is moved about once.
    if (written_ == input_.size() || written_ > kMaxExecBacklogBytes) {
      input_.erase(0, written_);
      written_ = 0;
    }
    PaceInput();
    // A terminal has one descriptor for both directions; it gets ^D from the user instead.
    if (input_closed_ && input_.empty() && !exec_.tty) streams_.in.Reset();
  }

  void PaceInput() {
    const size_t waiting = input_.size() - written_;
    if (input_paused_ ? waiting > kMaxExecBacklogBytes / 2 : waiting <= kMaxExecBacklogBytes)
      return;
    input_paused_ = !input_paused_;
    socket_->PauseReading(input_paused_);
  }

  // For what had to wait: a full pipe, a slow peer.
  void RetryLater() {
    if (retry_ != 0) return;
    retry_ = loop_.After(kExecRetryDelay, [self = self_] {
      self->retry_ = 0;
      if (self->ended_) return;
      self->WriteInput();
      for (Output& output : self->outputs_) {
        if (output.open) self->ReadOutput(output);
      }
    });
  }

  void OnExit(int code) {
    if (ended_) return;
    exit_code_ = code;
    drain_ = loop_.After(kExecDrainTime, [self = self_] {
      for (Output& output : self->outputs_) output.open = false;
      self->FinishIfDone();
    });
    for (Output& output : outputs_) {
      if (output.open) ReadOutput(output);
    }
    FinishIfDone();
  }

  void FinishIfDone() {
    if (ended_ || !exit_code_ || outputs_[0].open || outputs_[1].open) return;
    Send(kError, ExecStatus(*exit_code_));
    socket_->Close();
    End();
  }

  void Send(char channel, std::string_view bytes) {
    std::string message(1, channel);
    message += bytes;
    socket_->Send(message);
  }

  void End() {
    if (ended_) return;
    ended_ = true;
    for (const TimerId timer : {start_, retry_, drain_}) loop_.Cancel(timer);
    loop_.Post([self = std::move(self_)] {
      for (Output& output : self->outputs_) output.watch.reset();
      self->streams_ = ExecStreams();
    });
  }

  AsioLoop& loop_;
  PodRuntime* runtime_ = nullptr;
  ExecRequest exec_;
  std::unique_ptr<net::WebSocket> socket_;
  std::shared_ptr<ExecSession> self_;
  ExecStreams streams_;
  Output outputs_[2];
  winsize window_ = {};  // as the client said last; no columns: not yet
  std::string input_;    // of which `written_` bytes are with the command
  size_t written_ = 0;
  bool input_closed_ = false, input_paused_ = false, running_ = false, ended_ = false;
  std::optional<int> exit_code_;
  TimerId start_ = 0, retry_ = 0, drain_ = 0;
};

}  // namespace

std::string ExecStatus(int exit_code) {
  if (exit_code == 0)
    return json::Write(json::Obj({{"metadata", json::Obj()}, {"status", "Success"}}));
  json::Value status = FailureStatus(
      exit_code < 0 ? std::string("the container is gone")
                    : fmt::format("command terminated with non-zero exit code: {}", exit_code));
  if (exit_code < 0) return json::Write(status);
  const json::Value cause =
      json::Obj({{"reason", "ExitCode"}, {"message", std::to_string(exit_code)}});
  status = status.Set("reason", "NonZeroExitCode");
  return json::Write(status.Set("details", json::Obj({{"causes", json::List({cause})}})));
}

void StartExecSession(AsioLoop& loop, PodRuntime& runtime, ExecRequest exec,
                      const net::Request& request, net::ResponseWriterPtr writer) {
  auto accept = net::AcceptWebSocket(request, {"v5.channel.k8s.io", "v4.channel.k8s.io"});
  if (!accept) {
    net::Response response;
    response.status = accept.error().code();
    response.body = accept.error().message() + "\n";
    return writer->Send(std::move(response));
  }
  auto socket = std::make_unique<net::WebSocket>(net::WebSocket::Role::kServer,
                                                 writer->Upgrade(accept->headers));
  std::make_shared<ExecSession>(loop, std::move(exec), std::move(socket))->Start(runtime);
}

}  // namespace muster::agent
