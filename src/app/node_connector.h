// src/app/node_connector.h
//
// NodeConnector: the API server's way to the kubelet API of every node, over mutual TLS (user
// kube-apiserver). The node in this process listens on loopback only, so it is reached there
// whatever address its Node object tells others.
//
// Life cycle: made before, destroyed after the ApiServer; its HttpClient likewise.
// Thread:     the loop thread.

#pragma once

#include <map>
#include <memory>
#include <string>

#include "apiserver/node_proxy.h"
#include "net/client.h"

namespace muster::app {

class NodeConnector final : public apiserver::NodeProxy {
 public:
  // REQUIRES: `client` outlives this.
  NodeConnector(net::HttpClient& client, std::string local_node)
      : client_(client), local_node_(std::move(local_node)) {}

  std::unique_ptr<apiserver::NodeStream> Stream(const apiserver::NodeEndpoint& node,
                                                net::Request request,
                                                apiserver::NodeStreamCallbacks callbacks) override;
  void Upgrade(const apiserver::NodeEndpoint& node, net::Request request,
               Function<void(Result<apiserver::NodeUpgrade>)> done) override;

 private:
  net::Endpoint EndpointOf(const apiserver::NodeEndpoint& node) const;

  net::HttpClient& client_;
  const std::string local_node_;
  // Handles of upgrades that are being negotiated.
  uint64_t next_upgrade_ = 1;
  std::map<uint64_t, std::unique_ptr<net::ClientStream>> upgrades_;
};

}  // namespace muster::app
