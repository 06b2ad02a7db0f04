// src/apiserver/server.h
//
// ApiServer: the Kubernetes API over a Store, as a net::Handler. What is behind a URL is decided by
// data: built-in kinds come from schema::Registry, custom kinds from CustomResourceDefinition
// objects in the store.
//
//   auto store = store::Open...(..., apiserver::MakeDecorator());
//   apiserver::ApiServer server(loop, *store, std::move(options));
//   server.Start([](Status status) { ... });   // seeds the first objects, then /readyz says ok
//
// Life cycle: constructed on an open Store; Start() once; destroy after the transports that call it
//             have stopped.
// Thread:     one loop thread. LIST bodies are rendered by whoever pulls the BodySource.
// Invariants: a write is answered after its commit; no handler holds the loop for more than 5 ms;
//             stored bytes are sent as they are, a watch event is encoded once.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/admission/webhook_client.h"
#include "apiserver/aggregation/extension_client.h"
#include "apiserver/node_proxy.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/task.h"
#include "json/value.h"
#include "loop/loop.h"
#include "net/http.h"
#include "net/signing_key.h"
#include "store/store.h"

namespace muster::apiserver {

struct VersionInfo {
  std::string major = "1";
  std::string minor = "32";
  std::string git_version = "v1.32.0+muster";
  std::string git_commit;
  std::string build_date = "1970-01-01T00:00:00Z";
};

struct ServerOptions {
  VersionInfo version;
  uint64_t seed = 1;  // of names, UIDs and time-out jitter: SeedFromSystem() in production
  // Where clients reach this server; "" is not told.
  std::string advertise_address;
  uint16_t advertise_port = 6443;
  // Where pods reach this server: the endpoint of default/kubernetes. "": at the address above, if
  // that is no loopback address, else nowhere.
  std::string pod_address;
  uint16_t pod_port = 0;
  std::string service_cidr = "10.43.0.0/16";  // its first address is default/kubernetes
  // nullptr: logs and exec answer ServiceUnavailable. REQUIRES: outlives the server.
  NodeProxy* node_proxy = nullptr;
  // nullptr: calls of webhooks fail. REQUIRES: outlives the server.
  WebhookClient* webhook_client = nullptr;
  // nullptr: APIServices are not available. REQUIRES: outlives the server.
  ExtensionClient* extension_client = nullptr;
  // Told to the servers behind APIServices (ConfigMap extension-apiserver-authentication): who
  // signs the certificates of clients, and that of this server's front proxy. "": not told.
  std::string client_ca_pem, front_proxy_ca_pem;
  // nullptr: work that would go to the pool runs on the loop. REQUIRES: outlives the server.
  Pool* pool = nullptr;
  // Signs service account tokens. nullptr: a new key, so that tokens do not outlive this server.
  std::shared_ptr<const net::SigningKey> token_key;
  // Objects that Start() creates when they are missing, besides the ones that every cluster has.
  std::vector<json::Value> seed_objects;
  // The groups of our own kinds that are served from the first boot on; empty: all of them.
  std::vector<std::string> own_groups;
  // Further checks of /readyz, e.g. {"informer-sync", ...}. Called on the loop thread; Ok or why
  // not.
  std::vector<std::pair<std::string, std::function<Status()>>> ready_checks;
  // Further text for /metrics in the Prometheus format (scheduler, loop, ...). Called on the loop
  // thread.
  std::vector<std::function<std::string()>> extra_metrics;
};

class ApiServer : public net::Handler {
 public:
  ApiServer(Loop& loop, store::Store& store, ServerOptions options);
  ~ApiServer() override;

  // Writes what a new cluster needs (namespaces, default/kubernetes, priority classes, our CRDs);
  // `done` once it is durable. Requests that come earlier are served; /readyz fails until then.
  void Start(Function<void(Status)> done);

  // From now on /readyz fails and watches end, so that clients go elsewhere. In-flight writes are
  // still answered.
  void BeginShutdown();

  void Handle(net::Request request, net::ResponseWriterPtr writer) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What the store keeps parsed beside each value (labels, selectable fields). Give it to Open().
store::Store::Decorator MakeDecorator();

}  // namespace muster::apiserver
