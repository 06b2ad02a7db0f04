// src/apiserver/node_proxy.h
//
// NodeProxy: how the API server reaches the kubelet API of a node (logs, exec). Production goes
// over mutual TLS; tests answer in process.
//
// Life cycle: made by the composition root, outlives the ApiServer.
// Thread:     the API server's loop thread; callbacks run there, never from inside the call.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/task.h"
#include "net/http.h"

namespace muster::apiserver {

struct NodeEndpoint {
  std::string node;     // the Node's name, for messages
  std::string address;  // IP address (or host name) from node.status.addresses
  uint16_t port = 0;    // node.status.daemonEndpoints.kubeletEndpoint.Port
};

struct NodeStreamCallbacks {
  Function<void(int status, const net::Headers& headers)> on_head;
  Function<void(std::string_view bytes)> on_data;
  Function<void(Status)> on_end;  // Ok: the node ended the answer in good order
};

// Destroying it abandons the request; no callback runs afterwards.
class NodeStream {
 public:
  virtual ~NodeStream() = default;
};

// The node's answer to an upgrade: either 101 and a byte stream, or an ordinary response.
struct NodeUpgrade {
  net::Response response;  // status 101 with the headers to pass on, or the refusal with its body
  std::unique_ptr<net::ByteStream> stream;  // set only when status is 101
};

class NodeProxy {
 public:
  virtual ~NodeProxy() = default;
  virtual std::unique_ptr<NodeStream> Stream(const NodeEndpoint& node, net::Request request,
                                             NodeStreamCallbacks callbacks) = 0;
  virtual void Upgrade(const NodeEndpoint& node, net::Request request,
                       Function<void(Result<NodeUpgrade>)> done) = 0;
};

}  // namespace muster::apiserver
