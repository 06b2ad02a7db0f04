#include "agent/network/dns_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "agent/network/dns_answer.h"
#include "agent/network/dns_message.h"
#include "agent/network/pod_files.h"
#include "agent/network/socket_address.h"
#include "base/log.h"
#include "loop/asio_loop.h"
#include "loop/thread_pool.h"

namespace muster::agent {

namespace {

constexpr int kTcpBacklog = 64;
constexpr Duration kAcceptRetry = milliseconds(100);
constexpr int kTcpSendBufferBytes = 4 * static_cast<int>(kMaxDnsMessageBytes);

Status SystemError(std::string_view doing, const DnsEndpoint& where) {
  return Error(Reason::kInternalError, "dns: {} {}:{}: {}", doing, where.address.ToString(),
               where.port, std::strerror(errno));
}

constexpr int kPortTries = 20;

Result<UniqueFd> Bind(int type, const DnsEndpoint& where, bool free) {
  UniqueFd fd(socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return Error(SystemError("make a socket for", where));
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (free) setsockopt(fd.get(), IPPROTO_IP, IP_FREEBIND, &on, sizeof on);
  const sockaddr_in here = ToSocketAddress(where.address, where.port);
  if (bind(fd.get(), AsSockaddr(here), sizeof here) != 0) {
    const bool in_use = errno == EADDRINUSE;
    const Status status = SystemError("bind", where);
    if (!in_use) return Error(status);
    return Error(status.reason(), "{}; another muster or DNS server may run on this machine",
                 status.message());
  }
  if (type == SOCK_STREAM && listen(fd.get(), kTcpBacklog) != 0)
    return Error(SystemError("listen on", where));
  return fd;
}

uint16_t BoundPort(const UniqueFd& fd) {
  sockaddr_in here{};
  socklen_t size = sizeof here;
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&here), &size);
  return ntohs(here.sin_port);
}

class Server final : public DnsServer {
 public:
  Server(const DnsServerOptions& options, UniqueFd udp, UniqueFd tcp)
      : options_(options), udp_(std::move(udp)), tcp_(std::move(tcp)), port_(BoundPort(udp_)) {
    udp_watch_ = loop_.WatchReadable(udp_.get(), [this] { OnDatagrams(); });
    WatchConnections();
    thread_.Run([this] { loop_.Run(); }, loop_, [] {});
  }
  ~Server() override { loop_.Stop(); }

  void Publish(std::shared_ptr<const DnsTable> table) override {
    loop_.Post([this, table = std::move(table)]() mutable { SetTable(std::move(table)); });
  }
  uint16_t port() const override { return port_; }

 private:
  using ConnectionId = uint64_t;  // 0: none
  struct Client {
    sockaddr_in address{};        // by UDP
    ConnectionId connection = 0;  // by TCP
  };
  struct Connection {
    UniqueFd fd;
    std::unique_ptr<FdWatch> watch;
    std::string received;
    TimerId idle = 0;
  };
  struct Held {
    DnsQuery query;
    Client client;
    TimerId deadline = 0;
  };

  void OnDatagrams();
  void WatchConnections() {
    tcp_watch_ = loop_.WatchReadable(tcp_.get(), [this] { OnConnections(); });
  }
  void OnConnections();
  void OnConnectionReadable(ConnectionId id);
  bool TakeMessages(ConnectionId id);
  void RestartIdleTimer(ConnectionId id, Connection& connection);
  void CloseConnection(ConnectionId id);

  void Handle(std::string_view bytes, const Client& client);
  void Hold(DnsQuery query, const Client& client, std::string otherwise);
  void Forward(std::string_view bytes, DnsQuery query, const Client& client);
  void AskForAlias(DnsQuery query, DnsAnswer answer, const Client& client);
  void SetTable(std::shared_ptr<const DnsTable> table);
  static size_t MaxBytes(const DnsQuery& query, const Client& client) {
    return client.connection != 0 ? kMaxDnsMessageBytes : query.udp_reply_bytes;
  }
  DnsAnswer Answer(const DnsQuery& query, const Client& client) const;
  void Reply(const Client& client, const std::string& bytes);

  const DnsServerOptions options_;
  AsioLoop loop_;
  const UniqueFd udp_;
  const UniqueFd tcp_;
  const uint16_t port_;
  std::unique_ptr<FdWatch> udp_watch_;
  std::unique_ptr<FdWatch> tcp_watch_;
  std::shared_ptr<const DnsTable> table_;  // nullptr before the first Publish()
  const std::shared_ptr<const DnsTable> nothing_ = DnsTable::Build({});
  DnsForwarder forwarder_{loop_, options_.upstreams};
  std::map<ConnectionId, Connection> connections_;
  ConnectionId next_connection_ = 1;
  std::map<uint64_t, Held> held_;
  uint64_t next_held_ = 1;
  ThreadPool thread_{"dns", 1};  // last: its end comes first, then nothing above is in use
};

void Server::OnDatagrams() {
  std::array<char, kMaxDnsMessageBytes> buffer;
  while (true) {
    Client client;
    socklen_t size = sizeof client.address;
    const ssize_t got = recvfrom(udp_.get(), buffer.data(), buffer.size(), 0,
                                 reinterpret_cast<sockaddr*>(&client.address), &size);
    if (got < 0 && errno != EAGAIN) continue;  // e.g. an earlier reply found nobody
    if (got < 0) return;
    Handle(std::string_view(buffer.data(), static_cast<size_t>(got)), client);
  }
}

void Server::OnConnections() {
  while (true) {
    UniqueFd fd(accept4(tcp_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid() && (errno == EMFILE || errno == ENFILE)) {
      // No descriptor is free: the caller stays in the queue until a later look.
      tcp_watch_.reset();
      loop_.After(kAcceptRetry, [this] { WatchConnections(); });
    }
    if (!fd.valid()) return;
    if (connections_.size() >= kMaxDnsTcpConnections) continue;  // closes it
    setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &kTcpSendBufferBytes, sizeof kTcpSendBufferBytes);
    const ConnectionId id = next_connection_++;
    Connection& connection = connections_[id];
    connection.fd = std::move(fd);
    connection.watch =
        loop_.WatchReadable(connection.fd.get(), [this, id] { OnConnectionReadable(id); });
    RestartIdleTimer(id, connection);
  }
}

void Server::RestartIdleTimer(ConnectionId id, Connection& connection) {
  loop_.Cancel(connection.idle);
  connection.idle = loop_.After(kDnsTcpIdleTimeout, [this, id] { CloseConnection(id); });
}

void Server::CloseConnection(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  loop_.Cancel(found->second.idle);
  found->second.watch.reset();
  connections_.erase(found);
}

void Server::OnConnectionReadable(ConnectionId id) {
  std::array<char, 16384> buffer;
  while (true) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    const ssize_t got = recv(found->second.fd.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      CloseConnection(id);
      return;
    }
    found->second.received.append(buffer.data(), static_cast<size_t>(got));
    if (!TakeMessages(id)) return;
  }
}

// False when the connection is gone.
bool Server::TakeMessages(ConnectionId id) {
  while (true) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return false;
    std::string& received = found->second.received;
    if (received.size() < 2) return true;
    const size_t length = static_cast<size_t>(static_cast<uint8_t>(received[0])) << 8 |
                          static_cast<uint8_t>(received[1]);
    if (received.size() < length + 2) return true;
    const std::string message = received.substr(2, length);
    received.erase(0, length + 2);
    RestartIdleTimer(id, found->second);
    Handle(message, {.connection = id});
  }
}

DnsAnswer Server::Answer(const DnsQuery& query, const Client& client) const {
  const size_t max_bytes = MaxBytes(query, client);
  const DnsRanges ranges{options_.pod_range, options_.service_range};
  if (table_) return AnswerDns(query, *table_, ranges, max_bytes);
  // Nothing is known yet: what would be denied may exist.
  DnsAnswer answer = AnswerDns(query, *nothing_, ranges, max_bytes);
  if (answer.kind != DnsAnswer::Kind::kForward && query.error == DnsCode::kNoError) {
    answer = {.kind = DnsAnswer::Kind::kHold, .reply = FailDns(query, DnsCode::kServerFailure)};
  }
  return answer;
}

void Server::Handle(std::string_view bytes, const Client& client) {
  std::optional<DnsQuery> query = ParseDnsQuery(bytes);
  if (!query) return;
  DnsAnswer answer = Answer(*query, client);
  switch (answer.kind) {
    case DnsAnswer::Kind::kReply:
      Reply(client, answer.reply);
      return;
    case DnsAnswer::Kind::kHold:
      Hold(std::move(*query), client, std::move(answer.reply));
      return;
    case DnsAnswer::Kind::kForward:
      Forward(bytes, std::move(*query), client);
      return;
    case DnsAnswer::Kind::kAlias:
      AskForAlias(std::move(*query), std::move(answer), client);
      return;
  }
}

void Server::Hold(DnsQuery query, const Client& client, std::string otherwise) {
  if (held_.size() >= kMaxHeldQuestions) {
    Reply(client, otherwise);
    return;
  }
  const uint64_t id = next_held_++;
  const TimerId deadline =
      loop_.After(options_.hold, [this, id, client, otherwise = std::move(otherwise)] {
        held_.erase(id);
        Reply(client, otherwise);
      });
  held_.emplace(id, Held{std::move(query), client, deadline});
}

void Server::Forward(std::string_view bytes, DnsQuery query, const Client& client) {
  if (options_.upstreams.empty()) {
    Reply(client, FailDns(query, DnsCode::kRefused));
    return;
  }
  forwarder_.Forward(std::string(bytes), client.connection != 0,
                     [this, query = std::move(query), client](std::optional<std::string> reply) {
                       Reply(client, reply ? *reply : FailDns(query, DnsCode::kServerFailure));
                     });
}

void Server::AskForAlias(DnsQuery query, DnsAnswer answer, const Client& client) {
  if (options_.upstreams.empty()) {
    Reply(client, answer.reply);
    return;
  }
  std::string question = MakeDnsQuestion(query.id, answer.alias, query.type);
  forwarder_.Forward(std::move(question), client.connection != 0,
                     [this, query = std::move(query), alias = std::move(answer.alias),
                      client](std::optional<std::string> reply) {
                       Reply(client,
                             reply ? AnswerAlias(query, alias, *reply, MaxBytes(query, client))
                                   : FailDns(query, DnsCode::kServerFailure));
                     });
}

void Server::SetTable(std::shared_ptr<const DnsTable> table) {
  table_ = std::move(table);
  for (auto next = held_.begin(); next != held_.end();) {
    const auto held = next++;
    DnsAnswer answer = Answer(held->second.query, held->second.client);
    if (answer.kind == DnsAnswer::Kind::kHold) continue;
    loop_.Cancel(held->second.deadline);
    const Held question = std::move(held->second);
    held_.erase(held);
    if (answer.kind == DnsAnswer::Kind::kAlias) {
      AskForAlias(question.query, std::move(answer), question.client);
    } else {
      Reply(question.client, answer.reply);
    }
  }
}

void Server::Reply(const Client& client, const std::string& bytes) {
  if (client.connection == 0) {
    // A full socket buffer loses the reply, as the network might: the client asks again.
    sendto(udp_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL, AsSockaddr(client.address),
           sizeof client.address);
    return;
  }
  const auto found = connections_.find(client.connection);
  if (found == connections_.end()) return;
  std::string frame;
  frame += static_cast<char>(bytes.size() >> 8);
  frame += static_cast<char>(bytes.size() & 0xFF);
  frame += bytes;
  const ssize_t sent = send(found->second.fd.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
  // Who does not read its replies is let go.
  if (sent != static_cast<ssize_t>(frame.size())) CloseConnection(client.connection);
}

}  // namespace

std::vector<DnsEndpoint> UpstreamsFrom(std::string_view resolv_conf, Ipv4 self) {
  std::vector<DnsEndpoint> upstreams;
  for (const std::string& server : ParseResolvConf(resolv_conf).nameservers) {
    const std::optional<Ipv4> address = Ipv4::Parse(server);
    if (!address || *address == self || address->IsUnset()) continue;
    const DnsEndpoint endpoint{*address, 53};
    if (std::ranges::find(upstreams, endpoint) == upstreams.end()) upstreams.push_back(endpoint);
    if (upstreams.size() == kMaxNameservers) break;
  }
  return upstreams;
}

Result<DnsSockets> BindDns(const DnsEndpoint& where, bool free) {
  // A port that the kernel picked for UDP may be taken for TCP: then it picks another one.
  const int tries = where.port == 0 ? kPortTries : 1;
  for (int i = 1;; ++i) {
    ASSIGN_OR_RETURN(UniqueFd udp, Bind(SOCK_DGRAM, where, free));
    Result<UniqueFd> tcp = Bind(SOCK_STREAM, {where.address, BoundPort(udp)}, free);
    if (tcp) return DnsSockets{std::move(udp), std::move(*tcp)};
    if (i == tries) return Error(std::move(tcp).error());
  }
}

Result<std::unique_ptr<DnsServer>> DnsServer::Start(const DnsServerOptions& options) {
  ASSIGN_OR_RETURN(DnsSockets sockets, BindDns(options.listen));
  return Start(options, std::move(sockets));
}

Result<std::unique_ptr<DnsServer>> DnsServer::Start(const DnsServerOptions& options,
                                                    DnsSockets sockets) {
  return std::make_unique<Server>(options, std::move(sockets.udp), std::move(sockets.tcp));
}

}  // namespace muster::agent
