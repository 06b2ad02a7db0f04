#include "agent/spawner/spawner_client.h"

#include <sys/socket.h>

#include <cerrno>

#include "agent/runtime/files.h"
#include "base/log.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::agent {
namespace {
// So many are handed to the spawner at a time: its socket buffer holds them, and they are answered
// in order anyway.
constexpr size_t kMaxSentAhead = 2;
}  // namespace

SpawnerClient::SpawnerClient(AsioLoop& loop, SpawnerHandle handle, Respawn respawn)
    : loop_(loop), handle_(std::move(handle)), respawn_(std::move(respawn)) {
  watch_ = loop_.WatchReadable(handle_.fd(), [this] { OnReadable(); });
}

SpawnerClient::~SpawnerClient() {
  *alive_ = false;
  loop_.Cancel(retry_);
}

void SpawnerClient::FailLater(Done done, Status status) {
  loop_.Post([alive = alive_, done = std::move(done), status = std::move(status)]() mutable {
    if (*alive) done(std::unexpected(std::move(status)));
  });
}

void SpawnerClient::Call(const std::string& op, json::Value request, Done done) {
  std::string text = json::Write(request.Set("id", next_id_++).Set("op", op));
  if (text.size() > kMaxSpawnerMessageBytes) {
    return FailLater(std::move(done), Error(Reason::kRequestEntityTooLarge,
                                            "spawner request {} has {} bytes, more than {}", op,
                                            text.size(), kMaxSpawnerMessageBytes));
  }
  if (waiting_.size() >= kMaxSpawnerRequests) {
    return FailLater(std::move(done), Error(Reason::kTooManyRequests,
                                            "{} spawner requests wait already", waiting_.size()));
  }
  waiting_.push_back({std::move(text), std::move(done)});
  SendMore();
}

void SpawnerClient::SendMore() {
  while (watch_ != nullptr && sent_ < waiting_.size() && sent_ < kMaxSentAhead) {
    const std::string& text = waiting_[sent_].text;
    const ssize_t n = send(handle_.fd(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    // Tried again when an answer has made room; a dead spawner shows as the end of the stream.
    if (n < 0) return;
    ++sent_;
  }
}

void SpawnerClient::OnReadable() {
  const std::shared_ptr<bool> alive = alive_;
  std::string buffer(kMaxSpawnerMessageBytes, '\0');
  while (*alive && watch_ != nullptr) {
    const ssize_t n = recv(handle_.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return OnLost();
    if (sent_ == 0) continue;  // an answer to nothing
    Done done = std::move(waiting_.front().done);
    waiting_.pop_front();
    --sent_;
    SendMore();
    auto answer = json::Parse(std::string_view(buffer.data(), static_cast<size_t>(n)));
    if (answer && answer->Has("error"))
      answer = Error(Reason::kInternalError, "{}", (*answer)["error"].AsString());
    done(std::move(answer));
  }
}

void SpawnerClient::OnLost() {
  LOG_WARN("agent: the spawner died, starting another one pid={} unanswered={}", handle_.pid(),
           sent_);
  watch_.reset();
  handle_ = SpawnerHandle();
  for (; sent_ > 0; --sent_) ++waiting_[sent_ - 1].losses;
  while (!waiting_.empty() && waiting_.front().losses >= kMaxSpawnerLosses) {
    FailLater(std::move(waiting_.front().done),
              Error(Reason::kInternalError, "{} spawners died while they worked on it",
                    kMaxSpawnerLosses));
    waiting_.pop_front();
  }
  Start();
}

void SpawnerClient::Start() {
  retry_ = 0;
  Result<SpawnerHandle> started = respawn_();
  if (started) {
    handle_ = std::move(*started);
    watch_ = loop_.WatchReadable(handle_.fd(), [this] { OnReadable(); });
    SendMore();
  } else {
    LOG_ERROR("agent: no pod can be started: {}", started.error().message());
    retry_ = loop_.After(kSpawnerRetry, [this] { Start(); });
  }
  if (on_state_) on_state_(started ? Status::Ok() : started.error());
}

}  // namespace muster::agent
