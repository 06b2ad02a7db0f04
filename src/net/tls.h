// src/net/tls.h
//
// Internal to net. TLS over a non-blocking descriptor: OpenSSL behind plain calls that say what to
// wait for. TLS 1.2 and 1.3, ALPN http/1.1, no session tickets.
//
// Life cycle: a TlsContext is shared by all sessions of a server or client; a TlsSession belongs to
// one connection and
//             does not own the descriptor.
// Thread:     a context any, a session one.

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::net {

struct TlsServerOptions;
struct ClientOptions;

enum class IoResult : uint8_t { kOk, kWantRead, kWantWrite, kClosed, kError };

class TlsContext;  // SSL_CTX

Result<std::shared_ptr<TlsContext>> MakeServerTls(const TlsServerOptions& options);
Result<std::shared_ptr<TlsContext>> MakeClientTls(const ClientOptions& options);

struct TlsIdentity {
  std::string user;
  std::vector<std::string> groups;
  std::string refused;  // why a certificate that was presented does not verify
};

class TlsSession {
 public:
  virtual ~TlsSession() = default;
  virtual IoResult Handshake() = 0;
  virtual IoResult Read(char* data, size_t size, size_t& got) = 0;
  virtual IoResult Write(const char* data, size_t size, size_t& put) = 0;
  virtual void SendCloseNotify() = 0;  // best effort
  virtual bool HasPending() const = 0;
  // What the client's certificate says; empty if there is none.
  virtual TlsIdentity Identity() const = 0;
  // Whether Handshake gave kError because the client sent an HTTP request without TLS.
  virtual bool PeerSpokeHttp() const = 0;
  // Why Handshake, Read or Write gave kError.
  virtual std::string LastError() const = 0;
};

std::unique_ptr<TlsSession> MakeServerSession(const std::shared_ptr<TlsContext>& context, int fd);
// `name` is the host name or address that the certificate must carry.
std::unique_ptr<TlsSession> MakeClientSession(const std::shared_ptr<TlsContext>& context, int fd,
                                              const std::string& name);

}  // namespace muster::net
