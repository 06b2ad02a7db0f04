#include "agent/devices/grpc_connection.h"

#include <sys/socket.h>

#include <map>

#include "agent/devices/grpc_test_support.h"

namespace muster::agent {
namespace {

class Grpc : public GrpcTest {
 protected:
  Grpc() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    client = std::make_unique<GrpcConnection>(loop, UniqueFd(fds[0]));
    server = std::make_unique<GrpcConnection>(
        loop, UniqueFd(fds[1]), [this](const std::string& method, std::string_view request) {
          ++calls;
          if (method == "/t.T/Echo") return Result<std::string>(std::string(request));
          if (method == "/t.T/Fail")
            return Result<std::string>(Error(Reason::kInvalid, "no: 100 % wrong\n"));
          return Result<std::string>(Error(Reason::kNotFound, "unknown method"));
        });
  }

  void Ask(const std::string& method, const std::string& request,
           std::optional<Duration> timeout = std::nullopt) {
    client->Call(method, request, timeout,
                 {[this](std::string_view message) { messages.emplace_back(message); },
                  [this](Status status) { ends.push_back(std::move(status)); }});
  }

  std::unique_ptr<GrpcConnection> client, server;
  int calls = 0;
  std::vector<std::string> messages;
  std::vector<Status> ends;
};

TEST_F(Grpc, OneMessageEachWay) {
  Ask("/t.T/Echo", "hello");
  EXPECT_TRUE(messages.empty()) << "never from inside";
  RunUntil([&] { return ends.size() == 1; });
  EXPECT_TRUE(ends[0].ok()) << ends[0].message();
  EXPECT_EQ(messages, std::vector<std::string>{"hello"});
}

TEST_F(Grpc, LargeAndEmptyMessagesSideBySide) {
  const std::string large(3 * 1024 * 1024, 'x');  // many times a window and a socket's buffer
  Ask("/t.T/Echo", large);
  Ask("/t.T/Echo", "");
  RunUntil([&] { return ends.size() == 2; });
  EXPECT_TRUE(ends[0].ok() && ends[1].ok());
  EXPECT_EQ(messages.size(), 2u);
  EXPECT_TRUE(messages[0] == large || messages[1] == large);
}

TEST_F(Grpc, TooLargeIsRefused) {
  Ask("/t.T/Echo", std::string(kMaxGrpcMessageBytes + 1024 * 1024, 'x'));
  RunUntil([&] { return ends.size() == 1; });
  EXPECT_FALSE(ends[0].ok());
  EXPECT_EQ(calls, 0);
}

TEST_F(Grpc, ErrorsHaveTheirWords) {
  Ask("/t.T/Fail", "x");
  Ask("/t.T/Other", "x");
  RunUntil([&] { return ends.size() == 2; });
  EXPECT_EQ(ends[0].message(), "no: 100 % wrong\n");
  EXPECT_EQ(ends[0].reason(), Reason::kUnknown);
  EXPECT_EQ(ends[1].reason(), Reason::kNotFound);
  EXPECT_TRUE(messages.empty());
}

TEST_F(Grpc, ABrokenConnectionEndsItsCalls) {
  bool closed = false;
  client->OnClosed([&] { closed = true; });
  server.reset();
  Ask("/t.T/Echo", "hello");
  RunUntil([&] { return closed; });
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].reason(), Reason::kServiceUnavailable);
  Ask("/t.T/Echo", "hello");
  RunUntil([&] { return ends.size() == 2; });
  EXPECT_EQ(ends[1].reason(), Reason::kServiceUnavailable);
}

TEST_F(Grpc, ClosingEndsItsCalls) {
  Ask("/t.T/Echo", "hello");
  client->Close("enough");
  EXPECT_TRUE(ends.empty()) << "never from inside";
  loop.Post([connection = std::move(client)] {});
  RunUntil([&] { return ends.size() == 1; });
  EXPECT_EQ(ends[0].message(), "enough");
}

TEST_F(Grpc, APeerThatSpeaksSomethingElseIsCutOff) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  const UniqueFd peer(fds[1]);
  bool closed = false;
  GrpcConnection other(loop, UniqueFd(fds[0]), [](const std::string&, std::string_view) {
    return Result<std::string>("");
  });
  other.OnClosed([&] { closed = true; });
  ASSERT_GT(send(peer.get(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27, 0), 0);
  RunUntil([&] { return closed; });
}

TEST_F(Grpc, ASilentServerHasItsTime) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  const UniqueFd silent(fds[1]);
  client = std::make_unique<GrpcConnection>(loop, UniqueFd(fds[0]));
  Ask("/t.T/Echo", "hello", milliseconds(1));
  RunUntil([&] { return ends.size() == 1; });
  EXPECT_EQ(ends[0].reason(), Reason::kTimeout);
}

TEST_F(Grpc, MayBeDestroyedByItsCallback) {
  client->Call("/t.T/Echo", "hello", std::nullopt,
               {[this](std::string_view message) {
                  client.reset();
                  messages.emplace_back(message);  // what it was given is still there
                },
                [this](Status status) { ends.push_back(std::move(status)); }});
  RunUntil([&] { return client == nullptr; });
  bool later = false;
  loop.After(milliseconds(5), [&] { later = true; });
  RunUntil([&] { return later; });
  EXPECT_EQ(messages, std::vector<std::string>{"hello"});
  EXPECT_TRUE(ends.empty());
}

}  // namespace
}  // namespace muster::agent
