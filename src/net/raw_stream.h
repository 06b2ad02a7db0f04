// src/net/raw_stream.h
//
// Internal to net. RawStream: the ByteStream of an upgraded connection. The loop side (RawStream)
// and the I/O side (Connection) share a RawStreamState; bytes cross by Post in both directions.
//
// Thread:     RawStream on the loop; RawStreamIo on the connection's I/O thread; RawStreamState as
// marked. Invariants: the I/O side reads no further while more than kMaxUndeliveredBytes wait for
// the loop; while the stream is paused, what it was given goes on waiting in that sense.

#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "loop/loop.h"
#include "net/http.h"
#include "net/io_thread.h"

namespace muster::net {

// What the stream needs of its connection.
class RawStreamIo {
 public:
  virtual ~RawStreamIo() = default;
  virtual void RawWrite(std::string bytes) = 0;
  virtual void RawClose() = 0;   // after what was written
  virtual void RawResume() = 0;  // the loop caught up
};

struct RawStreamState : std::enable_shared_from_this<RawStreamState> {
  RawStreamState(Loop& l, std::shared_ptr<IoThread> t) : loop(l), thread(std::move(t)) {}

  Loop& loop;
  const std::shared_ptr<IoThread> thread;
  std::weak_ptr<RawStreamIo> io;  // set by the I/O thread before the first event, locked only there

  std::atomic<size_t> buffered{0};     // written by the loop, not yet taken by the kernel
  std::atomic<size_t> undelivered{0};  // read from the socket, not yet given to on_data

  // Loop side.
  Function<void(std::string_view)> on_data;
  Task on_close;
  Function<void()> on_drained;
  bool paused = false;
  size_t held = 0;    // given to on_data while paused; still counted in `undelivered`
  std::string early;  // arrived before OnData
  bool peer_closed = false;
  bool close_delivered = false;
  bool destroyed = false;

  // From the I/O thread.
  void PostData(std::string bytes);
  void PostClosed();
  void TakenByKernel(size_t bytes);
  // On the loop.
  void Deliver(std::string bytes);
  void DeliverClose();
  void DeliverEarly();
  void Delivered(size_t bytes);
  void SetPaused(bool pause);
  void DeliverDrained();
};

std::unique_ptr<ByteStream> MakeRawStream(std::shared_ptr<RawStreamState> state);

}  // namespace muster::net
