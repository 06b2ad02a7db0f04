// src/gateway/proxy.h
//
// Proxy: the data plane for InferenceServices. A request goes to the route of its host, there to a
// group of pods by weight (smooth weighted round robin, so ten of a hundred are ten), and there to
// the ready pod that has least to do.
//
//   no ready pod, or all at containerConcurrency  ->  held, in order, until there is one or the
//                                                     route's timeout is over; whoever sleeps is
//                                                     woken
//   the pod did not take the connection           ->  another one, as long as there is time
//   it took the request and went                  ->  a GET or HEAD again, kMaxRepeats times; else
//                                                     502
//   it went in the middle of a long answer        ->  the answer is cut (answer_relay.h)
//
// Errors are {"error": "..."} as KServe's servers write them.
//
// Life cycle: made and destroyed on the gateway's thread; before its client.
// Thread:     the gateway's loop. SetTable() with a table that the control-plane loop made.
// Invariants: every request gets one answer; held requests are bounded by kMaxHeldRequests for each
//             InferenceService (their bodies by the server's kMaxAllBodyBytes), answers by the
//             ByteBudget; a group without weight gets nothing.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/rng.h"
#include "base/time.h"
#include "gateway/answer_relay.h"
#include "gateway/byte_budget.h"
#include "gateway/route_table.h"
#include "loop/loop.h"
#include "net/http.h"

namespace muster::gateway {

inline constexpr size_t kMaxHeldRequests = 1000;  // of one InferenceService; a further one gets 503
// At one pod at one time, without containerConcurrency; further ones are held. A stream that has
// begun does not count, be its reader slow.
inline constexpr int64_t kMaxUnansweredPerPod = 128;
inline constexpr int kMaxRepeats = 2;  // of a GET that a pod took and did not answer
inline constexpr Duration kRetryPause = milliseconds(100);  // when every ready pod refused

class Proxy final : public net::Handler {
 public:
  using Done = Function<void(net::Response)>;

  // `wake` says that a request waits for pods of this InferenceService.
  Proxy(Loop& loop, Sender send, std::function<void(const client::ObjectKey&)> wake,
        std::shared_ptr<ByteBudget> budget, Rng rng);
  ~Proxy() override;

  void SetTable(std::shared_ptr<const RouteTable> table);
  void Handle(net::Request request, net::ResponseWriterPtr writer) override;

 private:
  struct Call;
  struct Load {
    int64_t requests = 0;
    int64_t unanswered = 0;  // of them, without those that are passed on
  };
  using CallPtr = std::shared_ptr<Call>;
  using GroupKey = std::pair<client::ObjectKey, std::string>;  // a Deployment of a route

  CallPtr NewCall(const client::ObjectKey& key, net::Request request, Body body, Duration timeout,
                  Done done);
  void ExpireAfter(Duration delay, const CallPtr& call);
  void Start(const CallPtr& call);
  const PodGroup& Choose(const Route& route);
  const Backend* Pick(const Route& route, const PodGroup& group, const Call& call) const;
  void Hold(const Route& route, const PodGroup& group, const CallPtr& call);
  void LeaveQueue(const CallPtr& call);
  void SendTo(const Backend& backend, const CallPtr& call);
  void OnBegun(const CallPtr& call);
  void LeaveBackend(const CallPtr& call);
  void OnAnswer(const CallPtr& call, AnswerEnd end);
  void OnNoAnswer(const CallPtr& call, const Status& why);
  void Expire(const CallPtr& call);
  void Finish(const CallPtr& call, net::Response response);
  void EndPassedOn(const CallPtr& call, std::string_view fault);
  Done Forget(const CallPtr& call);
  void Fail(const CallPtr& call, int status, std::string message);
  void ReleaseHeld(const GroupKey& key);
  void RunGraph(const GraphRoute& graph, net::Request request, net::ResponseWriterPtr writer);
  void CallStep(const GraphRoute& graph, const net::Request& request, const json::Value& step,
                Body body, Done done);

  Loop& loop_;
  const Sender send_;
  const std::function<void(const client::ObjectKey&)> wake_;
  const std::shared_ptr<ByteBudget> budget_;
  Rng rng_;
  std::shared_ptr<const RouteTable> table_ = std::make_shared<const RouteTable>();
  std::map<GroupKey, std::deque<CallPtr>> held_;
  std::map<GroupKey, int64_t> credits_;  // of the weighted round robin
  std::map<Backend, Load> loads_;
  std::set<CallPtr> calls_;  // whose timers run
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace muster::gateway
