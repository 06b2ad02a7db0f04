// bench/bare_writer.h
//
// The control of the watch benches: what it costs to write the same bytes to the same number of TLS
// connections with nothing around OpenSSL but a loop.
//
// Life cycle: construct (listens on a free port), then Accept() while another thread connects, then
//             Write() as often as wanted.
// Thread:     Accept() and Write() on one.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace muster::bench {

class BareWriter {
 public:
  BareWriter(const std::string& certificate_file, const std::string& key_file);
  ~BareWriter();
  uint16_t port() const;
  void Accept(int count);
  // To every connection; waits for a slow one.
  void Write(std::string_view bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// CPU time of the calling thread, in seconds.
double ThreadCpuSeconds();
// CPU time of another process, in seconds.
double ProcessCpuSeconds(int pid);

}  // namespace muster::bench
