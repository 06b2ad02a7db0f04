// src/net/io_threads.h
//
// IoThreads: the threads on which bytes move (sockets, TLS, framing). Servers and clients share
// them; no other code runs there, so a stalled control plane never stalls a transfer that has
// begun.
//
// Life cycle: made before, and destroyed after, every HttpServer and HttpClient that uses it. The
// destructor drops
//             what is still open and joins the threads.
// Thread:     the constructor and destructor run on the owner's thread; everything else is internal
// to `net`.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace muster::net {

class IoThread;

inline constexpr int kMaxIoThreads = 16;

class IoThreads {
 public:
  // `on_start` is the first thing that each thread does. REQUIRES: 1 <= count <= kMaxIoThreads.
  explicit IoThreads(int count, const std::function<void()>& on_start = {});
  ~IoThreads();
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  // For `net` only.
  size_t size() const { return threads_.size(); }
  const std::shared_ptr<IoThread>& At(size_t index) const { return threads_[index]; }

 private:
  std::vector<std::shared_ptr<IoThread>> threads_;
};

}  // namespace muster::net
