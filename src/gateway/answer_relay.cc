#include "gateway/answer_relay.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/strings.h"

namespace muster::gateway {

void StripHopByHop(net::Headers& headers) {
  for (const char* name : {"Connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer",
                           "Transfer-Encoding", "Upgrade", "Content-Length", "Expect"})
    headers.Remove(name);
}

AnswerRelay::AnswerRelay(Loop& loop, std::shared_ptr<ByteBudget> budget,
                         net::ResponseWriterPtr writer, Function<void()> begun,
                         Function<void(AnswerEnd)> ended)
    : loop_(loop),
      budget_(std::move(budget)),
      share_(budget_),
      writer_(std::move(writer)),
      begun_(std::move(begun)),
      ended_(std::move(ended)),
      last_progress_(loop.Now()) {}

AnswerRelay::~AnswerRelay() { loop_.Cancel(timer_); }

void AnswerRelay::Start(const Sender& send, const net::Endpoint& endpoint, net::Request request,
                        Body body) {
  has_body_ = request.method != "HEAD";
  net::ClientStreamCallbacks callbacks;
  callbacks.on_head = [weak = weak_from_this()](int status, const net::Headers& headers) {
    if (const auto self = weak.lock()) self->OnHead(status, headers);
  };
  callbacks.on_data = [weak = weak_from_this()](std::string_view bytes) {
    if (const auto self = weak.lock()) self->OnData(bytes);
  };
  callbacks.on_end = [weak = weak_from_this()](const Status& status) {
    if (const auto self = weak.lock()) self->OnEnd(status);
  };
  stream_ = send(endpoint, std::move(request), std::move(body), std::move(callbacks));
}

void AnswerRelay::Abandon() {
  loop_.Cancel(std::exchange(timer_, 0));
  ended_ = nullptr;
  writer_ = nullptr;
  stream_ = nullptr;
  share_.Release();
}

void AnswerRelay::End(AnswerEnd end) {
  if (!ended_) return;
  auto ended = std::exchange(ended_, nullptr);
  Abandon();
  ended(std::move(end));
}

void AnswerRelay::OnHead(int status, const net::Headers& headers) {
  if (!ended_) return;
  last_progress_ = loop_.Now();
  response_.status = status;
  response_.headers = headers;
  StripHopByHop(response_.headers);
  const auto length = ParseInt(headers.Get("Content-Length"));
  const bool is_short = length && *length <= static_cast<int64_t>(kMaxWholeAnswerBytes);
  if (status == 204 || status == 304) has_body_ = false;
  // What the body would have; a 204 has none (RFC 9110, 8.6).
  if (!has_body_ && length && status != 204)
    response_.headers.Add("Content-Length", std::to_string(*length));
  if (writer_ == nullptr || !has_body_ || is_short) return;
  if (!budget_->HasRoomFor(1)) return End({AnswerEnd::Kind::kNoRoom});
  passes_on_ = true;
  writer_->StartStream(status, std::move(response_.headers));
  begun_();
}

void AnswerRelay::OnData(std::string_view bytes) {
  if (!ended_) return;
  last_progress_ = loop_.Now();
  if (passes_on_) {
    writer_->Write(std::make_shared<const std::string>(bytes));
    if (timer_ == 0 && writer_->BufferedBytes() > budget_->BacklogOfEach()) {
      stream_->PauseReading(true);
      last_backlog_ = writer_->BufferedBytes();
      look_period_ = kMinBacklogLookPeriod;
      LookAgain();
    }
    return;
  }
  if (response_.body.size() + bytes.size() > kMaxInferenceBytes) {
    return End({AnswerEnd::Kind::kNone,
                {},
                Status(Reason::kServiceUnavailable,
                       fmt::format("the answer is longer than {} bytes", kMaxInferenceBytes))});
  }
  // A short one passes, though others are slow: the server makes room for it.
  if (writer_ == nullptr && !share_.Grow(bytes.size())) return End({AnswerEnd::Kind::kNoRoom});
  response_.body += bytes;
}

// Only while somebody reads more slowly than a pod writes.
void AnswerRelay::LookAgain() {
  timer_ = loop_.After(look_period_, [this] {
    timer_ = 0;
    const size_t backlog = writer_->BufferedBytes();
    if (backlog < last_backlog_) last_progress_ = loop_.Now();
    last_backlog_ = backlog;
    if (backlog <= budget_->BacklogOfEach() / 2) return stream_->PauseReading(false);
    look_period_ = std::min(look_period_ * 2, kMaxBacklogLookPeriod);
    LookAgain();
  });
}

void AnswerRelay::OnEnd(const Status& status) {
  if (!ended_) return;
  if (passes_on_) {
    if (status.ok()) writer_->End();
    return End({status.ok() ? AnswerEnd::Kind::kPassedOn : AnswerEnd::Kind::kCut, {}, status});
  }
  if (!status.ok()) return End({AnswerEnd::Kind::kNone, {}, status});
  End({AnswerEnd::Kind::kWhole, std::move(response_), Status::Ok()});
}

}  // namespace muster::gateway
