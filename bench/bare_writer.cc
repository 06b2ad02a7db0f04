#include "bare_writer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include <fmt/core.h>

#include "base/check.h"

namespace muster::bench {

struct BareWriter::Impl {
  SSL_CTX* context = nullptr;
  int listener = -1;
  uint16_t port = 0;
  std::vector<SSL*> connections;
};

BareWriter::BareWriter(const std::string& certificate_file, const std::string& key_file)
    : impl_(std::make_unique<Impl>()) {
  impl_->context = SSL_CTX_new(TLS_server_method());
  CHECK(SSL_CTX_use_certificate_chain_file(impl_->context, certificate_file.c_str()) == 1);
  CHECK(SSL_CTX_use_PrivateKey_file(impl_->context, key_file.c_str(), SSL_FILETYPE_PEM) == 1);
  impl_->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  CHECK(bind(impl_->listener, generic, size) == 0 && listen(impl_->listener, 4096) == 0);
  CHECK(getsockname(impl_->listener, generic, &size) == 0);
  impl_->port = ntohs(address.sin_port);
}

BareWriter::~BareWriter() {
  for (SSL* ssl : impl_->connections) {
    close(SSL_get_fd(ssl));
    SSL_free(ssl);
  }
  close(impl_->listener);
  SSL_CTX_free(impl_->context);
}

uint16_t BareWriter::port() const { return impl_->port; }

void BareWriter::Accept(int count) {
  for (int i = 0; i < count; ++i) {
    const int fd = accept4(impl_->listener, nullptr, nullptr, SOCK_CLOEXEC);
    CHECK(fd >= 0);
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    SSL* ssl = SSL_new(impl_->context);
    SSL_set_fd(ssl, fd);
    CHECK_MSG(SSL_accept(ssl) == 1, "a TLS handshake of the control failed");
    impl_->connections.push_back(ssl);
  }
}

void BareWriter::Write(std::string_view bytes) {
  for (SSL* ssl : impl_->connections) {
    CHECK(SSL_write(ssl, bytes.data(), static_cast<int>(bytes.size())) > 0);
  }
}

double ThreadCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

double ProcessCpuSeconds(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  CHECK_MSG(!text.empty(), "no such process");
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  const std::vector<std::string> all(std::istream_iterator<std::string>(fields), {});
  return static_cast<double>(std::stoll(all[11]) + std::stoll(all[12])) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace muster::bench
