// src/net/connection.h
//
// Internal to net. Connection: one socket, plain or TLS, with a bounded-by-its-user output queue;
// then, after an upgrade, the I/O side of a ByteStream. ServerConnection and ClientConnection put
// HTTP on top.
//
// Life cycle: made with an open descriptor, Start(), kept alive by its IoThread until it closed.
// Thread:     its IoThread.
// Invariants: nothing is called on a derived class after OnClosed; queued bytes go out in order,
// small ones gathered;
//             bytes shared between connections are never copied for plain sockets.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "net/io_thread.h"
#include "net/raw_stream.h"
#include "net/tls.h"

namespace muster::net {

inline constexpr size_t kCoalesceBytes =
    8 * 1024;  // queued pieces up to this size are copied together
inline constexpr size_t kMaxFlushBytesPerTurn = 512 * 1024;  // then others get their turn
inline constexpr size_t kMaxLingerBytes =
    16 * 1024 * 1024;  // read and dropped so that an error answer arrives
inline constexpr Duration kLingerTimeout = seconds(3);
// The reader of an upgraded stream may be a person with a pager. As upstream's idle time of
// streams; a peer that died is noticed by the kernel long before.
inline constexpr Duration kRawWriteStallTimeout = hours(4);

class Connection : public IoObject, public FdEvents, public RawStreamIo {
 public:
  Connection(std::shared_ptr<IoThread> thread, int fd);
  ~Connection() override;

  // Keeps itself alive from now on. `tls` may be null.
  void Start(std::unique_ptr<TlsSession> tls);
  int fd() const { return fd_->fd(); }

  // RawStreamIo
  void RawWrite(std::string bytes) override;
  void RawClose() override;
  void RawResume() override { ResumeReading(); }

  void Flush() final;
  void Abort() final;

 protected:
  // Events for the derived class.
  virtual void OnOpen() = 0;  // TCP and TLS are ready
  virtual void OnData(std::string_view bytes) = 0;
  virtual void OnEof() = 0;    // the peer will send no more
  virtual void OnDrained() {}  // the output queue is empty
  virtual void OnCountedSent(size_t bytes) { (void)bytes; }
  virtual void OnBlocked() {}  // the peer takes no more at the moment; may close
  virtual void OnDeadline() = 0;
  virtual void OnClosed(const Status& why) = 0;  // the last event

  void Queue(std::string bytes, bool counted = false);
  // As Queue(): the beginning of something that DropUnits() may drop as a whole.
  void QueueUnit(std::string bytes);
  // Drops the units that are not on their way yet: from the first on that begins beyond what TLS
  // may have to write again.
  void DropUnits();
  // `counted` bytes are reported by OnCountedSent.
  void QueueShared(std::shared_ptr<const std::string> bytes, bool counted);
  size_t queued_bytes() const { return queued_bytes_; }
  // Adds what is queued here, shared bytes by their part, to `total`, which outlives this.
  void count_queued_in(std::atomic<size_t>& total) { total_queued_ = &total; }
  // Whether bytes wait because the peer takes none, and since when it took the last.
  bool stalled() const { return write_blocked_ && queued_bytes_ > 0; }
  Duration last_progress() const { return write_progress_; }

  void PauseReading() { paused_ = true; }
  void ResumeReading();
  void SetDeadline(Duration from_now);  // replaces the one before
  void ClearDeadline() { deadline_ = Duration(0); }
  void set_write_stall_timeout(Duration timeout) { write_stall_timeout_ = timeout; }

  // After what is queued went out. `linger`: then read and drop for a while, so that a peer which
  // is still sending gets to read the answer before its connection is reset.
  void CloseAfterFlush(bool linger);
  void CloseNow(Status why);
  bool closed() const { return closed_; }
  bool closing() const { return closing_; }

  // From now on bytes belong to the stream; `first` came with the upgrade.
  void BecomeRaw(std::shared_ptr<RawStreamState> raw, std::string_view first);
  bool raw() const { return raw_ != nullptr; }

  IoThread& thread() { return *thread_; }
  const std::shared_ptr<IoThread>& thread_ptr() const { return thread_; }
  TlsSession* tls() { return tls_.get(); }

  // The connecting half of a client: until then the socket is not yet connected.
  void set_connecting() { connecting_ = true; }

 private:
  struct Piece {
    std::shared_ptr<const std::string> shared;  // or
    std::string own;
    size_t offset = 0;
    bool counted = false;
    size_t unit_at = std::string::npos;  // where in `own` the first unit begins
    size_t cost = 0;                     // in total_queued_
    std::string_view rest() const {
      return std::string_view(shared ? *shared : own).substr(offset);
    }
  };

  void OnReadable() final;
  void OnWritable() final;
  void ProgressLater();
  void Progress();  // connect, handshake
  void RefusePlainHttp();
  void ReadSome();
  IoResult ReadOnce(char* data, size_t size, size_t& got);
  void Deliver(std::string_view bytes);
  void HandleEof();
  IoResult WriteOnce(size_t& put);
  IoResult WriteTls(size_t& put);
  IoResult WritePlain(size_t& put);
  void Blocked(IoResult result, bool progressed);
  void Consume(size_t bytes);
  void Count(Piece& piece);
  void Uncount(Piece& piece);
  void MarkDirty();
  void FinishClosing();
  void ArmTimer();
  void OnTimer();

  std::shared_ptr<IoThread> thread_;
  std::unique_ptr<ReadyFd> fd_;
  std::unique_ptr<TlsSession> tls_;

  bool connecting_ = false;
  bool open_ = false;
  bool paused_ = false;
  bool read_closed_ = false;
  bool dirty_ = false;
  bool write_blocked_ = false;
  bool read_wants_write_ = false;  // TLS
  bool write_wants_read_ = false;
  bool closing_ = false;  // after the flush
  bool linger_ = false;
  bool lingering_ = false;  // our side is shut down
  bool closed_ = false;
  size_t lingered_bytes_ = 0;

  std::vector<Piece> queue_;
  size_t queue_head_ = 0;
  size_t queued_bytes_ = 0;
  std::atomic<size_t>* total_queued_ = nullptr;

  Duration deadline_{};        // 0 = none
  Duration write_progress_{};  // when the peer last took something
  Duration write_stall_timeout_ = seconds(120);
  TimerId timer_ = 0;
  Duration timer_at_{};

  std::shared_ptr<RawStreamState> raw_;
};

}  // namespace muster::net
