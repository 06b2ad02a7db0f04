// src/apiserver/aggregation/https_extension_client.h
//
// HttpsExtensionClient: asks servers behind APIServices over kept-alive connections
// (services/https_pools.h).
//
// Life cycle: made before, destroyed after the ApiServer; the IoThreads outlive it. Destroying it
//             abandons what is under way.
// Thread:     the loop thread.

#pragma once

#include <memory>

#include "apiserver/aggregation/extension_client.h"
#include "apiserver/services/https_pools.h"
#include "loop/loop.h"
#include "net/io_threads.h"
#include "net/pki.h"

namespace muster::apiserver {

class HttpsExtensionClient final : public ExtensionClient {
 public:
  // `front_proxy`: what this server shows. `pod_io`: see HttpsPools.
  HttpsExtensionClient(Loop& loop, net::IoThreads& io, const net::KeyPair& front_proxy,
                       net::IoThreads* pod_io = nullptr);

  std::unique_ptr<net::ClientStream> Stream(const ExtensionTarget& target, net::Request request,
                                            net::ClientStreamCallbacks callbacks) override;

 private:
  Loop& loop_;
  HttpsPools pools_;
};

}  // namespace muster::apiserver
