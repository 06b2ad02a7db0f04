#include "gateway/gateway.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/check.h"
#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "json/parse.h"
#include "loop/asio_loop.h"
#include "loop/run_until_test_support.h"
#include "net/client.h"

namespace muster::gateway {
namespace {

// Bound and not listening; as the gateway's, others may be bound there, too. Port 0: any.
int BoundSocket(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_port = htons(port);
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(bind(fd, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0);
  return fd;
}

uint16_t PortOf(int fd) {
  sockaddr_in here{};
  socklen_t size = sizeof here;
  CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&here), &size) == 0);
  return ntohs(here.sin_port);
}

TEST(Gateway, TriesToListenUntilItDoes) {
  AsioLoop loop;
  client::FakeApi api(loop);
  client::InProcessTransport transport(loop, api, {"", "gateway", {}});
  client::ApiClient client(loop, transport, "gateway");
  client::InformerSet informers(client);
  const int other = BoundSocket(0);
  const uint16_t port = PortOf(other);
  const auto fault = std::make_shared<std::string>();
  GatewayOptions options;
  options.bound_socket = BoundSocket(port);
  options.address = {"127.0.0.1", port, fault};
  ASSERT_EQ(listen(other, 1), 0);
  Gateway gateway(loop, client, informers, std::move(options));
  gateway.Start();
  informers.Start();
  api.Put("/apis/serving.kserve.io/v1beta1/inferenceservices",
          (*json::ParseYaml("{metadata: {name: iris, namespace: ml}, spec: {predictor: {}}}"))[0]);
  ASSERT_TRUE(RunUntil(loop, [&] { return !fault->empty(); }));
  EXPECT_EQ(*fault, fmt::format("the gateway cannot listen on 127.0.0.1:{}: cannot listen on a "
                                "given socket: Address already in use; it tries again",
                                port));
  close(other);
  ASSERT_TRUE(RunUntil(loop, [&] { return fault->empty(); }));

  net::IoThreads io(1);
  const auto asker = *net::HttpClient::Make(loop, io, {});
  int status = 0;
  asker->Send({.tls = false, .host = "127.0.0.1", .port = port}, {.method = "GET", .target = "/"},
              seconds(20), [&](const Result<net::Response>& answer) {
                ASSERT_TRUE(answer.has_value()) << answer.error().message();
                status = answer->status;
              });
  ASSERT_TRUE(RunUntil(loop, [&] { return status != 0; }));
  EXPECT_EQ(status, 404);
}

}  // namespace
}  // namespace muster::gateway
