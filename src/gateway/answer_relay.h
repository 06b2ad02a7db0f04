// src/gateway/answer_relay.h
//
// AnswerRelay: sends one request to a pod and brings its answer. An answer of unknown length, or a
// long one, is passed on piece by piece, as fast as the client reads; a short one, or one for a
// graph, is collected.
//
// Life cycle: Start() once; Abandon() (or `ended`) is the end, nothing runs afterwards.
// Thread:     the gateway's loop.
// Invariants: what is kept of a streamed answer is about ByteBudget::BacklogOfEach() and
//             kMaxUnreadAnswerBytes, of a short one kMaxWholeAnswerBytes; one for a graph is in the
//             ByteBudget; `ended` runs once, unless it was abandoned. An answer that was begun and
//             did not come to its end is cut, so that the client knows.

#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "base/task.h"
#include "base/time.h"
#include "gateway/byte_budget.h"
#include "gateway/graph_run.h"
#include "loop/loop.h"
#include "net/client.h"
#include "net/http.h"

namespace muster::gateway {

// Of one request; of an answer that is collected.
inline constexpr size_t kMaxInferenceBytes = 64 * 1024 * 1024;
inline constexpr size_t kMaxWholeAnswerBytes = 64 * 1024;  // a longer one is passed on
// Read of one answer and not looked at yet.
inline constexpr size_t kMaxUnreadAnswerBytes = 64 * 1024;
// Whether a slow reader has made room is looked this often at first, more and more rarely, ...
inline constexpr Duration kMinBacklogLookPeriod = milliseconds(5);
// Whether a slow reader has made room is looked at least this often.
inline constexpr Duration kMaxBacklogLookPeriod = milliseconds(100);

// How a request gets to a pod: HttpClient::Stream, or a test's.
using Sender = std::function<std::unique_ptr<net::ClientStream>(const net::Endpoint&, net::Request,
                                                                Body, net::ClientStreamCallbacks)>;

struct AnswerEnd {
  enum class Kind : uint8_t {
    kWhole,     // `response`; the client has got nothing yet
    kPassedOn,  // to its end
    kCut,       // `error`, after the client got a part
    kNone,      // `error`; the client has got nothing
    kNoRoom,    // the ByteBudget is used up; the client has got nothing
  };
  Kind kind = Kind::kNone;
  net::Response response = {};
  Status error = Status::Ok();
};

// What belongs to one connection ends here.
void StripHopByHop(net::Headers& headers);

class AnswerRelay final : public std::enable_shared_from_this<AnswerRelay> {
 public:
  // `writer`: of who may get the answer piece by piece, which `begun` tells of; null: it is
  // collected.
  AnswerRelay(Loop& loop, std::shared_ptr<ByteBudget> budget, net::ResponseWriterPtr writer,
              Function<void()> begun, Function<void(AnswerEnd)> ended);
  ~AnswerRelay();

  void Start(const Sender& send, const net::Endpoint& endpoint, net::Request request, Body body);
  void Abandon();
  // The client gets it piece by piece.
  bool passes_on() const { return passes_on_; }
  // When the pod said, or the client took, something last.
  Time last_progress() const { return last_progress_; }

 private:
  void OnHead(int status, const net::Headers& headers);
  void OnData(std::string_view bytes);
  void OnEnd(const Status& status);
  void LookAgain();
  void End(AnswerEnd end);

  Loop& loop_;
  const std::shared_ptr<ByteBudget> budget_;
  ByteBudget::Share share_;
  net::ResponseWriterPtr writer_;
  Function<void()> begun_;
  Function<void(AnswerEnd)> ended_;
  bool has_body_ = true;
  bool passes_on_ = false;
  Time last_progress_{};
  size_t last_backlog_ = 0;
  Duration look_period_ = kMinBacklogLookPeriod;
  TimerId timer_ = 0;
  net::Response response_;
  std::unique_ptr<net::ClientStream> stream_;
};

}  // namespace muster::gateway
