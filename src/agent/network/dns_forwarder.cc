#include "agent/network/dns_forwarder.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <utility>

#include "agent/network/dns_message.h"
#include "agent/network/socket_address.h"
#include "agent/runtime/unique_fd.h"
#include "base/check.h"

namespace muster::agent {

struct DnsForwarder::Flight {
  std::string query;
  bool by_tcp = false;
  Done done;
  size_t tries = 0;
  size_t refused = 0;  // one after the other: each resolver once means that nobody answers
  TimerId give_up = 0;
  TimerId next_try = 0;
  std::string received;  // by TCP
  // In this order: the watches end before their descriptors close.
  UniqueFd socket;
  UniqueFd writable;  // an epoll set that is readable once the socket is writable
  std::unique_ptr<FdWatch> watch;
};

DnsForwarder::DnsForwarder(AsioLoop& loop, std::vector<DnsEndpoint> upstreams, Duration timeout)
    : loop_(loop), upstreams_(std::move(upstreams)), timeout_(timeout) {}

DnsForwarder::~DnsForwarder() {
  for (const auto& [id, flight] : flights_) {
    loop_.Cancel(flight->give_up);
    loop_.Cancel(flight->next_try);
  }
}

void DnsForwarder::Forward(std::string query, bool by_tcp, Done done) {
  if (upstreams_.empty() || flights_.size() >= kMaxForwardsInFlight) {
    done(std::nullopt);
    return;
  }
  const uint64_t id = next_id_++;
  auto flight = std::make_unique<Flight>();
  flight->query = std::move(query);
  flight->by_tcp = by_tcp;
  flight->done = std::move(done);
  flight->give_up = loop_.After(timeout_, [this, id] { Finish(id, std::nullopt); });
  flights_.emplace(id, std::move(flight));
  Try(id);
}

void DnsForwarder::Try(uint64_t id) {
  const auto found = flights_.find(id);
  if (found == flights_.end()) return;
  Flight& flight = *found->second;
  loop_.Cancel(flight.next_try);
  // Resolvers that refuse are asked once each; slow ones again until the time is up.
  for (; flight.refused < upstreams_.size(); ++flight.refused) {
    if (!Send(id, flight)) continue;
    flight.next_try = loop_.After(kForwardTryTimeout, [this, id] {
      if (const auto slow = flights_.find(id); slow != flights_.end()) slow->second->refused = 0;
      Try(id);
    });
    return;
  }
  Finish(id, std::nullopt);
}

void DnsForwarder::OnRefused(uint64_t id, Flight& flight) {
  ++flight.refused;
  Try(id);
}

bool DnsForwarder::Send(uint64_t id, Flight& flight) {
  const DnsEndpoint& upstream = upstreams_[flight.tries++ % upstreams_.size()];
  flight.watch.reset();
  flight.received.clear();
  flight.socket = UniqueFd(socket(
      AF_INET, (flight.by_tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const sockaddr_in there = ToSocketAddress(upstream.address, upstream.port);
  const bool connected = connect(flight.socket.get(), AsSockaddr(there), sizeof there) == 0;
  if (!flight.by_tcp) {
    if (!connected ||
        send(flight.socket.get(), flight.query.data(), flight.query.size(), MSG_NOSIGNAL) < 0) {
      return false;
    }
    flight.watch = loop_.WatchReadable(flight.socket.get(), [this, id] { OnReadable(id); });
    return true;
  }
  if (!connected && errno != EINPROGRESS) return false;
  flight.writable = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{.events = EPOLLOUT, .data = {}};
  if (epoll_ctl(flight.writable.get(), EPOLL_CTL_ADD, flight.socket.get(), &event) != 0)
    return false;
  flight.watch = loop_.WatchReadable(flight.writable.get(), [this, id] { OnWritable(id); });
  return true;
}

void DnsForwarder::OnWritable(uint64_t id) {
  const auto found = flights_.find(id);
  if (found == flights_.end()) return;
  Flight& flight = *found->second;
  std::string frame;
  frame += static_cast<char>(flight.query.size() >> 8);
  frame += static_cast<char>(flight.query.size() & 0xFF);
  frame += flight.query;
  const ssize_t sent = send(flight.socket.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(frame.size())) return OnRefused(id, flight);
  flight.watch = loop_.WatchReadable(flight.socket.get(), [this, id] { OnReadable(id); });
}

void DnsForwarder::OnReadable(uint64_t id) {
  const auto found = flights_.find(id);
  if (found == flights_.end()) return;
  Flight& flight = *found->second;
  if (flight.by_tcp) {
    ReadTcp(id, flight);
  } else {
    ReadUdp(id, flight);
  }
}

void DnsForwarder::ReadUdp(uint64_t id, Flight& flight) {
  std::array<char, kMaxDnsMessageBytes> buffer;
  while (true) {
    const ssize_t size = recv(flight.socket.get(), buffer.data(), buffer.size(), 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size < 0) return OnRefused(id, flight);  // e.g. nobody listens there
    const std::string_view reply(buffer.data(), static_cast<size_t>(size));
    // Only a reply to this very question; anything else is noise or forged.
    if (reply.size() < 12 || reply.substr(0, 2) != std::string_view(flight.query).substr(0, 2))
      continue;
    if ((static_cast<uint8_t>(reply[2]) & 0x80) == 0) continue;
    Finish(id, std::string(reply));
    return;
  }
}

void DnsForwarder::ReadTcp(uint64_t id, Flight& flight) {
  std::array<char, 16384> buffer;
  while (true) {
    const ssize_t size = recv(flight.socket.get(), buffer.data(), buffer.size(), 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size <= 0) return OnRefused(id, flight);
    flight.received.append(buffer.data(), static_cast<size_t>(size));
    if (flight.received.size() < 2) continue;
    const size_t length = static_cast<size_t>(static_cast<uint8_t>(flight.received[0])) << 8 |
                          static_cast<uint8_t>(flight.received[1]);
    if (flight.received.size() < length + 2) continue;
    Finish(id, flight.received.substr(2, length));
    return;
  }
}

void DnsForwarder::Finish(uint64_t id, std::optional<std::string> reply) {
  const auto found = flights_.find(id);
  if (found == flights_.end()) return;
  const std::unique_ptr<Flight> flight = std::move(found->second);
  flights_.erase(found);
  loop_.Cancel(flight->give_up);
  loop_.Cancel(flight->next_try);
  flight->watch.reset();
  flight->done(std::move(reply));
}

}  // namespace muster::agent
