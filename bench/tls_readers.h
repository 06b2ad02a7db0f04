// bench/tls_readers.h
//
// Many TLS connections that one thread reads with as little work as OpenSSL allows: what it costs
// to be the other end must not hide what the server costs. Each connection sends one request when
// it is open; what comes back is searched for stamps.
//
// A stamp is `"stamp":"` and a monotonic time in nanoseconds: the writer of an event puts it in,
// and a reader takes the time until it arrives.
//
// Life cycle: construct, Open() some connections, Run() for a while, any number of times.
// Thread:     one.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace muster::bench {

struct ReaderKeys {
  std::string ca_file, certificate_file, key_file;
};

class TlsReaders {
 public:
  explicit TlsReaders(const ReaderKeys& keys);
  ~TlsReaders();

  // Opens `count` connections to 127.0.0.1:port, one after the other, and sends `request` on each.
  void Open(int count, uint16_t port, const std::string& request);
  // Reads until the deadline, or until `stamps` stamps have come.
  void Run(Duration deadline, size_t stamps);

  // Nothing more is read from the first `count` connections: clients that hang.
  void StopReading(int count);

  size_t open() const;                  // connections that the server has not closed
  size_t stamps() const;                // seen
  std::vector<double> TakeLatencies();  // seconds, of the stamps seen since

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// `"stamp":"123"` of this moment.
std::string StampNow();

}  // namespace muster::bench
