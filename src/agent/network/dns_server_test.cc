#include "agent/network/dns_server.h"

#include <poll.h>

#include <array>
#include <thread>

#include <gtest/gtest.h>

#include "agent/network/dns_test_support.h"
#include "agent/network/socket_address.h"
#include "agent/runtime/unique_fd.h"

namespace muster::agent {
namespace {

using json::List;

const Ipv4 kLoopback = *Ipv4::Parse("127.0.0.1");

uint16_t PortOf(const UniqueFd& fd) {
  sockaddr_in here{};
  socklen_t size = sizeof here;
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&here), &size);
  return ntohs(here.sin_port);
}

UniqueFd BindLoopback(int type) {
  UniqueFd fd(socket(AF_INET, type | SOCK_CLOEXEC, 0));
  const sockaddr_in here = ToSocketAddress(kLoopback, 0);
  CHECK(bind(fd.get(), AsSockaddr(here), sizeof here) == 0);
  return fd;
}

class DnsServerTest : public ::testing::Test {
 protected:
  void Start(DnsServerOptions options = {}) {
    options.listen = {kLoopback, 0};
    Result<std::unique_ptr<DnsServer>> server = DnsServer::Start(options);
    ASSERT_TRUE(server.has_value()) << server.error().ToString();
    server_ = std::move(*server);
  }
  void PublishJob(std::vector<json::Value> pods) {
    DnsInput input;
    input.services = {HeadlessService("job")};
    input.local_pods = std::move(pods);
    server_->Publish(DnsTable::Build(input));
  }

  UniqueFd Connect(int type) {
    UniqueFd fd(socket(AF_INET, type | SOCK_CLOEXEC, 0));
    const timeval limit{.tv_sec = 20};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const sockaddr_in there = ToSocketAddress(kLoopback, server_->port());
    EXPECT_EQ(connect(fd.get(), AsSockaddr(there), sizeof there), 0);
    return fd;
  }
  static std::string Receive(const UniqueFd& fd) {
    std::array<char, kMaxDnsMessageBytes> buffer;
    const ssize_t size = recv(fd.get(), buffer.data(), buffer.size(), 0);
    return size < 0 ? std::string() : std::string(buffer.data(), static_cast<size_t>(size));
  }
  static std::pair<std::string, sockaddr_in> ReceiveFrom(const UniqueFd& fd) {
    std::array<char, 512> buffer;
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const ssize_t got = recvfrom(fd.get(), buffer.data(), buffer.size(), 0,
                                 reinterpret_cast<sockaddr*>(&from), &size);
    return {std::string(buffer.data(), got < 0 ? 0 : static_cast<size_t>(got)), from};
  }
  static void SendTo(const UniqueFd& fd, sockaddr_in to, const std::string& bytes) {
    sendto(fd.get(), bytes.data(), bytes.size(), 0, AsSockaddr(to), sizeof to);
  }
  static void Send(const UniqueFd& fd, const std::string& bytes) {
    ASSERT_EQ(send(fd.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  static std::string ReceiveFramed(const UniqueFd& fd) {
    std::string bytes;
    while (bytes.size() < 2 || bytes.size() < 2U + ShortAt(bytes, 0)) {
      const std::string more = Receive(fd);
      if (more.empty()) return {};
      bytes += more;
    }
    return bytes.substr(2);
  }
  std::string Ask(std::string_view name, uint16_t type = dns::kTypeA) {
    const UniqueFd fd = Connect(SOCK_DGRAM);
    Send(fd, MakeQuery(name, type));
    return ReadReply(Receive(fd));
  }
  static bool HasReply(const UniqueFd& fd, int wait_ms) {
    pollfd event{fd.get(), POLLIN, 0};
    return poll(&event, 1, wait_ms) == 1;
  }

  std::unique_ptr<DnsServer> server_;
};

TEST_F(DnsServerTest, AnswersByUdpAndTcp) {
  Start();
  PublishJob({PodObject("job", "10.42.0.5")});
  EXPECT_EQ(Ask("job.ml.svc.cluster.local"), "NOERROR A 10.42.0.5");
  const UniqueFd tcp = Connect(SOCK_STREAM);
  const std::string query = MakeQuery("job.ml.svc.cluster.local", dns::kTypeA);
  const std::string frame = Short(static_cast<uint16_t>(query.size())) + query;
  Send(tcp, frame.substr(0, 5));  // in pieces, and two questions in one
  Send(tcp, frame.substr(5) + frame);
  EXPECT_EQ(ReadReply(ReceiveFramed(tcp)), "NOERROR A 10.42.0.5");
}

TEST_F(DnsServerTest, LargeAnswersAreTruncatedByUdpAndWholeByTcp) {
  Start();
  DnsInput input;
  input.services = {HeadlessService("big")};
  json::Value endpoints = List();
  for (int i = 2; i < 200; ++i)
    endpoints = endpoints.Append(EndpointObject(fmt::format("10.42.0.{}", i), true));
  input.endpoint_slices = {SliceObject("big", endpoints)};
  server_->Publish(DnsTable::Build(input));
  EXPECT_EQ(Ask("big.ml.svc.cluster.local"), "NOERROR truncated");
  const UniqueFd tcp = Connect(SOCK_STREAM);
  const std::string query = MakeQuery("big.ml.svc.cluster.local", dns::kTypeA);
  Send(tcp, Short(static_cast<uint16_t>(query.size())) + query);
  const std::string reply = ReadReply(ReceiveFramed(tcp));
  EXPECT_TRUE(reply.ends_with("A 10.42.0.199")) << reply;
}

TEST_F(DnsServerTest, LookupOfAServiceWithoutPodsIsAnsweredWhenThePodHasItsAddress) {
  Start({.hold = seconds(60)});
  PublishJob({});
  const UniqueFd fd = Connect(SOCK_DGRAM);
  Send(fd, MakeQuery("job.ml.svc.cluster.local", dns::kTypeA));
  EXPECT_EQ(Ask("job.ml.svc.cluster.local", dns::kTypeAaaa),
            "NOERROR SOA cluster.local");  // the server got both
  EXPECT_FALSE(HasReply(fd, 0));
  PublishJob({PodObject("job", "10.42.0.5")});
  EXPECT_EQ(ReadReply(Receive(fd)), "NOERROR A 10.42.0.5");
}

TEST_F(DnsServerTest, HeldLookupEndsWithTheTruth) {
  Start({.hold = milliseconds(20)});
  PublishJob({});
  EXPECT_EQ(Ask("job.ml.svc.cluster.local"), "NXDOMAIN SOA cluster.local");
}

TEST_F(DnsServerTest, NothingIsDeniedBeforeTheFirstTable) {
  Start({.hold = seconds(60)});
  const UniqueFd fd = Connect(SOCK_DGRAM);
  Send(fd, MakeQuery("nowhere.ml.svc.cluster.local", dns::kTypeA));
  EXPECT_EQ(Ask("example.com"), "REFUSED");
  EXPECT_FALSE(HasReply(fd, 0));
  PublishJob({});
  EXPECT_EQ(ReadReply(Receive(fd)), "NXDOMAIN SOA cluster.local");
}

TEST_F(DnsServerTest, WithoutResolversTheOutsideIsRefused) {
  Start();
  PublishJob({});
  EXPECT_EQ(Ask("example.com"), "REFUSED");
}

TEST_F(DnsServerTest, ForwardsAndPassesTheReplyOn) {
  const UniqueFd upstream = BindLoopback(SOCK_DGRAM);
  Start({.upstreams = {{kLoopback, PortOf(upstream)}}});
  PublishJob({});
  const UniqueFd fd = Connect(SOCK_DGRAM);
  const std::string question = MakeQuery("example.com", dns::kTypeA);
  Send(fd, question);
  const auto [asked, from] = ReceiveFrom(upstream);
  EXPECT_EQ(asked, question);
  const DnsQuery query = *ParseDnsQuery(question);
  DnsReply reply(query, DnsCode::kNoError, false);
  reply.AddA(*Ipv4::Parse("192.0.2.80"), 60);
  const std::string bytes = reply.Finish(512);
  std::string forged = bytes;
  forged[0] = 'x';
  for (const std::string& packet : {forged, question, bytes}) SendTo(upstream, from, packet);
  EXPECT_EQ(ReadReply(Receive(fd)), "NOERROR A 192.0.2.80");
}

TEST_F(DnsServerTest, AsksForWhatAnExternalNameIs) {
  const UniqueFd upstream = BindLoopback(SOCK_DGRAM);
  Start({.upstreams = {{kLoopback, PortOf(upstream)}}});
  const UniqueFd fd = Connect(SOCK_DGRAM);
  Send(fd, MakeQuery("db.ml.svc.cluster.local", dns::kTypeA));  // it waits for the names
  DnsInput input;
  input.services = {ServiceObject(
      "db", json::Obj({{"type", "ExternalName"}, {"externalName", "db.example.com"}}))};
  server_->Publish(DnsTable::Build(input));
  for (int round = 0; round < 2; ++round) {
    const auto [asked, from] = ReceiveFrom(upstream);
    const DnsQuery query = *ParseDnsQuery(asked);
    EXPECT_EQ(query.name, "db.example.com");
    DnsReply reply(query, DnsCode::kNoError, false);
    reply.AddA(*Ipv4::Parse("192.0.2.80"), 60);
    SendTo(upstream, from, reply.Finish(512));
    EXPECT_EQ(ReadReply(Receive(fd)), "NOERROR CNAME db.example.com, db.example.com A 192.0.2.80");
    if (round == 0) Send(fd, MakeQuery("db.ml.svc.cluster.local", dns::kTypeA));
  }
}

TEST_F(DnsServerTest, ForwardsByTcpForTcpClients) {
  const UniqueFd upstream = BindLoopback(SOCK_STREAM);
  ASSERT_EQ(listen(upstream.get(), 1), 0);
  Start({.upstreams = {{kLoopback, PortOf(upstream)}}});
  PublishJob({});
  const UniqueFd fd = Connect(SOCK_STREAM);
  const std::string question = MakeQuery("example.com", dns::kTypeA);
  Send(fd, Short(static_cast<uint16_t>(question.size())) + question);
  const UniqueFd forwarded(accept(upstream.get(), nullptr, nullptr));
  EXPECT_EQ(ReceiveFramed(forwarded), question);
  const DnsQuery query = *ParseDnsQuery(question);
  DnsReply reply(query, DnsCode::kNoError, false);
  for (uint32_t i = 0; i < 2000; ++i) reply.AddA(Ipv4{0xC0000200 + i}, 60);
  const std::string bytes = reply.Finish(kMaxDnsMessageBytes);
  Send(forwarded, Short(static_cast<uint16_t>(bytes.size())) + bytes);
  EXPECT_EQ(ReceiveFramed(fd), bytes);
}

TEST_F(DnsServerTest, NextResolverIsAskedWhenOneRefusesAndAllRefusingIsAFailure) {
  uint16_t closed_port = 0;
  {
    const UniqueFd closed = BindLoopback(SOCK_DGRAM);
    closed_port = PortOf(closed);
  }
  const UniqueFd upstream = BindLoopback(SOCK_DGRAM);
  Start({.upstreams = {{kLoopback, closed_port}, {kLoopback, PortOf(upstream)}}});
  PublishJob({});
  const UniqueFd fd = Connect(SOCK_DGRAM);
  Send(fd, MakeQuery("example.com", dns::kTypeA));
  EXPECT_TRUE(HasReply(upstream, 20'000));
}

TEST_F(DnsServerTest, HeldQuestionsAreBounded) {
  Start({.hold = seconds(60)});
  PublishJob({});
  const UniqueFd fd = Connect(SOCK_DGRAM);
  for (size_t i = 1; i <= kMaxHeldQuestions; ++i) {
    Send(fd, MakeQuery("job.ml.svc.cluster.local", dns::kTypeA));
    // In between an answer, so that the socket's buffer never overflows.
    if (i % 64 == 0) Ask("x.cluster.local");
  }
  EXPECT_FALSE(HasReply(fd, 0));
  EXPECT_EQ(Ask("job.ml.svc.cluster.local"), "NXDOMAIN SOA cluster.local");
}

TEST_F(DnsServerTest, TcpConnectionsAreBounded) {
  Start();
  PublishJob({});
  std::vector<UniqueFd> connections;
  for (size_t i = 0; i < kMaxDnsTcpConnections; ++i) connections.push_back(Connect(SOCK_STREAM));
  const UniqueFd one_more = Connect(SOCK_STREAM);
  EXPECT_EQ(Receive(one_more), "");  // closed
  EXPECT_FALSE(HasReply(connections.back(), 0));
}

// A refusal comes some time after the question was sent; it must not be asked again without end.
TEST(DnsForwarder, AsksEachResolverThatRefusesOnce) {
  for (const bool by_tcp : {false, true}) {
    AsioLoop loop;
    std::vector<DnsEndpoint> closed;
    for (int i = 0; i < 2; ++i) {
      const UniqueFd port = BindLoopback(by_tcp ? SOCK_STREAM : SOCK_DGRAM);
      closed.push_back({kLoopback, PortOf(port)});
    }
    DnsForwarder forwarder(loop, closed, std::chrono::hours(1));  // only refusals can end it
    bool answered = false;
    forwarder.Forward(MakeQuery("example.com", dns::kTypeA), by_tcp,
                      [&](std::optional<std::string> reply) {
                        answered = true;
                        EXPECT_FALSE(reply);
                        loop.Stop();
                      });
    if (!answered) loop.Run();
    EXPECT_TRUE(answered);
    EXPECT_EQ(forwarder.in_flight(), 0U);
  }
}

TEST(DnsForwarder, GivesUpInTimeAndBoundsWhatIsOut) {
  AsioLoop loop;
  const UniqueFd silent = BindLoopback(SOCK_DGRAM);
  DnsForwarder forwarder(loop, {{kLoopback, PortOf(silent)}}, milliseconds(50));
  size_t unanswered = 0;
  bool refused = false;
  constexpr size_t kQuestions = kMaxForwardsInFlight;
  for (size_t i = 0; i < kQuestions; ++i) {
    forwarder.Forward(MakeQuery("example.com", dns::kTypeA), false,
                      [&](std::optional<std::string> reply) {
                        if (!reply && ++unanswered == kQuestions) loop.Stop();
                      });
  }
  EXPECT_EQ(forwarder.in_flight(), kQuestions);
  bool one_more = true;
  forwarder.Forward(MakeQuery("example.com", dns::kTypeA), false,
                    [&](std::optional<std::string> reply) { one_more = reply.has_value(); });
  EXPECT_FALSE(one_more);
  loop.Run();
  EXPECT_EQ(unanswered, kQuestions);
  EXPECT_EQ(forwarder.in_flight(), 0U);
  DnsForwarder nobody(loop, {});
  nobody.Forward(MakeQuery("example.com", dns::kTypeA), false,
                 [&](auto reply) { refused = !reply; });
  EXPECT_TRUE(refused);
}

TEST(UpstreamsFrom, KeepsThreeIpv4ServersButNotItself) {
  const std::vector<DnsEndpoint> upstreams = UpstreamsFrom(
      "nameserver 10.42.0.1\nnameserver fd00::1\nnameserver 192.0.2.1\nnameserver 192.0.2.1\n"
      "nameserver 192.0.2.2\nnameserver 192.0.2.3\nnameserver 192.0.2.4\n",
      *Ipv4::Parse("10.42.0.1"));
  ASSERT_EQ(upstreams.size(), 3U);
  EXPECT_EQ(upstreams[2].address.ToString(), "192.0.2.3");
}

}  // namespace
}  // namespace muster::agent
