#include "agent/probes/node_handler_runner.h"

#include "agent/probes/exec_run.h"
#include "agent/probes/grpc_run.h"
#include "agent/probes/http_run.h"
#include "agent/probes/socket_run.h"
#include "base/check.h"

namespace muster::agent {
namespace {

class SleepRun final : public HandlerRun {
 public:
  SleepRun(Loop& loop, Duration time, HandlerRunner::Done done)
      : loop_(loop), timer_(loop.After(time, [done = std::move(done)]() mutable {
          // The callback destroys this run, and with it perhaps what is called.
          HandlerRunner::Done local = std::move(done);
          local({HandlerResult::Is::kSuccess, ""});
        })) {}
  ~SleepRun() override { loop_.Cancel(timer_); }

 private:
  Loop& loop_;
  TimerId timer_;
};

}  // namespace

NodeHandlerRunner::NodeHandlerRunner(AsioLoop& loop, net::IoThreads& io, PodRuntime& runtime)
    : loop_(loop), runtime_(runtime) {
  net::ClientOptions options;
  options.insecure_skip_verify = true;  // as upstream: certificates of pods are their own
  options.connect_timeout = kHandlerConnectTimeout;
  Result<std::unique_ptr<net::HttpClient>> client =
      net::HttpClient::Make(loop, io, std::move(options));
  CHECK(client.has_value());  // it reads no certificates
  client_ = std::move(*client);
}

std::unique_ptr<HandlerRun> NodeHandlerRunner::Run(const HandlerTarget& target,
                                                   const HandlerAction& action,
                                                   std::optional<Duration> timeout, Done done) {
  switch (action.kind) {
    case HandlerAction::Kind::kExec:
      return RunExec(loop_, runtime_, target, action, timeout, std::move(done));
    case HandlerAction::Kind::kHttp:
      return RunHttp(loop_, *client_, action, timeout, std::move(done));
    case HandlerAction::Kind::kTcp:
      return RunTcp(loop_, *client_, action, timeout, std::move(done));
    case HandlerAction::Kind::kGrpc:
      return RunGrpc(loop_, *client_, action, timeout, std::move(done));
    case HandlerAction::Kind::kSleep:
      break;
  }
  return std::make_unique<SleepRun>(loop_, action.sleep, std::move(done));
}

}  // namespace muster::agent
