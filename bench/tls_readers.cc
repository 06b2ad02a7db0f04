#include "tls_readers.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/core.h>

#include "base/check.h"
#include "loopback.h"

namespace muster::bench {

namespace {

constexpr std::string_view kStamp = "\"stamp\":\"";
constexpr size_t kStampDigits = 16;  // nanoseconds of a machine that has been up for a month
constexpr size_t kReadBytes = 32 * 1024;

int64_t NowNs() { return RealClock().Monotonic().count(); }

}  // namespace

std::string StampNow() { return fmt::format("{}{:0{}}\"", kStamp, NowNs(), kStampDigits); }

struct TlsReaders::Impl {
  struct Connection {
    int fd = -1;
    SSL* ssl = nullptr;
    std::string tail;  // of what was read: a stamp may be cut in two
  };

  SSL_CTX* context = nullptr;
  int epoll = -1;
  std::vector<Connection> connections;
  size_t open = 0, stamps = 0;
  std::vector<double> latencies;

  void Add(int fd, SSL* ssl) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = connections.size();
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
    connections.push_back({fd, ssl, ""});
    ++open;
  }

  void Close(Connection& connection) {
    SSL_free(connection.ssl);
    close(connection.fd);  // leaves the epoll set
    connection.fd = -1;
    --open;
  }

  void Read(Connection& connection) {
    std::array<char, kReadBytes> bytes;
    while (true) {
      const int count = SSL_read(connection.ssl, bytes.data(), static_cast<int>(bytes.size()));
      if (count > 0) {
        Search(connection, std::string_view(bytes.data(), static_cast<size_t>(count)));
        continue;
      }
      const int error = SSL_get_error(connection.ssl, count);
      ERR_clear_error();
      if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return;
      return Close(connection);
    }
  }

  void Search(Connection& connection, std::string_view bytes) {
    const int64_t now = NowNs();
    constexpr size_t kWhole = kStamp.size() + kStampDigits;
    std::string joined;
    if (!connection.tail.empty()) {
      joined = connection.tail;
      joined += bytes;
      bytes = joined;
    }
    size_t from = 0;
    for (size_t at; (at = bytes.find(kStamp, from)) != std::string_view::npos;) {
      if (at + kWhole > bytes.size()) break;
      int64_t sent = 0;
      const char* digits = bytes.data() + at + kStamp.size();
      std::from_chars(digits, digits + kStampDigits, sent);
      latencies.push_back(static_cast<double>(now - sent) / 1e9);
      ++stamps;
      from = at + kWhole;
    }
    const size_t keep = std::min(bytes.size() - from, kWhole - 1);
    connection.tail = std::string(bytes.substr(bytes.size() - keep));
  }
};

TlsReaders::TlsReaders(const ReaderKeys& keys) : impl_(std::make_unique<Impl>()) {
  impl_->context = SSL_CTX_new(TLS_client_method());
  CHECK(SSL_CTX_load_verify_locations(impl_->context, keys.ca_file.c_str(), nullptr) == 1);
  SSL_CTX_set_verify(impl_->context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(impl_->context, SSL_MODE_RELEASE_BUFFERS);
  if (!keys.certificate_file.empty()) {
    CHECK(SSL_CTX_use_certificate_chain_file(impl_->context, keys.certificate_file.c_str()) == 1);
    CHECK(SSL_CTX_use_PrivateKey_file(impl_->context, keys.key_file.c_str(), SSL_FILETYPE_PEM) ==
          1);
  }
  impl_->epoll = epoll_create1(EPOLL_CLOEXEC);
}

TlsReaders::~TlsReaders() {
  for (Impl::Connection& connection : impl_->connections) {
    if (connection.fd >= 0) impl_->Close(connection);
  }
  close(impl_->epoll);
  SSL_CTX_free(impl_->context);
}

void TlsReaders::Open(int count, uint16_t port, const std::string& request) {
  for (int i = 0; i < count; ++i) {
    const int fd = ConnectToLoopback(port);
    SSL* ssl = SSL_new(impl_->context);
    SSL_set_fd(ssl, fd);
    CHECK_MSG(SSL_connect(ssl) == 1, "a TLS handshake with the server failed");
    if (!request.empty()) {
      CHECK(SSL_write(ssl, request.data(), static_cast<int>(request.size())) > 0);
    }
    CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    impl_->Add(fd, ssl);
  }
}

void TlsReaders::Run(Duration deadline, size_t stamps) {
  std::array<epoll_event, 256> events;
  while (impl_->stamps < stamps) {
    const Duration left = deadline - RealClock().Monotonic();
    if (left <= Duration(0)) return;
    const auto wait_ms = std::chrono::ceil<milliseconds>(left).count();
    const int ready = epoll_wait(impl_->epoll, events.data(), static_cast<int>(events.size()),
                                 static_cast<int>(wait_ms));
    for (int i = 0; i < ready; ++i) {
      Impl::Connection& connection = impl_->connections[events[static_cast<size_t>(i)].data.u64];
      if (connection.fd >= 0) impl_->Read(connection);
    }
  }
}

void TlsReaders::StopReading(int count) {
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    epoll_ctl(impl_->epoll, EPOLL_CTL_DEL, impl_->connections[i].fd, nullptr);
  }
}

size_t TlsReaders::open() const { return impl_->open; }
size_t TlsReaders::stamps() const { return impl_->stamps; }
std::vector<double> TlsReaders::TakeLatencies() { return std::exchange(impl_->latencies, {}); }

}  // namespace muster::bench
