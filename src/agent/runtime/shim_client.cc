#include "agent/runtime/shim_client.h"

#include "agent/shim/shim.h"

namespace muster::agent {

Result<std::unique_ptr<ShimClient>> ShimClient::Connect(AsioLoop& loop, const std::string& pod_dir,
                                                        Events events) {
  ASSIGN_OR_RETURN(UniqueFd fd, ConnectUnix(pod_dir, kShimSocketName));
  return std::unique_ptr<ShimClient>(new ShimClient(loop, std::move(fd), std::move(events)));
}

ShimClient::ShimClient(AsioLoop& loop, UniqueFd fd, Events events)
    : loop_(loop), connection_(std::move(fd)), events_(std::move(events)) {
  watch_ = loop_.WatchReadable(connection_.fd(), [this] { OnReadable(); });
}

ShimClient::~ShimClient() {
  *alive_ = false;
  loop_.Cancel(flush_timer_);
}

void ShimClient::Call(const std::string& op, json::Value request, Done done) {
  const int64_t id = next_id_++;
  if (gone_) {
    loop_.Post([alive = alive_, done = std::move(done)]() mutable {
      if (*alive) done(Error(Reason::kServiceUnavailable, "the pod's shim is gone"));
    });
    return;
  }
  waiting_.emplace(id, std::move(done));
  connection_.Send(request.Set("id", id).Set("op", op));
  FlushLater();
}

void ShimClient::FlushLater() {
  if (!connection_.WantsWrite() || flush_timer_ != 0) return;
  flush_timer_ = loop_.After(kWireRetryDelay, [this] {
    flush_timer_ = 0;
    connection_.Flush();
    FlushLater();
  });
}

void ShimClient::OnReadable() {
  const std::shared_ptr<bool> alive = alive_;
  connection_.ReadAvailable();
  while (*alive) {
    auto frame = connection_.Next();
    if (!frame) break;
    if (frame->message.Has("event")) {
      if (events_.on_event) events_.on_event(frame->message);
      continue;
    }
    const auto found = waiting_.find(frame->message["id"].AsInt());
    if (found == waiting_.end()) continue;
    Done done = std::move(found->second);
    waiting_.erase(found);
    if (frame->message.Has("error")) {
      done(Error(Reason::kInvalid, "{}", frame->message["error"].AsString()));
    } else {
      done(std::move(*frame));
    }
  }
  if (*alive && connection_.broken()) FailAll();
}

void ShimClient::FailAll() {
  if (gone_) return;
  gone_ = true;
  watch_.reset();
  // First the news, so that whoever hears that a request failed knows why.
  const std::shared_ptr<bool> alive = alive_;
  std::map<int64_t, Done> failed = std::move(waiting_);
  waiting_.clear();
  if (events_.on_gone) events_.on_gone();
  for (auto& [id, done] : failed) {
    if (*alive) done(Error(Reason::kServiceUnavailable, "the pod's shim is gone"));
  }
}

}  // namespace muster::agent
