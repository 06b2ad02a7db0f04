// src/net/io_thread.h
//
// Internal to net. IoThread: one thread with a reactor. Everything that belongs to a connection
// runs on the thread that owns it, so connections need no locks. Work from other threads comes
// through Post().
//
// Life cycle: made and joined by IoThreads; others hold a shared_ptr so that a late Post() finds a
//             closed mailbox.
// Thread:     Post() from any; everything else on this thread.
// Invariants: output queued during one turn (an event, or a batch of posted tasks) is flushed once
//             at its end; an object that is released lives until the end of the turn; handshakes
//             come one at a time, behind whatever else is ready.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/task.h"
#include "base/time.h"
#include "loop/loop.h"

namespace muster::net {

inline constexpr size_t kReadScratchBytes = 64 * 1024;
inline constexpr size_t kWriteScratchBytes = 16 * 1024;  // one TLS record

// Told when its descriptor is ready.
class FdEvents {
 public:
  virtual ~FdEvents() = default;
  virtual void OnReadable() = 0;
  virtual void OnWritable() = 0;
};

// Owns a file descriptor; destroying it closes the descriptor and no event comes afterwards.
class ReadyFd {
 public:
  virtual ~ReadyFd() = default;
  virtual int fd() const = 0;
  // One event each; no effect while already waiting.
  virtual void WaitReadable() = 0;
  virtual void WaitWritable() = 0;
};

// What a thread keeps alive: connections and listeners.
class IoObject : public std::enable_shared_from_this<IoObject> {
 public:
  virtual ~IoObject() = default;
  virtual void Flush() {}    // at the end of a turn, after MarkDirty()
  virtual void Abort() = 0;  // the thread ends: let go of the descriptor now
};

struct SocketAddress {
  bool ipv6 = false;
  std::string ip;
  uint16_t port = 0;
};

class IoThread {
 public:
  virtual ~IoThread() = default;

  virtual void Post(Task task) = 0;
  // As Post(), from this thread: for work that takes long. It runs as a turn of its own, in order,
  // when every event that is ready now had its turn.
  virtual void PostBehind(Task task) = 0;

  virtual TimerId After(Duration delay, Task task) = 0;
  virtual void Cancel(TimerId timer) = 0;
  virtual Duration Now() const = 0;  // monotonic

  // Takes over `fd` (non-blocking).
  virtual std::unique_ptr<ReadyFd> Watch(int fd, FdEvents& events) = 0;
  virtual void Resolve(const std::string& host, uint16_t port,
                       Function<void(Result<std::vector<SocketAddress>>)> done) = 0;

  virtual void Keep(std::shared_ptr<IoObject> object) = 0;
  virtual void Release(IoObject& object) = 0;
  virtual void MarkDirty(IoObject& object) = 0;

  virtual std::span<char> read_scratch() = 0;
  virtual std::span<char> write_scratch() = 0;
};

// For IoThreads.
std::shared_ptr<IoThread> StartIoThread(int index);
void StopIoThread(IoThread& thread);

}  // namespace muster::net
