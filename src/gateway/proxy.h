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
//   it took the request and went                  ->  again only if the method is idempotent; else
//                                                     502
//
// Errors are {"error": "..."} as KServe's servers write them.
//
// Life cycle: made and destroyed on the gateway's thread; before its client.
// Thread:     the gateway's loop. SetTable() with a table that the control-plane loop made.
// Invariants: every request gets one answer; held requests are bounded by kMaxHeldRequests for each
//             InferenceService (their bodies by the server's kMaxAllBodyBytes); a group without
//             weight gets nothing.

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
#include "gateway/route_table.h"
#include "loop/loop.h"
#include "net/client.h"
#include "net/http.h"

namespace muster::gateway {

inline constexpr size_t kMaxHeldRequests = 1000;  // of one InferenceService; a further one gets 503
inline constexpr Duration kRetryPause = milliseconds(100);  // when every ready pod refused

class Proxy final : public net::Handler {
 public:
  using Done = Function<void(net::Response)>;
  // How a request gets to a pod: HttpClient::Send, or a test's.
  using Sender = std::function<void(const net::Endpoint&, net::Request, Duration timeout,
                                    Function<void(Result<net::Response>)>)>;

  // `wake` says that a request waits for pods of this InferenceService.
  Proxy(Loop& loop, Sender send, std::function<void(const client::ObjectKey&)> wake, Rng rng);
  ~Proxy() override;

  void SetTable(std::shared_ptr<const RouteTable> table);
  void Handle(net::Request request, net::ResponseWriterPtr writer) override;

 private:
  struct Call;
  using CallPtr = std::shared_ptr<Call>;
  using GroupKey = std::pair<client::ObjectKey, std::string>;  // a Deployment of a route

  CallPtr NewCall(const client::ObjectKey& key, net::Request request, Duration timeout, Done done);
  void Start(const CallPtr& call);
  const PodGroup& Choose(const Route& route);
  const Backend* Pick(const Route& route, const PodGroup& group, const Call& call) const;
  void Hold(const Route& route, const PodGroup& group, const CallPtr& call);
  void LeaveQueue(const CallPtr& call);
  void SendTo(const Backend& backend, const CallPtr& call);
  void OnAnswer(const CallPtr& call, Result<net::Response> answer);
  void Expire(const CallPtr& call);
  void Finish(const CallPtr& call, net::Response response);
  void Fail(const CallPtr& call, int status, std::string message);
  void ReleaseHeld(const GroupKey& key);
  void RunGraph(const GraphRoute& graph, net::Request request, net::ResponseWriterPtr writer);
  void CallStep(const GraphRoute& graph, const net::Request& request, const json::Value& step,
                std::string body, Done done);

  Loop& loop_;
  const Sender send_;
  const std::function<void(const client::ObjectKey&)> wake_;
  Rng rng_;
  std::shared_ptr<const RouteTable> table_ = std::make_shared<const RouteTable>();
  std::map<GroupKey, std::deque<CallPtr>> held_;
  std::map<GroupKey, int64_t> credits_;  // of the weighted round robin
  std::map<Backend, int64_t> in_flight_;
  std::set<CallPtr> calls_;  // whose timers run
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace muster::gateway
