#include "apiserver/aggregation/https_extension_client.h"

#include <utility>

namespace muster::apiserver {
namespace {

net::ClientOptions Options(const net::KeyPair& front_proxy) {
  net::ClientOptions options;
  options.certificate_pem = front_proxy.certificate_pem;
  options.key_pem = front_proxy.key_pem;
  return options;
}

// Counts as under way for as long as somebody holds it.
class PooledStream final : public net::ClientStream {
 public:
  PooledStream(HttpsPoolPtr pool, std::unique_ptr<net::ClientStream> stream)
      : pool_(std::move(pool)), stream_(std::move(stream)) {
    ++pool_->under_way;
  }
  ~PooledStream() override {
    stream_.reset();
    --pool_->under_way;
  }

 private:
  HttpsPoolPtr pool_;
  std::unique_ptr<net::ClientStream> stream_;
};

// A request that could not be sent: its end is told later, unless nobody holds it any more.
class RefusedStream final : public net::ClientStream {
 public:
  RefusedStream(Loop& loop, Status why, Function<void(Status)> on_end) {
    loop.Post([weak = std::weak_ptr<int>(held_), why = std::move(why),
               on_end = std::move(on_end)]() mutable {
      if (weak.lock()) on_end(std::move(why));
    });
  }

 private:
  std::shared_ptr<int> held_ = std::make_shared<int>(0);
};

}  // namespace

HttpsExtensionClient::HttpsExtensionClient(Loop& loop, net::IoThreads& io,
                                           const net::KeyPair& front_proxy, net::IoThreads* pod_io)
    : loop_(loop), pools_(loop, io, pod_io, Options(front_proxy), "API services") {}

std::unique_ptr<net::ClientStream> HttpsExtensionClient::Stream(
    const ExtensionTarget& target, net::Request request, net::ClientStreamCallbacks callbacks) {
  Result<HttpsPoolPtr> pool = pools_.Find({.ca_pem = target.ca_pem,
                                           .in_cluster = target.in_cluster,
                                           .believes_all = target.believes_all});
  if (!pool)
    return std::make_unique<RefusedStream>(loop_, pool.error(), std::move(callbacks.on_end));
  std::unique_ptr<net::ClientStream> stream =
      (*pool)->client->Stream(target.endpoint, std::move(request), std::move(callbacks));
  return std::make_unique<PooledStream>(std::move(*pool), std::move(stream));
}

}  // namespace muster::apiserver
