// src/net/net_testing.h
//
// For tests: a real loop and real I/O threads, a server with a handler made of a lambda, and a
// blocking raw socket.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "loop/asio_loop.h"
#include "net/client.h"
#include "net/pki.h"
#include "net/server.h"

namespace muster::net {

class LambdaHandler final : public Handler {
 public:
  using Function = std::function<void(Request, ResponseWriterPtr)>;
  explicit LambdaHandler(Function handle) : handle_(std::move(handle)) {}
  void Handle(Request request, ResponseWriterPtr writer) override {
    handle_(std::move(request), std::move(writer));
  }

 private:
  Function handle_;
};

// The calling thread is the loop thread while RunUntil runs.
class TestNet {
 public:
  explicit TestNet(int io_threads = 2) : io(io_threads) {}

  // Runs the loop until `done` holds after a task; false after half a minute.
  bool RunUntil(const std::function<bool()>& done);
  // Runs the loop for a little while: to see that nothing happens.
  void RunFor(Duration duration);

  std::unique_ptr<HttpServer> Serve(LambdaHandler::Function handle, ServerOptions options = {});
  // TLS with certificates of `pki`; client certificates are asked for.
  ServerOptions TlsOptions() const;
  std::unique_ptr<HttpClient> Client(ClientOptions options = {});
  Endpoint EndpointOf(const HttpServer& server, bool tls) const {
    return {tls, "127.0.0.1", server.port(), ""};
  }
  // Sends and waits.
  Result<Response> Fetch(HttpClient& client, const Endpoint& endpoint, Request request);

  AsioLoop loop;
  IoThreads io;
  Pki pki = *Pki::Create(RealClock().Wall());

 private:
  std::vector<std::unique_ptr<LambdaHandler>> handlers_;
};

// A TCP client that can misbehave. Reading never blocks: pump it with TestNet::RunUntil.
class RawSocket {
 public:
  explicit RawSocket(uint16_t port);
  ~RawSocket();
  void Write(std::string_view bytes);  // blocks while the server's I/O threads read nothing
  // Takes what has arrived, at most `limit` bytes.
  void Pump(size_t limit = SIZE_MAX);
  bool Has(std::string_view text) {
    Pump();
    return received.find(text) != std::string::npos;
  }
  bool Ended() {
    Pump();
    return eof;
  }
  void ShutdownWrite();
  void Close();

  std::string received;
  bool eof = false;

 private:
  int fd_ = -1;
};

}  // namespace muster::net
