// bench/load_generator.h
//
// LoadGenerator: one request in flight on each of some TLS connections. A bare OpenSSL and epoll
// loop: on two cores every microsecond of the client is taken from the server that is measured.
//
// Life cycle: the constructor connects, the destructor closes.
// Thread:     the caller's; Run() blocks.
// Invariants: a wrong status or a lost connection ends the program (CHECK): a bench that lost
//             requests has no result.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "net/client.h"

namespace muster::bench {

class LoadGenerator {
 public:
  LoadGenerator(uint16_t port, const net::ClientOptions& identity, int connections);
  ~LoadGenerator();

  // Sends `count` requests; `request(index, out)` replaces `out` by the bytes of one, head and
  // body. Every answer must have `status`. Returns what each took, in the order of the answers.
  std::vector<Duration> Run(int count, int status,
                            const std::function<void(int index, std::string& out)>& request);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// An HTTP/1.1 request with a JSON body (none if empty) on a kept-alive connection.
std::string RequestBytes(std::string_view method, std::string_view target, std::string_view body);

}  // namespace muster::bench
