// An API server on loopback over a memory store, without controllers or nodes: what stock clients
// are tried against.
//
//   memory_apiserver KUBECONFIG_TO_WRITE      prints the address, serves until SIGTERM

#include <csignal>
#include <cstdio>

#include <fmt/core.h>

#include "apiserver/server.h"
#include "base/log.h"
#include "client/kubeconfig.h"
#include "loop/asio_loop.h"
#include "loop/thread_pool.h"
#include "net/pki.h"
#include "net/server.h"
#include "store/memory_store.h"

namespace muster {
namespace {

Status Serve(const std::string& kubeconfig_path) {
  AsioLoop loop;
  net::IoThreads io(1);
  ThreadPool pool("pool", 1);
  ASSIGN_OR_RETURN(const net::Pki pki, net::Pki::Create(loop.Now()));
  ASSIGN_OR_RETURN(
      const net::KeyPair server_key,
      pki.IssueServer("apiserver", net::DefaultServerNames("localhost", {}), loop.Now()));
  ASSIGN_OR_RETURN(const net::KeyPair admin,
                   pki.IssueClient("admin", {"system:masters"}, loop.Now()));

  const std::unique_ptr<store::Store> store =
      store::OpenMemoryStore(loop, apiserver::MakeDecorator());
  apiserver::ServerOptions options;
  options.seed = SeedFromSystem();
  options.pool = &pool;
  apiserver::ApiServer api(loop, *store, std::move(options));
  net::ServerOptions listen;
  listen.tls = net::TlsServerOptions{server_key.certificate_pem, server_key.key_pem, pki.ca_pem()};
  ASSIGN_OR_RETURN(const std::unique_ptr<net::HttpServer> server,
                   net::HttpServer::Start(loop, io, api, listen));
  RETURN_IF_ERROR(client::WriteKubeconfig(
      kubeconfig_path, client::MakeKubeconfig("muster", "https://" + server->address(),
                                              pki.ca_pem(), admin.certificate_pem, admin.key_pem)));
  Status started;
  loop.Post([&] {
    api.Start([&](Status status) {
      started = std::move(status);
      if (!started.ok()) return loop.Stop();
      fmt::print("{}\n", server->address());
      std::fflush(stdout);
    });
  });
  loop.OnSignal(SIGTERM, [&] {
    api.BeginShutdown();
    server->Stop(seconds(1), [&] { loop.Stop(); });
  });
  loop.Run();
  return started;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: memory_apiserver KUBECONFIG_TO_WRITE\n", stderr);
    return 2;
  }
  const muster::Status status = muster::Serve(argv[1]);
  if (!status.ok()) fmt::print(stderr, "memory_apiserver: {}\n", status.ToString());
  return status.ok() ? 0 : 1;
}
