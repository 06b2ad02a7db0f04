// src/apiserver/services/https_pools.h
//
// HttpsPools: kept-alive HTTPS connections to what stands behind Services and URLs, one pool for
// each way to trust it: the authorities that some object's caBundle names, or none at all.
//
// Life cycle: a member of the client that uses it; the IoThreads outlive it. Destroying it abandons
//             what is under way.
// Thread:     the loop thread.
// Invariants: no more than kMaxHttpsPools; one that nobody waits for makes place.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "loop/loop.h"
#include "net/client.h"
#include "net/io_threads.h"

namespace muster::apiserver {

inline constexpr size_t kMaxHttpsPools = 64;  // for webhooks, and for API services

struct HttpsPool {
  std::unique_ptr<net::HttpClient> client;
  size_t under_way = 0;
};
using HttpsPoolPtr = std::shared_ptr<HttpsPool>;

// Whom to believe.
struct HttpsTrust {
  std::string ca_pem = {};    // "": the system's authorities
  bool in_cluster = false;    // a pod's address
  bool believes_all = false;  // any certificate
  auto operator<=>(const HttpsTrust&) const = default;
};

class HttpsPools {
 public:
  // `pod_io`: threads in the network of the pods, where that is not the machine's; else nullptr.
  // `options` without trust: bounds, and what this side shows. `users`: for messages, "webhooks".
  HttpsPools(Loop& loop, net::IoThreads& io, net::IoThreads* pod_io, net::ClientOptions options,
             std::string users)
      : loop_(loop),
        io_(io),
        pod_io_(pod_io),
        options_(std::move(options)),
        users_(std::move(users)) {}

  Result<HttpsPoolPtr> Find(HttpsTrust trust);

 private:
  Loop& loop_;
  net::IoThreads& io_;
  net::IoThreads* pod_io_;
  const net::ClientOptions options_;
  const std::string users_;
  std::map<HttpsTrust, HttpsPoolPtr> pools_;
};

}  // namespace muster::apiserver
