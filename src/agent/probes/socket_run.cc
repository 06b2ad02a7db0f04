#include "agent/probes/socket_run.h"

#include "agent/probes/http_run.h"

namespace muster::agent {
namespace {

using Is = HandlerResult::Is;

class TcpRun final : public HandlerRun {
 public:
  TcpRun(Loop& loop, HandlerRunner::Done done) : loop_(loop), done_(std::move(done)) {}
  ~TcpRun() override { loop_.Cancel(timeout_); }

  void Start(net::HttpClient& client, const HandlerAction& action,
             std::optional<Duration> timeout) {
    dialing_ = client.Connect({false, action.host, action.port, ""},
                              [this, action](Result<std::unique_ptr<net::ByteStream>> stream) {
                                if (stream) return Finish({Is::kSuccess, ""});
                                Finish({Is::kFailure, DialFailure(action, stream.error())});
                              });
    if (!timeout) return;
    timeout_ = loop_.After(*timeout, [this, action] {
      timeout_ = 0;
      Finish({Is::kFailure, fmt::format("dial tcp {}:{}: i/o timeout", action.host, action.port)});
    });
  }

 private:
  // The last thing that it does: its owner destroys it.
  void Finish(HandlerResult result) {
    HandlerRunner::Done done = std::move(done_);
    done_ = nullptr;
    if (done) done(std::move(result));
  }

  Loop& loop_;
  HandlerRunner::Done done_;
  std::unique_ptr<net::ClientStream> dialing_;
  TimerId timeout_ = 0;
};

}  // namespace

std::unique_ptr<HandlerRun> RunTcp(Loop& loop, net::HttpClient& client, const HandlerAction& action,
                                   std::optional<Duration> timeout, HandlerRunner::Done done) {
  auto run = std::make_unique<TcpRun>(loop, std::move(done));
  run->Start(client, action, timeout);
  return run;
}

}  // namespace muster::agent
