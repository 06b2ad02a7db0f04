#include "net/raw_stream.h"

#include <utility>

#include "net/client.h"

namespace muster::net {

void RawStreamState::PostData(std::string bytes) {
  undelivered += bytes.size();
  loop.Post([self = shared_from_this(), data = std::move(bytes)]() mutable {
    self->Deliver(std::move(data));
  });
}

void RawStreamState::PostClosed() {
  loop.Post([self = shared_from_this()] {
    self->peer_closed = true;
    self->DeliverClose();
  });
}

void RawStreamState::Deliver(std::string bytes) {
  if (destroyed) return;
  if (!on_data || !early.empty()) {
    early += bytes;
    return;
  }
  // The callback may destroy the stream, and with it on_data: so it runs from a local.
  Function<void(std::string_view)> callback = std::move(on_data);
  on_data = nullptr;
  callback(bytes);
  if (!on_data && !destroyed) on_data = std::move(callback);
  if (paused) {
    held += bytes.size();
  } else {
    Delivered(bytes.size());
  }
}

void RawStreamState::Delivered(size_t bytes) {
  const size_t before = undelivered.fetch_sub(bytes);
  if (before <= kMaxUndeliveredBytes || before - bytes > kMaxUndeliveredBytes) return;
  thread->Post([io_weak = io] {
    if (auto target = io_weak.lock()) target->RawResume();
  });
}

void RawStreamState::SetPaused(bool pause) {
  paused = pause;
  if (!pause) Delivered(std::exchange(held, 0));
}

// Posted at every crossing, whether anybody paused or not: who decides to pause on the loop while
// the kernel takes the last bytes still hears of it afterwards.
void RawStreamState::TakenByKernel(size_t bytes) {
  const size_t before = buffered.fetch_sub(bytes);
  if (before <= kStreamDrainedBytes || before - bytes > kStreamDrainedBytes) return;
  loop.Post([self = shared_from_this()] { self->DeliverDrained(); });
}

void RawStreamState::DeliverDrained() {
  if (destroyed || !on_drained) return;
  // The callback may destroy the stream, and with it on_drained: so it runs from a local.
  Function<void()> callback = std::move(on_drained);
  on_drained = nullptr;
  callback();
  if (!on_drained && !destroyed) on_drained = std::move(callback);
}

void RawStreamState::DeliverEarly() {
  if (destroyed || !on_data || early.empty()) return DeliverClose();
  Deliver(std::exchange(early, {}));
  DeliverClose();
}

void RawStreamState::DeliverClose() {
  if (destroyed || !peer_closed || close_delivered || !early.empty() || !on_close) return;
  close_delivered = true;
  Task callback = std::exchange(on_close, nullptr);
  callback();
}

namespace {

class RawStream final : public ByteStream {
 public:
  explicit RawStream(std::shared_ptr<RawStreamState> state) : state_(std::move(state)) {}
  ~RawStream() override {
    state_->destroyed = true;
    state_->on_data = nullptr;
    state_->on_close = nullptr;
    state_->on_drained = nullptr;
    Close();
  }

  void OnData(Function<void(std::string_view)> on_data) override {
    state_->on_data = std::move(on_data);
    if (!state_->early.empty()) state_->loop.Post([state = state_] { state->DeliverEarly(); });
  }
  void OnClose(Task on_close) override {
    state_->on_close = std::move(on_close);
    if (state_->peer_closed) state_->loop.Post([state = state_] { state->DeliverClose(); });
  }
  void Write(std::string bytes) override {
    if (bytes.empty() || closed_) return;
    state_->buffered += bytes.size();
    state_->thread->Post([state = state_, data = std::move(bytes)]() mutable {
      if (auto io = state->io.lock()) io->RawWrite(std::move(data));
    });
  }
  void Close() override {
    if (std::exchange(closed_, true)) return;
    state_->thread->Post([state = state_] {
      if (auto io = state->io.lock()) io->RawClose();
    });
  }
  size_t BufferedBytes() const override { return state_->buffered; }
  void PauseReading(bool paused) override { state_->SetPaused(paused); }
  void OnDrained(Function<void()> on_drained) override {
    state_->on_drained = std::move(on_drained);
  }

 private:
  std::shared_ptr<RawStreamState> state_;
  bool closed_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> MakeRawStream(std::shared_ptr<RawStreamState> state) {
  return std::make_unique<RawStream>(std::move(state));
}

}  // namespace muster::net
