#include "load_generator.h"

#include <algorithm>
#include <charconv>

#include <sys/epoll.h>
#include <unistd.h>

#include <fmt/core.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "base/check.h"
#include "loopback.h"

namespace muster::bench {
namespace {

SSL_CTX* MakeContext(const net::ClientOptions& identity) {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  const auto bio_of = [](const std::string& pem) {
    return BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  };
  BIO* certificate_bio = bio_of(identity.certificate_pem);
  X509* certificate = PEM_read_bio_X509(certificate_bio, nullptr, nullptr, nullptr);
  CHECK(SSL_CTX_use_certificate(context, certificate) == 1);
  BIO* key_bio = bio_of(identity.key_pem);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(key_bio, nullptr, nullptr, nullptr);
  CHECK(SSL_CTX_use_PrivateKey(context, key) == 1);
  X509_free(certificate);
  EVP_PKEY_free(key);
  BIO_free(certificate_bio);
  BIO_free(key_bio);
  return context;
}

struct Connection {
  int fd = -1;
  SSL* tls = nullptr;
  Duration sent{0};
  std::string answer;
};

// Reads one answer; its status.
int ReadAnswer(Connection& connection) {
  std::string& answer = connection.answer;
  answer.clear();
  size_t head_end = std::string::npos, whole = 0;
  int status = 0;
  char bytes[16 * 1024];
  while (head_end == std::string::npos || answer.size() < whole) {
    size_t got = 0;
    CHECK_MSG(SSL_read_ex(connection.tls, bytes, sizeof bytes, &got) == 1,
              "the server closed a connection");
    answer.append(bytes, got);
    if (head_end != std::string::npos) continue;
    head_end = answer.find("\r\n\r\n");
    if (head_end == std::string::npos) continue;
    std::from_chars(answer.data() + 9, answer.data() + 12, status);
    constexpr std::string_view kLength = "\r\nContent-Length: ";
    const size_t at = answer.find(kLength);
    CHECK_MSG(at < head_end, "an answer without Content-Length");
    std::from_chars(answer.data() + at + kLength.size(), answer.data() + head_end, whole);
    whole += head_end + 4;
  }
  return status;
}

}  // namespace

struct LoadGenerator::Impl {
  SSL_CTX* context = nullptr;
  int epoll = -1;
  std::vector<Connection> connections;
};

LoadGenerator::LoadGenerator(uint16_t port, const net::ClientOptions& identity, int connections)
    : impl_(std::make_unique<Impl>()) {
  impl_->context = MakeContext(identity);
  impl_->epoll = epoll_create1(EPOLL_CLOEXEC);
  impl_->connections.resize(static_cast<size_t>(connections));
  for (size_t i = 0; i < impl_->connections.size(); ++i) {
    Connection& connection = impl_->connections[i];
    connection.fd = ConnectToLoopback(port);
    connection.tls = SSL_new(impl_->context);
    SSL_set_fd(connection.tls, connection.fd);
    CHECK(SSL_connect(connection.tls) == 1);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    CHECK(epoll_ctl(impl_->epoll, EPOLL_CTL_ADD, connection.fd, &event) == 0);
  }
}

LoadGenerator::~LoadGenerator() {
  for (const Connection& connection : impl_->connections) {
    SSL_free(connection.tls);
    close(connection.fd);
  }
  close(impl_->epoll);
  SSL_CTX_free(impl_->context);
}

std::vector<Duration> LoadGenerator::Run(
    int count, int status, const std::function<void(int index, std::string& out)>& request) {
  std::vector<Duration> took;
  took.reserve(static_cast<size_t>(count));
  std::string bytes;
  int next = 0;
  const auto send = [&](Connection& connection) {
    if (next >= count) return;
    request(next++, bytes);
    connection.sent = RealClock().Monotonic();
    size_t put = 0;
    CHECK(SSL_write_ex(connection.tls, bytes.data(), bytes.size(), &put) == 1);
  };
  for (Connection& connection : impl_->connections) send(connection);
  epoll_event events[64];
  while (took.size() < static_cast<size_t>(count)) {
    const int ready = epoll_wait(impl_->epoll, events, 64, 60'000);
    CHECK_MSG(ready > 0, "no answer within a minute");
    for (int i = 0; i < ready; ++i) {
      Connection& connection = impl_->connections[events[i].data.u64];
      const int got = ReadAnswer(connection);
      CHECK_MSG(got == status, connection.answer);
      took.push_back(RealClock().Monotonic() - connection.sent);
      send(connection);
    }
  }
  return took;
}

std::string RequestBytes(std::string_view method, std::string_view target, std::string_view body) {
  std::string out = fmt::format("{} {} HTTP/1.1\r\nHost: 127.0.0.1\r\n", method, target);
  if (!body.empty()) {
    out += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  }
  return out.append("\r\n").append(body);
}

}  // namespace muster::bench
