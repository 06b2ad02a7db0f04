#include "net/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>
#include <sys/uio.h>

#include "net/client.h"

namespace muster::net {
namespace {

constexpr int kReadRoundsPerTurn = 8;
constexpr size_t kMaxIovecs = 32;

// What a client reads that speaks plain HTTP to a TLS port; the words of Go's server.
constexpr std::string_view kPlainHttpAnswer =
    "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

IoResult ResultOfErrno(IoResult want) {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? want : IoResult::kError;
}

}  // namespace

Connection::Connection(std::shared_ptr<IoThread> thread, int fd)
    : thread_(std::move(thread)), fd_(thread_->Watch(fd, *this)) {}

Connection::~Connection() = default;

void Connection::Start(std::unique_ptr<TlsSession> tls) {
  thread_->Keep(shared_from_this());
  tls_ = std::move(tls);
  if (connecting_) {
    fd_->WaitWritable();
  } else {
    ProgressLater();
  }
}

// A handshake's signature costs as much as a hundred requests.
void Connection::ProgressLater() {
  if (!tls_) return Progress();
  thread_->PostBehind([weak = weak_from_this(), this] {
    const auto self = weak.lock();
    if (self && !closed_) Progress();
  });
}

void Connection::Progress() {
  if (connecting_) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(fd_->fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return CloseNow(Status(Reason::kServiceUnavailable, strerror(error)));
    connecting_ = false;
  }
  if (tls_) {
    switch (tls_->Handshake()) {
      case IoResult::kOk:
        break;
      case IoResult::kWantRead:
        return fd_->WaitReadable();
      case IoResult::kWantWrite:
        return fd_->WaitWritable();
      default:
        if (tls_->PeerSpokeHttp()) return RefusePlainHttp();
        return CloseNow(Status(Reason::kServiceUnavailable, "TLS handshake: " + tls_->LastError()));
    }
  }
  open_ = true;
  OnOpen();
  if (closed_) return;
  if (queued_bytes_ > 0) MarkDirty();
  ReadSome();
}

void Connection::RefusePlainHttp() {
  tls_.reset();
  open_ = true;
  Queue(std::string(kPlainHttpAnswer));
  CloseAfterFlush(/*linger=*/true);
  ReadSome();
}

void Connection::OnReadable() {
  if (closed_) return;
  if (!open_) return ProgressLater();
  if (std::exchange(write_wants_read_, false)) {
    write_blocked_ = false;
    MarkDirty();
  }
  ReadSome();
}

void Connection::OnWritable() {
  if (closed_) return;
  if (!open_) return ProgressLater();
  write_blocked_ = false;
  MarkDirty();
  if (std::exchange(read_wants_write_, false)) ReadSome();
}

IoResult Connection::ReadOnce(char* data, size_t size, size_t& got) {
  if (tls_) return tls_->Read(data, size, got);
  ssize_t n = recv(fd_->fd(), data, size, 0);
  if (n < 0) return ResultOfErrno(IoResult::kWantRead);
  got = static_cast<size_t>(n);
  return n == 0 ? IoResult::kClosed : IoResult::kOk;
}

void Connection::ReadSome() {
  std::span<char> scratch = thread_->read_scratch();
  for (int round = 0; round < kReadRoundsPerTurn; ++round) {
    if (closed_ || read_closed_ || paused_) return;
    size_t got = 0;
    switch (ReadOnce(scratch.data(), scratch.size(), got)) {
      case IoResult::kOk:
        Deliver(std::string_view(scratch.data(), got));
        break;
      case IoResult::kWantRead:
        return fd_->WaitReadable();
      case IoResult::kWantWrite:
        read_wants_write_ = true;
        return fd_->WaitWritable();
      case IoResult::kClosed:
        read_closed_ = true;
        return HandleEof();
      case IoResult::kError:
        return CloseNow(
            Status(Reason::kServiceUnavailable, tls_ ? tls_->LastError() : strerror(errno)));
    }
    // A short read with nothing left inside OpenSSL: the next bytes will raise a new event.
    bool drained = tls_ ? !closed_ && !tls_->HasPending() : got < scratch.size();
    if (drained) break;
  }
  if (closed_ || read_closed_ || paused_) return;
  if (tls_ && tls_->HasPending()) {
    thread_->Post([weak = weak_from_this(), this] {
      if (auto self = weak.lock()) ReadSome();
    });
    return;
  }
  fd_->WaitReadable();
}

void Connection::Deliver(std::string_view bytes) {
  if (closing_) {
    lingered_bytes_ += bytes.size();
    if (lingered_bytes_ > kMaxLingerBytes) CloseNow(Status::Ok());
    return;
  }
  if (!raw_) return OnData(bytes);
  raw_->PostData(std::string(bytes));
  if (raw_->undelivered > kMaxUndeliveredBytes) PauseReading();
}

void Connection::HandleEof() {
  if (lingering_ || raw_) return CloseNow(Status::Ok());
  if (!closing_) OnEof();
}

void Connection::ResumeReading() {
  if (!std::exchange(paused_, false) || closed_ || !open_) return;
  thread_->Post([weak = weak_from_this(), this] {
    if (auto self = weak.lock()) ReadSome();
  });
}

void Connection::Queue(std::string bytes, bool counted) {
  if (closed_ || bytes.empty()) return;
  queued_bytes_ += bytes.size();
  if (queue_head_ < queue_.size()) {
    Piece& last = queue_.back();
    if (!last.shared && last.counted == counted &&
        last.own.size() + bytes.size() <= kCoalesceBytes) {
      last.own += bytes;
      Count(last);
      return MarkDirty();
    }
  }
  queue_.push_back({nullptr, std::move(bytes), 0, counted});
  Count(queue_.back());
  MarkDirty();
}

void Connection::QueueUnit(std::string bytes) {
  const size_t size = bytes.size();
  Queue(std::move(bytes));
  if (closed_) return;
  Piece& last = queue_.back();
  if (last.unit_at == std::string::npos) last.unit_at = last.own.size() - size;
}

void Connection::DropUnits() {
  size_t kept = 0;
  for (size_t i = queue_head_; i < queue_.size(); ++i) {
    Piece& piece = queue_[i];
    const size_t unit = piece.unit_at;
    const bool is_ahead = unit != std::string::npos && unit >= piece.offset &&
                          kept + unit - piece.offset >= thread_->write_scratch().size();
    if (!is_ahead) {
      kept += piece.rest().size();
      continue;
    }
    for (size_t dropped = i + 1; dropped < queue_.size(); ++dropped) {
      if (queue_[dropped].counted) OnCountedSent(queue_[dropped].rest().size());
      Uncount(queue_[dropped]);
    }
    queue_.erase(queue_.begin() + static_cast<ptrdiff_t>(i) + 1, queue_.end());
    piece.own.resize(unit);
    Count(piece);
    queued_bytes_ = kept + piece.rest().size();
    return;
  }
}

void Connection::QueueShared(std::shared_ptr<const std::string> bytes, bool counted) {
  if (closed_ || bytes->empty()) return;
  queued_bytes_ += bytes->size();
  queue_.push_back({std::move(bytes), {}, 0, counted});
  Count(queue_.back());
  MarkDirty();
}

// A whole piece counts until all of it went out, since that is how long it is kept.
void Connection::Count(Piece& piece) {
  if (total_queued_ == nullptr) return;
  const size_t cost = piece.shared
                          ? piece.shared->size() / static_cast<size_t>(piece.shared.use_count())
                          : piece.own.size();
  *total_queued_ += cost - piece.cost;
  piece.cost = cost;
}

void Connection::Uncount(Piece& piece) {
  if (total_queued_ != nullptr) *total_queued_ -= std::exchange(piece.cost, 0);
}

void Connection::MarkDirty() {
  if (closed_ || std::exchange(dirty_, true)) return;
  thread_->MarkDirty(*this);
}

void Connection::Flush() {
  dirty_ = false;
  if (closed_ || !open_ || write_blocked_) return;
  size_t total = 0;
  while (true) {
    while (queued_bytes_ > 0) {
      if (total >= kMaxFlushBytesPerTurn) {
        thread_->PostBehind([weak = weak_from_this(), this] {
          if (auto self = weak.lock()) MarkDirty();
        });
        return;
      }
      size_t put = 0;
      IoResult result = WriteOnce(put);
      if (result == IoResult::kWantRead || result == IoResult::kWantWrite)
        return Blocked(result, total > 0);
      if (result != IoResult::kOk) {
        return CloseNow(
            Status(Reason::kServiceUnavailable, tls_ ? tls_->LastError() : strerror(errno)));
      }
      total += put;
      Consume(put);
    }
    write_progress_ = Duration(0);
    if (closing_) return FinishClosing();
    OnDrained();
    if (closed_ || queued_bytes_ == 0) break;
  }
  if (!closed_ && closing_) FinishClosing();
}

void Connection::Blocked(IoResult result, bool progressed) {
  write_blocked_ = true;
  if (progressed || write_progress_ == Duration(0)) write_progress_ = thread_->Now();
  ArmTimer();
  if (result == IoResult::kWantWrite) {
    fd_->WaitWritable();
  } else {
    write_wants_read_ = true;
    fd_->WaitReadable();
  }
  OnBlocked();
}

IoResult Connection::WriteOnce(size_t& put) { return tls_ ? WriteTls(put) : WritePlain(put); }

IoResult Connection::WriteTls(size_t& put) {
  std::string_view front = queue_[queue_head_].rest();
  std::span<char> scratch = thread_->write_scratch();
  if (front.size() >= scratch.size() || queue_head_ + 1 == queue_.size()) {
    return tls_->Write(front.data(), front.size(), put);
  }
  // Small pieces share one record. After kWantWrite the same bytes come first again, as OpenSSL
  // demands.
  size_t size = 0;
  for (size_t i = queue_head_; i < queue_.size() && size < scratch.size(); ++i) {
    std::string_view rest = queue_[i].rest();
    size_t take = std::min(rest.size(), scratch.size() - size);
    memcpy(scratch.data() + size, rest.data(), take);
    size += take;
  }
  return tls_->Write(scratch.data(), size, put);
}

IoResult Connection::WritePlain(size_t& put) {
  iovec parts[kMaxIovecs];
  size_t count = 0;
  for (size_t i = queue_head_; i < queue_.size() && count < kMaxIovecs; ++i) {
    std::string_view rest = queue_[i].rest();
    parts[count++] = {const_cast<char*>(rest.data()), rest.size()};
  }
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  ssize_t n = sendmsg(fd_->fd(), &message, MSG_NOSIGNAL);
  if (n < 0) return ResultOfErrno(IoResult::kWantWrite);
  put = static_cast<size_t>(n);
  return IoResult::kOk;
}

void Connection::Consume(size_t bytes) {
  queued_bytes_ -= bytes;
  while (bytes > 0) {
    Piece& piece = queue_[queue_head_];
    size_t take = std::min(bytes, piece.rest().size());
    piece.offset += take;
    bytes -= take;
    if (piece.counted) {
      if (raw_) {
        raw_->TakenByKernel(take);
      } else {
        OnCountedSent(take);
      }
    }
    if (!piece.rest().empty()) continue;
    Uncount(piece);
    piece = Piece();
    ++queue_head_;
  }
  if (queue_head_ < queue_.size()) {
    if (queue_head_ < 64 || queue_head_ * 2 < queue_.size()) return;
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<ptrdiff_t>(queue_head_));
  } else if (queue_.capacity() > 64) {
    std::vector<Piece>().swap(queue_);
  } else {
    queue_.clear();
  }
  queue_head_ = 0;
}

void Connection::CloseAfterFlush(bool linger) {
  if (closed_ || closing_) return;
  closing_ = true;
  linger_ = linger;
  MarkDirty();
}

void Connection::FinishClosing() {
  if (!linger_ || read_closed_) return CloseNow(Status::Ok());
  if (std::exchange(lingering_, true)) return;
  if (tls_) tls_->SendCloseNotify();
  shutdown(fd_->fd(), SHUT_WR);
  SetDeadline(kLingerTimeout);
  ResumeReading();
}

void Connection::CloseNow(Status why) {
  if (std::exchange(closed_, true)) return;
  if (tls_ && open_ && queued_bytes_ == 0) tls_->SendCloseNotify();
  thread_->Cancel(timer_);
  tls_.reset();
  fd_.reset();
  for (Piece& piece : queue_) Uncount(piece);
  std::vector<Piece>().swap(queue_);
  queue_head_ = 0;
  queued_bytes_ = 0;
  if (raw_) raw_->PostClosed();
  OnClosed(why);
  thread_->Release(*this);
}

void Connection::Abort() { CloseNow(Status(Reason::kServiceUnavailable, "shutting down")); }

void Connection::BecomeRaw(std::shared_ptr<RawStreamState> raw, std::string_view first) {
  raw_ = std::move(raw);
  raw_->io = std::shared_ptr<RawStreamIo>(shared_from_this(), this);
  ClearDeadline();
  set_write_stall_timeout(kRawWriteStallTimeout);
  if (!first.empty()) raw_->PostData(std::string(first));
  if (read_closed_) return CloseNow(Status::Ok());
  ResumeReading();
}

void Connection::RawWrite(std::string bytes) { Queue(std::move(bytes), true); }
void Connection::RawClose() { CloseAfterFlush(/*linger=*/true); }

void Connection::SetDeadline(Duration from_now) {
  deadline_ = thread_->Now() + from_now;
  ArmTimer();
}

// The timer is lazy: a deadline that moves away leaves it as it is, and an early wake-up sets it
// again.
void Connection::ArmTimer() {
  Duration next = deadline_;
  if (write_blocked_) {
    Duration stall = write_progress_ + write_stall_timeout_;
    next = next == Duration(0) ? stall : std::min(next, stall);
  }
  if (next == Duration(0) || closed_) return;
  if (timer_ != 0 && timer_at_ <= next) return;
  thread_->Cancel(timer_);
  timer_at_ = next;
  timer_ = thread_->After(next - thread_->Now(), [this] { OnTimer(); });
}

void Connection::OnTimer() {
  timer_ = 0;
  Duration now = thread_->Now();
  if (write_blocked_ && now >= write_progress_ + write_stall_timeout_) {
    return CloseNow(Status(Reason::kTimeout, "the peer reads nothing"));
  }
  if (deadline_ != Duration(0) && now >= deadline_) {
    deadline_ = Duration(0);
    if (lingering_) return CloseNow(Status::Ok());
    OnDeadline();
  }
  ArmTimer();
}

}  // namespace muster::net
