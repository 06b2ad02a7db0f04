#include "app/node_connector.h"

#include <utility>

namespace muster::app {
namespace {

class StreamOfNode final : public apiserver::NodeStream {
 public:
  explicit StreamOfNode(std::unique_ptr<net::ClientStream> stream) : stream_(std::move(stream)) {}

 private:
  std::unique_ptr<net::ClientStream> stream_;
};

}  // namespace

net::Endpoint NodeConnector::EndpointOf(const apiserver::NodeEndpoint& node) const {
  net::Endpoint endpoint;
  endpoint.host = node.node == local_node_ ? "127.0.0.1" : node.address;
  endpoint.port = node.port;
  endpoint.server_name = node.node;  // the kubelet's certificate is for the node's name
  return endpoint;
}

std::unique_ptr<apiserver::NodeStream> NodeConnector::Stream(
    const apiserver::NodeEndpoint& node, net::Request request,
    apiserver::NodeStreamCallbacks callbacks) {
  net::ClientStreamCallbacks inner{std::move(callbacks.on_head), std::move(callbacks.on_data),
                                   std::move(callbacks.on_end)};
  return std::make_unique<StreamOfNode>(
      client_.Stream(EndpointOf(node), std::move(request), std::move(inner)));
}

void NodeConnector::Upgrade(const apiserver::NodeEndpoint& node, net::Request request,
                            Function<void(Result<apiserver::NodeUpgrade>)> done) {
  const uint64_t id = next_upgrade_++;
  upgrades_[id] = client_.Upgrade(
      EndpointOf(node), std::move(request),
      [this, id, done = std::move(done)](Result<net::UpgradeAnswer> answer) mutable {
        // The handle may not be destroyed inside its own callback's frame before `done` has the
        // stream.
        const std::unique_ptr<net::ClientStream> handle = std::move(upgrades_[id]);
        upgrades_.erase(id);
        if (!answer.has_value()) return done(Error(std::move(answer).error()));
        apiserver::NodeUpgrade upgrade;
        upgrade.response = std::move(answer->response);
        upgrade.stream = std::move(answer->stream);
        done(std::move(upgrade));
      });
}

}  // namespace muster::app
