#include "simulation/faulty_transport.h"

#include <algorithm>
#include <string>
#include <utility>

namespace muster::simulation {
namespace {

std::string StatusBody(int code, std::string_view reason) {
  return fmt::format(
      R"({{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"{}","code":{},)"
      R"("message":"injected"}})",
      reason, code);
}

net::Response Refusal(int code, std::string_view reason) {
  net::Response response;
  response.status = code;
  response.body = StatusBody(code, reason);
  return response;
}

// A watch over the bad network. Pieces stay in order, whatever happens to them.
class FaultyStream final : public client::StreamHandle {
 public:
  FaultyStream(const Network& network, Rng rng, client::StreamCallbacks callbacks)
      : loop_(network.loop),
        rates_(network.rates),
        rng_(rng),
        counts_(network.counts),
        callbacks_(std::move(callbacks)) {}

  void Open(client::Transport& inner, net::Request request) {
    if (rng_.Chance(rates_.watch_expired)) {
      counts_.Add("fault: watch expired (410)");
      loop_.Post(lifetime_.Guard([this] { Refuse(); }));
      return;
    }
    inner_ = inner.Stream(
        std::move(request),
        {.on_head = [this](int status,
                           const net::Headers& headers) { callbacks_.on_head(status, headers); },
         .on_data =
             [this](std::string_view bytes) {
               OnPiece([this, bytes = std::string(bytes)] { callbacks_.on_data(bytes); });
             },
         .on_value =
             [this](json::Value value) {
               OnPiece([this, value = std::move(value)] { callbacks_.on_value(value); });
             },
         .on_end = [this](Status status) { InOrder([this, status] { End(status); }); }});
  }

 private:
  void Refuse() {
    const net::Response response = Refusal(410, "Expired");
    callbacks_.on_head(response.status, response.headers);
    callbacks_.on_data(response.body);
    End(Status::Ok());
  }

  template <class Pass>
  void OnPiece(Pass pass) {
    if (rng_.Chance(rates_.watch_cut)) {
      counts_.Add("fault: watch cut");
      InOrder([this] { End(Status(Reason::kServiceUnavailable, "connection reset")); });
      return;
    }
    int times = 1;
    if (rng_.Chance(rates_.watch_twice)) {
      counts_.Add("fault: watch event twice");
      times = 2;
    }
    if (rng_.Chance(rates_.watch_late)) {
      counts_.Add("fault: watch event late");
      due_ =
          std::max(due_, loop_.Steady() + Duration(rng_.Between(0, rates_.max_delay.count() * 10)));
    }
    InOrder([times, pass = std::move(pass)] {
      for (int i = 0; i < times; ++i) pass();
    });
  }

  // Nothing overtakes a late piece.
  template <class Step>
  void InOrder(Step step) {
    loop_.After(due_ - loop_.Steady(), lifetime_.Guard([this, step = std::move(step)] {
      if (!ended_) step();
    }));
  }

  void End(Status status) {
    ended_ = true;
    inner_.reset();
    callbacks_.on_end(std::move(status));
  }

  SimLoop& loop_;
  const FaultRates& rates_;
  Rng rng_;
  Counts& counts_;
  client::StreamCallbacks callbacks_;
  std::unique_ptr<client::StreamHandle> inner_;
  Time due_{};
  bool ended_ = false;
  client::Lifetime lifetime_;
};

}  // namespace

FaultyTransport::FaultyTransport(const Network& network, std::string user, Rng rng,
                                 CrashPoint* crash)
    : network_(network),
      inner_(network.loop, network.server, {"", std::move(user), {"system:masters"}}),
      rng_(rng),
      crash_(crash) {}

FaultyTransport::~FaultyTransport() = default;

Duration FaultyTransport::Delay(double probability) {
  if (!rng_.Chance(probability)) return Duration::zero();
  network_.counts.Add("fault: late");
  return Duration(rng_.Between(0, network_.rates.max_delay.count()));
}

// Whether the part is dead, or dies by this request. A write that it dies after is still made.
bool FaultyTransport::DiesNow(net::Request& request) {
  if (crash_ == nullptr) return false;
  if (crash_->dead) return true;
  if (request.method == "GET" || !CrashPoint::Counts(request.target)) return false;
  const CrashPoint::When fate = crash_->Next();
  if (fate == CrashPoint::When::kNever) return false;
  if (fate == CrashPoint::When::kBefore) {
    crash_->kill();
    return true;
  }
  inner_.Send(std::move(request),
              lifetime_.Guard([this](const Result<net::Response>&) { crash_->kill(); }));
  return true;
}

void FaultyTransport::Deliver(net::Request request, Function<void(Result<net::Response>)> done) {
  if (request.method == "GET") return inner_.Send(std::move(request), std::move(done));
  net::Request head;
  head.method = request.method;
  head.target = request.target;
  inner_.Send(std::move(request), [this, head = std::move(head),
                                   done = std::move(done)](Result<net::Response> response) mutable {
    if (response && response->status < 300) network_.on_acknowledged(head, *response);
    done(std::move(response));
  });
}

void FaultyTransport::Send(net::Request request, Function<void(Result<net::Response>)> done) {
  if (DiesNow(request)) return;
  SimLoop& loop = network_.loop;
  const FaultRates& rates = network_.rates;
  const bool reads = request.method == "GET";
  const bool updates = request.method == "PUT" || request.method == "PATCH";
  if (rng_.Chance(rates.timeout_before)) {
    network_.counts.Add("fault: timeout before");
    loop.After(rates.max_delay, lifetime_.Guard([done = std::move(done)]() mutable {
      done(std::unexpected(Status(Reason::kTimeout, "injected: lost on the way")));
    }));
    return;
  }
  if (updates && rng_.Chance(rates.conflict)) {
    network_.counts.Add("fault: conflict (409)");
    loop.Post(
        lifetime_.Guard([done = std::move(done)]() mutable { done(Refusal(409, "Conflict")); }));
    return;
  }
  const bool answer_lost = !reads && rng_.Chance(rates.timeout_after);
  const Duration on_the_way = Delay(rates.late);
  const Duration on_the_way_back = Delay(rates.late);
  auto answered = lifetime_.Guard([this, answer_lost, on_the_way_back,
                                   done = std::move(done)](Result<net::Response> response) mutable {
    if (answer_lost) {
      network_.counts.Add("fault: timeout after apply");
      response = std::unexpected(Status(Reason::kTimeout, "injected: the answer is lost"));
    }
    if (on_the_way_back == Duration::zero()) return done(std::move(response));
    network_.loop.After(
        on_the_way_back,
        lifetime_.Guard([done = std::move(done), response = std::move(response)]() mutable {
          done(std::move(response));
        }));
  });
  if (on_the_way == Duration::zero()) return Deliver(std::move(request), std::move(answered));
  loop.After(on_the_way, lifetime_.Guard([this, request = std::move(request),
                                          answered = std::move(answered)]() mutable {
    Deliver(std::move(request), std::move(answered));
  }));
}

std::unique_ptr<client::StreamHandle> FaultyTransport::Stream(net::Request request,
                                                              client::StreamCallbacks callbacks) {
  auto stream = std::make_unique<FaultyStream>(network_, Rng(rng_.Next()), std::move(callbacks));
  stream->Open(inner_, std::move(request));
  return stream;
}

}  // namespace muster::simulation
