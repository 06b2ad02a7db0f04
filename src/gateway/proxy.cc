#include "gateway/proxy.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/log.h"
#include "gateway/graph_run.h"
#include "json/write.h"
#include "net/url.h"

namespace muster::gateway {
namespace {

net::Response ErrorResponse(int status, std::string_view message) {
  net::Response response;
  response.status = status;
  response.headers.Add("Content-Type", "application/json");
  if (status == 503) response.headers.Add("Retry-After", "1");
  response.body = json::Write(json::Obj({{"error", message}}));
  return response;
}

net::Response NoRoom(const ByteBudget& budget) {
  return ErrorResponse(
      503, fmt::format("the answers that are on their way through the gateway have more than {} "
                       "MiB together; try again later",
                       budget.most() / (1024 * 1024)));
}

Body TakeBody(net::Request& request) {
  return std::make_shared<const std::string>(std::exchange(request.body, {}));
}

// What reads may be asked again; all else may have been done already.
bool IsSafe(std::string_view method) { return method == "GET" || method == "HEAD"; }

// The pod never saw the request: nobody took the connection.
bool NeverReached(const Status& error) {
  const std::string& message = error.message();
  return message.ends_with("Connection refused") || message.ends_with("No route to host") ||
         message.ends_with("Network is unreachable") || message.ends_with("no connection in time");
}

}  // namespace

struct Proxy::Call {
  client::ObjectKey key;
  net::Request request;  // without its body, which is
  Body body;
  net::ResponseWriterPtr writer;  // of a client, who may get the answer piece by piece
  Done done;
  Duration timeout{};
  TimerId timer = 0;
  std::string deployment;  // chosen once
  Backend backend;         // where it is now
  std::shared_ptr<TrafficCounters> counters;
  std::set<Backend> refused;           // who did not take it
  std::shared_ptr<AnswerRelay> relay;  // while it is at a pod
  int repeats = 0;
  bool held = false, finished = false;
};

Proxy::Proxy(Loop& loop, Sender send, std::function<void(const client::ObjectKey&)> wake,
             std::shared_ptr<ByteBudget> budget, Rng rng)
    : loop_(loop),
      send_(std::move(send)),
      wake_(std::move(wake)),
      budget_(std::move(budget)),
      rng_(rng) {}

Proxy::~Proxy() {
  for (const CallPtr& call : calls_) {
    loop_.Cancel(call->timer);
    if (call->relay != nullptr) call->relay->Abandon();
  }
}

void Proxy::SetTable(std::shared_ptr<const RouteTable> table) {
  table_ = std::move(table);
  std::vector<GroupKey> waiting;
  for (const auto& [key, queue] : held_) waiting.push_back(key);
  for (const GroupKey& key : waiting) ReleaseHeld(key);
  std::erase_if(credits_, [this](const auto& entry) {
    const auto route = table_->FindRoute(entry.first.first);
    return route == nullptr || route->Find(entry.first.second) == nullptr;
  });
}

void Proxy::Handle(net::Request request, net::ResponseWriterPtr writer) {
  const client::ObjectKey* key = table_->Resolve(request.headers.Get("Host"), request.peer.address);
  if (key == nullptr) {
    return writer->Send(
        ErrorResponse(404, fmt::format("no InferenceService answers for the host {:?}; ask for "
                                       "NAME-NAMESPACE.example.com or NAME.NAMESPACE",
                                       request.headers.Get("Host"))));
  }
  if (const auto graph = table_->FindGraph(*key))
    return RunGraph(*graph, std::move(request), std::move(writer));
  const auto route = table_->FindRoute(*key);
  Body body = TakeBody(request);
  const CallPtr call =
      NewCall(*key, std::move(request), std::move(body), route->timeout,
              [writer](net::Response response) { writer->Send(std::move(response)); });
  call->writer = writer;
  // Nobody is woken, no place is kept and no pod goes on for who does not wait any more.
  writer->OnPeerGone([this, alive = std::weak_ptr(alive_), weak = std::weak_ptr(call)] {
    const CallPtr gone = weak.lock();
    if (alive.expired() || gone == nullptr || gone->finished) return;
    if (gone->relay != nullptr && gone->relay->passes_on()) return EndPassedOn(gone, "");
    Fail(gone, 499, "the client is gone");
  });
  Start(call);
}

Proxy::CallPtr Proxy::NewCall(const client::ObjectKey& key, net::Request request, Body body,
                              Duration timeout, Done done) {
  auto call = std::make_shared<Call>();
  call->key = key;
  StripHopByHop(request.headers);
  request.headers.Add("Connection", "close");
  const std::string& peer = request.peer.address;
  if (!peer.empty()) request.headers.Add("X-Forwarded-For", peer.substr(0, peer.rfind(':')));
  call->request = std::move(request);
  call->body = std::move(body);
  call->done = std::move(done);
  call->timeout = timeout;
  ExpireAfter(timeout, call);
  calls_.insert(call);
  return call;
}

void Proxy::ExpireAfter(Duration delay, const CallPtr& call) {
  call->timer = loop_.After(delay, [this, weak = std::weak_ptr(call)] {
    if (const CallPtr late = weak.lock()) Expire(late);
  });
}

// To a group, once; then to a pod of it, or into its queue.
void Proxy::Start(const CallPtr& call) {
  const auto route = table_->FindRoute(call->key);
  if (route == nullptr || route->groups.empty())
    return Fail(call, 404, fmt::format("InferenceService {} is gone", call->key.ToString()));
  const PodGroup* group = route->Find(call->deployment);
  if (group == nullptr || (group->ready.empty() && !group->asleep)) group = &Choose(*route);
  call->deployment = group->deployment;
  if (call->counters != group->counters) {
    call->counters = group->counters;
    ++call->counters->requests;
  }
  const Backend* backend = Pick(*route, *group, *call);
  if (backend == nullptr) return Hold(*route, *group, call);
  SendTo(*backend, call);
}

// REQUIRES: groups.
const PodGroup& Proxy::Choose(const Route& route) {
  const PodGroup* best = nullptr;
  int64_t all = 0, most = 0;
  for (const PodGroup& group : route.groups) {
    if (group.weight <= 0 || (group.ready.empty() && !group.asleep)) continue;
    int64_t& credit = credits_[{route.key, group.deployment}];
    credit += group.weight;
    all += group.weight;
    if (best == nullptr || credit > most) best = &group, most = credit;
  }
  if (best == nullptr) return *std::ranges::max_element(route.groups, {}, &PodGroup::weight);
  credits_[{route.key, best->deployment}] -= all;
  return *best;
}

const Backend* Proxy::Pick(const Route& route, const PodGroup& group, const Call& call) const {
  const Backend* best = nullptr;
  int64_t least = 0;
  for (const Backend& backend : group.ready) {
    if (call.refused.contains(backend)) continue;
    const auto found = loads_.find(backend);
    const Load load = found == loads_.end() ? Load() : found->second;
    const bool full = route.most_at_once > 0 ? load.requests >= route.most_at_once
                                             : load.unanswered >= kMaxUnansweredPerPod;
    if (full) continue;
    if (best == nullptr || load.requests < least) best = &backend, least = load.requests;
  }
  return best;
}

void Proxy::Hold(const Route& route, const PodGroup& group, const CallPtr& call) {
  std::deque<CallPtr>& queue = held_[{call->key, group.deployment}];
  if (queue.size() >= kMaxHeldRequests) {
    return Fail(call, 503,
                fmt::format("{} requests wait for a pod of InferenceService {} already",
                            queue.size(), call->key.ToString()));
  }
  call->held = true;
  ++call->counters->held;
  queue.push_back(call);
  if (group.ready.empty()) wake_(route.key);
  // Everybody refused, and the next table may say nothing new.
  if (!call->refused.empty()) {
    loop_.After(kRetryPause, [this, alive = std::weak_ptr(alive_), weak = std::weak_ptr(call)] {
      const CallPtr again = weak.lock();
      if (alive.expired() || again == nullptr || !again->held) return;
      again->refused.clear();
      LeaveQueue(again);
      Start(again);
    });
  }
}

void Proxy::LeaveQueue(const CallPtr& call) {
  if (!std::exchange(call->held, false)) return;
  --call->counters->held;
  const auto found = held_.find({call->key, call->deployment});
  if (found == held_.end()) return;
  std::erase(found->second, call);
  if (found->second.empty()) held_.erase(found);
}

// In the order in which they came, as long as somebody takes them.
void Proxy::ReleaseHeld(const GroupKey& key) {
  std::vector<CallPtr> waiting;
  if (const auto found = held_.find(key); found != held_.end())
    waiting.assign(found->second.begin(), found->second.end());
  for (const CallPtr& call : waiting) {
    const auto route = table_->FindRoute(call->key);
    const PodGroup* group = route == nullptr ? nullptr : route->Find(call->deployment);
    const bool stays = group != nullptr && !group->ready.empty() &&
                       Pick(*route, *group, *call) == nullptr && call->refused.empty();
    if (stays) return;
    if (group != nullptr && group->ready.empty()) {
      const bool others = std::ranges::any_of(
          route->groups, [](const PodGroup& one) { return one.weight > 0 && !one.ready.empty(); });
      if (group->asleep || !others) continue;
    }
    LeaveQueue(call);
    Start(call);
  }
}

void Proxy::SendTo(const Backend& backend, const CallPtr& call) {
  call->backend = backend;
  Load& load = loads_[backend];
  ++load.requests;
  ++load.unanswered;
  ++call->counters->in_flight;
  call->relay = std::make_shared<AnswerRelay>(
      loop_, budget_, call->writer,
      [this, alive = std::weak_ptr(alive_), weak = std::weak_ptr(call)] {
        const CallPtr begun = weak.lock();
        if (!alive.expired() && begun != nullptr) OnBegun(begun);
      },
      [this, alive = std::weak_ptr(alive_), weak = std::weak_ptr(call)](AnswerEnd end) {
        const CallPtr answered = weak.lock();
        if (!alive.expired() && answered != nullptr) OnAnswer(answered, std::move(end));
      });
  call->relay->Start(send_, {.tls = false, .host = backend.host, .port = backend.port},
                     call->request, call->body);
}

void Proxy::OnBegun(const CallPtr& call) {
  --loads_[call->backend].unanswered;
  ReleaseHeld({call->key, call->deployment});
}

void Proxy::LeaveBackend(const CallPtr& call) {
  if (call->relay == nullptr) return;
  const auto relay = std::exchange(call->relay, nullptr);
  relay->Abandon();
  --call->counters->in_flight;
  const auto load = loads_.find(call->backend);
  if (!relay->passes_on()) --load->second.unanswered;
  if (--load->second.requests == 0) loads_.erase(load);
}

// Then whoever waited for its place gets it.
void Proxy::OnAnswer(const CallPtr& call, AnswerEnd end) {
  LeaveBackend(call);
  const GroupKey group{call->key, call->deployment};
  switch (end.kind) {
    case AnswerEnd::Kind::kWhole:
      Finish(call, std::move(end.response));
      break;
    case AnswerEnd::Kind::kPassedOn:
      EndPassedOn(call, "");
      break;
    case AnswerEnd::Kind::kCut:
      EndPassedOn(call, end.error.message());
      break;
    case AnswerEnd::Kind::kNoRoom:
      ++call->counters->failures;
      Finish(call, NoRoom(*budget_));
      break;
    case AnswerEnd::Kind::kNone:
      OnNoAnswer(call, end.error);
      break;
  }
  ReleaseHeld(group);
}

void Proxy::OnNoAnswer(const CallPtr& call, const Status& why) {
  const bool never_reached = NeverReached(why);
  if (never_reached || (IsSafe(call->request.method) && call->repeats++ < kMaxRepeats)) {
    call->refused.insert(call->backend);
    return Start(call);
  }
  Fail(call, 502,
       fmt::format("a pod of InferenceService {} did not answer: {}", call->key.ToString(),
                   why.message()));
}

void Proxy::Expire(const CallPtr& call) {
  if (call->finished) return;
  const auto waited = std::chrono::duration_cast<seconds>(call->timeout).count();
  if (call->relay != nullptr && call->relay->passes_on()) {
    const Duration left = call->relay->last_progress() + call->timeout - loop_.Now();
    if (left > Duration(0)) return ExpireAfter(left, call);
    return EndPassedOn(call, fmt::format("nothing more of the answer within {} s", waited));
  }
  if (!call->held) {
    return Fail(
        call, 504,
        fmt::format("no answer of InferenceService {} within {} s", call->key.ToString(), waited));
  }
  const auto route = table_->FindRoute(call->key);
  std::string why = route == nullptr ? "" : route->why_not;
  if (!why.empty()) why = ": " + why;
  Fail(call, 504,
       fmt::format("no pod of InferenceService {} was ready to answer within {} s{}",
                   call->key.ToString(), waited, why));
}

Proxy::Done Proxy::Forget(const CallPtr& call) {
  call->finished = true;
  LeaveQueue(call);
  LeaveBackend(call);
  loop_.Cancel(call->timer);
  calls_.erase(call);
  call->writer = nullptr;
  call->body = nullptr;
  return std::exchange(call->done, nullptr);
}

void Proxy::Finish(const CallPtr& call, net::Response response) {
  if (call->finished) return;
  auto done = Forget(call);
  done(std::move(response));
}

// An answer that the client got piece by piece. With a `fault`, or before its End(), it is cut.
void Proxy::EndPassedOn(const CallPtr& call, std::string_view fault) {
  if (call->finished) return;
  if (!fault.empty()) {
    ++call->counters->failures;
    LOG_WARN("gateway: cut an answer service={} why={:?}", call->key.ToString(), fault);
  }
  const bool was_at_a_pod = call->relay != nullptr;
  Forget(call);
  if (was_at_a_pod) ReleaseHeld({call->key, call->deployment});
}

void Proxy::Fail(const CallPtr& call, int status, std::string message) {
  if (call->finished) return;
  if (call->counters != nullptr) ++call->counters->failures;
  const bool was_at_a_pod = call->relay != nullptr;
  Finish(call, ErrorResponse(status, message));
  if (was_at_a_pod) ReleaseHeld({call->key, call->deployment});
}

// ---- graphs ----

void Proxy::RunGraph(const GraphRoute& graph, net::Request request, net::ResponseWriterPtr writer) {
  if (request.method == "GET") {
    net::Response alive;
    alive.headers.Add("Content-Type", "application/json");
    alive.body = R"({"status": "alive"})";
    return writer->Send(std::move(alive));
  }
  // What the steps say is kept until the last one is done.
  auto kept = std::make_shared<ByteBudget::Share>(budget_);
  Body body = TakeBody(request);
  auto shared = std::make_shared<const net::Request>(std::move(request));
  auto gone = std::make_shared<bool>(false);
  writer->OnPeerGone([gone] { *gone = true; });
  RunGraphNodes(
      graph.nodes, std::move(body), rng_.Next(),
      [this, alive = std::weak_ptr(alive_), graph, shared, kept, gone](const json::Value& step,
                                                                       Body input, Done done) {
        if (alive.expired()) return;
        if (*gone) return done(ErrorResponse(499, "the client is gone"));
        CallStep(graph, *shared, step, std::move(input),
                 [kept, budget = budget_, done = std::move(done)](net::Response response) mutable {
                   if (!kept->Grow(response.body.size())) response = NoRoom(*budget);
                   done(std::move(response));
                 });
      },
      [writer](net::Response response) { writer->Send(std::move(response)); });
}

// Headers that upstream's router hands on: only what the client meant for the models.
void Proxy::CallStep(const GraphRoute& graph, const net::Request& request, const json::Value& step,
                     Body body, Done done) {
  net::Request next;
  next.method = "POST";
  next.headers.Add("Content-Type", "application/json");
  for (const char* name : {"Authorization", "X-Request-Id"}) {
    if (request.headers.Has(name)) next.headers.Add(name, std::string(request.headers.Get(name)));
  }
  if (const std::string name = step["serviceName"].Str(); !name.empty()) {
    const client::ObjectKey key{graph.key.ns, name};
    const auto route = table_->FindRoute(key);
    if (route == nullptr)
      return done(
          ErrorResponse(404, fmt::format("there is no InferenceService {}", key.ToString())));
    next.target = route->v2 ? fmt::format("/v2/models/{}/infer", name)
                            : fmt::format("/v1/models/{}:predict", name);
    next.headers.Add("Host", fmt::format("{}.{}", key.name, key.ns));
    return Start(NewCall(key, std::move(next), std::move(body),
                         std::min(graph.timeout, route->timeout), std::move(done)));
  }
  const Result<net::ParsedUrl> url = net::ParseUrl(step["serviceUrl"].AsString());
  if (!url) return done(ErrorResponse(500, url.error().message()));
  // Nobody else: whoever writes a graph must not reach what this machine reaches.
  const std::string& host = url->endpoint.host;
  const client::ObjectKey* key = table_->ResolveIn(graph.key.ns, host);
  if (key == nullptr || table_->FindRoute(*key) == nullptr)
    return done(ErrorResponse(502, fmt::format("serviceUrl {}: {} is no InferenceService",
                                               step["serviceUrl"].AsString(), host)));
  next.target = url->path.starts_with('/') ? url->path : "/" + url->path;
  next.headers.Add("Host", host);
  Start(NewCall(*key, std::move(next), std::move(body), graph.timeout, std::move(done)));
}

}  // namespace muster::gateway
