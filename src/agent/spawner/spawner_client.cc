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

SpawnerClient::SpawnerClient(AsioLoop& loop, SpawnerHandle handle)
    : loop_(loop), handle_(std::move(handle)) {
  if (handle_.valid()) {
    watch_ = loop_.WatchReadable(handle_.fd(), [this] { OnReadable(); });
  } else {
    dead_ = true;
  }
}

SpawnerClient::~SpawnerClient() { *alive_ = false; }

void SpawnerClient::Call(const std::string& op, json::Value request, Done done) {
  Status refused;
  std::string text = json::Write(request.Set("id", next_id_++).Set("op", op));
  if (dead_) {
    refused = Error(Reason::kServiceUnavailable, "the spawner process is gone; restart muster");
  } else if (text.size() > kMaxSpawnerMessageBytes) {
    refused = Error(Reason::kRequestEntityTooLarge, "spawner request {} has {} bytes, more than {}",
                    op, text.size(), kMaxSpawnerMessageBytes);
  } else if (waiting_.size() >= kMaxSpawnerRequests) {
    refused = Error(Reason::kTooManyRequests, "{} spawner requests wait already", waiting_.size());
  }
  if (!refused.ok()) {
    loop_.Post([alive = alive_, done = std::move(done), refused]() mutable {
      if (*alive) done(std::unexpected(refused));
    });
    return;
  }
  waiting_.push_back({std::move(text), std::move(done)});
  SendMore();
}

void SpawnerClient::SendMore() {
  while (sent_ < waiting_.size() && sent_ < kMaxSentAhead && !dead_) {
    std::string& text = waiting_[sent_].text;
    const ssize_t n = send(handle_.fd(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;  // tried again when an answer has made room
    if (n < 0) return Fail(SystemError("send to", "the spawner", errno));
    text.clear();
    ++sent_;
  }
}

void SpawnerClient::OnReadable() {
  const std::shared_ptr<bool> alive = alive_;
  std::string buffer(kMaxSpawnerMessageBytes, '\0');
  while (*alive && !dead_) {
    const ssize_t n = recv(handle_.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0)
      return Fail(
          Error(Reason::kServiceUnavailable, "the spawner process is gone; restart muster"));
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

void SpawnerClient::Fail(const Status& status) {
  if (dead_) return;
  dead_ = true;
  LOG_ERROR("agent: lost the spawner, no pod can be started until muster is restarted: {}",
            status.message());
  watch_.reset();
  std::deque<Waiting> failed = std::move(waiting_);
  waiting_.clear();
  for (Waiting& waiting : failed) {
    loop_.Post([alive = alive_, done = std::move(waiting.done), status]() mutable {
      if (*alive) done(std::unexpected(status));
    });
  }
  if (!on_lost_) return;
  loop_.Post([alive = alive_, on_lost = std::move(on_lost_)]() mutable {
    if (*alive) on_lost();
  });
}

}  // namespace muster::agent
