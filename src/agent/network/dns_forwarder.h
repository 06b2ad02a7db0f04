// src/agent/network/dns_forwarder.h
//
// DnsForwarder: asks the host's resolvers on behalf of pods. A socket of its own for each question,
// so that the kernel's choice of port protects against forged replies.
//
// Life cycle: construct, Forward() at will; destruction drops what is in flight without an answer.
// Thread:     the loop's.
// Invariants: each Done runs at most once, within kForwardTimeout; at most kMaxForwardsInFlight
//             questions are out.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/network/ipv4.h"
#include "base/task.h"
#include "base/time.h"
#include "loop/asio_loop.h"

namespace muster::agent {

struct DnsEndpoint {
  Ipv4 address;
  uint16_t port = 53;
  bool operator==(const DnsEndpoint&) const = default;
};

// A descriptor each; a process has 1,024 by default.
inline constexpr size_t kMaxForwardsInFlight = 500;
inline constexpr Duration kForwardTimeout = seconds(5);
// One resolver gets this long before the next one (or the same again) is asked.
inline constexpr Duration kForwardTryTimeout = milliseconds(1700);

class DnsForwarder {
 public:
  // nullopt: nobody answered, or too many questions are out.
  using Done = Function<void(std::optional<std::string> reply)>;

  DnsForwarder(AsioLoop& loop, std::vector<DnsEndpoint> upstreams,
               Duration timeout = kForwardTimeout);
  ~DnsForwarder();

  // `query` as received; by TCP when the client came by TCP. `done` may run before this returns.
  void Forward(std::string query, bool by_tcp, Done done);
  size_t in_flight() const { return flights_.size(); }

 private:
  struct Flight;

  void Try(uint64_t id);
  bool Send(uint64_t id, Flight& flight);
  void OnRefused(uint64_t id, Flight& flight);
  void OnWritable(uint64_t id);
  void OnReadable(uint64_t id);
  void ReadUdp(uint64_t id, Flight& flight);
  void ReadTcp(uint64_t id, Flight& flight);
  void Finish(uint64_t id, std::optional<std::string> reply);

  AsioLoop& loop_;
  const std::vector<DnsEndpoint> upstreams_;
  const Duration timeout_;
  std::map<uint64_t, std::unique_ptr<Flight>> flights_;
  uint64_t next_id_ = 1;
};

}  // namespace muster::agent
