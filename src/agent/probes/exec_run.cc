#include "agent/probes/exec_run.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/strings.h"
#include "client/lifetime.h"

namespace muster::agent {
namespace {

using Is = HandlerResult::Is;

class ExecRun final : public HandlerRun {
 public:
  ExecRun(AsioLoop& loop, PodRuntime& runtime, const HandlerTarget& target,
          std::vector<std::string> command, HandlerRunner::Done done)
      : loop_(loop),
        runtime_(runtime),
        uid_(target.uid),
        command_(std::move(command)),
        done_(std::move(done)) {}

  ~ExecRun() override {
    loop_.Cancel(timeout_);
    loop_.Cancel(drain_);
    if (!exit_code_ && !exec_.empty()) runtime_.KillExec(uid_, exec_);
  }

  void Start(const std::string& container, std::optional<Duration> timeout) {
    exec_ = runtime_.Exec(
        uid_, container, command_, /*tty=*/false, /*stdin_open=*/false,
        lifetime_.Guard([this](Result<ExecStreams> streams) { OnStarted(std::move(streams)); }),
        lifetime_.Guard([this](int code) { OnExit(code); }));
    if (!timeout) return;
    timeout_ = loop_.After(*timeout, [this] {
      timeout_ = 0;
      Finish({Is::kFailure, fmt::format("command {:?} timed out", Join(command_, " "))});
    });
  }

 private:
  struct Stream {
    UniqueFd fd;
    std::unique_ptr<FdWatch> watch;  // goes before the descriptor does
    bool open = false;
  };

  void OnStarted(Result<ExecStreams> streams) {
    if (!streams) {
      exec_.clear();  // there is nothing to kill
      return Finish({Is::kUnknown, streams.error().message()});
    }
    Watch(streams_[0], std::move(streams->out));
    Watch(streams_[1], std::move(streams->err));
  }

  void Watch(Stream& stream, UniqueFd fd) {
    if (!fd.valid()) return;
    fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
    stream.fd = std::move(fd);
    stream.open = true;
    stream.watch = loop_.WatchReadable(stream.fd.get(), [this, &stream] { Read(stream); });
  }

  void Read(Stream& stream) {
    char buffer[16 * 1024];
    while (stream.open) {
      const ssize_t n = read(stream.fd.get(), buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) {
        stream.open = false;
        // Not here: the watch is what called us.
        loop_.Post(lifetime_.Guard([&stream] {
          stream.watch.reset();
          stream.fd.Reset();
        }));
        break;
      }
      const size_t room = kMaxProbeOutputBytes - output_.size();
      output_.append(buffer, std::min(room, static_cast<size_t>(n)));
    }
    FinishIfDone();
  }

  void OnExit(int code) {
    exit_code_ = code;
    drain_ = loop_.After(kProbeDrainTime, [this] {
      drain_ = 0;
      Conclude();
    });
    FinishIfDone();
  }

  void FinishIfDone() {
    if (!exit_code_ || streams_[0].open || streams_[1].open) return;
    if (concluding_) return;
    concluding_ = true;
    loop_.Post(lifetime_.Guard([this] { Conclude(); }));
  }

  void Conclude() {
    if (*exit_code_ < 0) return Finish({Is::kUnknown, "the container is gone"});
    Finish({*exit_code_ == 0 ? Is::kSuccess : Is::kFailure, std::move(output_)});
  }

  // The last thing that it does: its owner destroys it.
  void Finish(HandlerResult result) {
    HandlerRunner::Done done = std::move(done_);
    done_ = nullptr;
    if (done) done(std::move(result));
  }

  AsioLoop& loop_;
  PodRuntime& runtime_;
  const std::string uid_;
  const std::vector<std::string> command_;
  HandlerRunner::Done done_;
  std::string exec_;  // the runtime's name of it
  Stream streams_[2];
  std::string output_;
  std::optional<int> exit_code_;
  bool concluding_ = false;
  TimerId timeout_ = 0, drain_ = 0;
  client::Lifetime lifetime_;
};

}  // namespace

std::unique_ptr<HandlerRun> RunExec(AsioLoop& loop, PodRuntime& runtime,
                                    const HandlerTarget& target, const HandlerAction& action,
                                    std::optional<Duration> timeout, HandlerRunner::Done done) {
  auto run = std::make_unique<ExecRun>(loop, runtime, target, action.command, std::move(done));
  run->Start(target.container, timeout);
  return run;
}

}  // namespace muster::agent
