#include "net/net_testing.h"

#include <algorithm>
#include <cerrno>
#include "loop/run_until_test_support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

namespace muster::net {

bool TestNet::RunUntil(const std::function<bool()>& done) { return muster::RunUntil(loop, done); }

void TestNet::RunFor(Duration duration) {
  loop.Restart();
  loop.After(duration, [this] { loop.Stop(); });
  loop.Run();
}

std::unique_ptr<HttpServer> TestNet::Serve(LambdaHandler::Function handle, ServerOptions options) {
  handlers_.push_back(std::make_unique<LambdaHandler>(std::move(handle)));
  auto server = HttpServer::Start(loop, io, *handlers_.back(), std::move(options));
  CHECK_MSG(server.has_value(), server.has_value() ? "" : server.error().message());
  return *std::move(server);
}

ServerOptions TestNet::TlsOptions() const {
  KeyPair pair = *pki.IssueServer("server", DefaultServerNames("", {}), RealClock().Wall());
  ServerOptions options;
  options.tls = TlsServerOptions{pair.certificate_pem, pair.key_pem, pki.ca_pem()};
  return options;
}

std::unique_ptr<HttpClient> TestNet::Client(ClientOptions options) {
  if (options.ca_pem.empty()) options.ca_pem = pki.ca_pem();
  auto client = HttpClient::Make(loop, io, std::move(options));
  CHECK_MSG(client.has_value(), client.has_value() ? "" : client.error().message());
  return *std::move(client);
}

Result<Response> TestNet::Fetch(HttpClient& client, const Endpoint& endpoint, Request request) {
  Result<Response> answer = Error(Reason::kTimeout, "no answer");
  bool done = false;
  client.Send(endpoint, std::move(request), seconds(8), [&](Result<Response> result) {
    answer = std::move(result);
    done = true;
  });
  CHECK(RunUntil([&] { return done; }));
  return answer;
}

RawSocket::RawSocket(uint16_t port) {
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
}

RawSocket::~RawSocket() { Close(); }

void RawSocket::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void RawSocket::Pump(size_t limit) {
  char buffer[65536];
  while (limit > 0 && fd_ >= 0) {
    ssize_t n = recv(fd_, buffer, std::min(sizeof buffer, limit), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) eof = true;
    if (n <= 0) return;
    received.append(buffer, static_cast<size_t>(n));
    limit -= static_cast<size_t>(n);
  }
}

void RawSocket::ShutdownWrite() { shutdown(fd_, SHUT_WR); }

void RawSocket::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

}  // namespace muster::net
