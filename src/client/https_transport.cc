#include "client/https_transport.h"

#include <utility>

namespace muster::client {
namespace {

class Handle final : public StreamHandle {
 public:
  explicit Handle(std::unique_ptr<net::ClientStream> stream) : stream_(std::move(stream)) {}

 private:
  std::unique_ptr<net::ClientStream> stream_;
};

}  // namespace

HttpsTransport::HttpsTransport(std::unique_ptr<net::HttpClient> http,
                               const ConnectionConfig& config)
    : http_(std::move(http)),
      endpoint_(config.endpoint),
      path_prefix_(config.path_prefix),
      bearer_token_(config.bearer_token) {}

Result<std::unique_ptr<HttpsTransport>> HttpsTransport::Make(Loop& loop, net::IoThreads& io,
                                                             const ConnectionConfig& config) {
  ASSIGN_OR_RETURN(std::unique_ptr<net::HttpClient> http,
                   net::HttpClient::Make(loop, io, config.tls));
  return std::unique_ptr<HttpsTransport>(new HttpsTransport(std::move(http), config));
}

net::Request HttpsTransport::Complete(net::Request request) const {
  if (!path_prefix_.empty()) request.target = path_prefix_ + request.target;
  if (!bearer_token_.empty()) request.headers.Set("Authorization", "Bearer " + bearer_token_);
  return request;
}

void HttpsTransport::Send(net::Request request, Function<void(Result<net::Response>)> done) {
  http_->Send(endpoint_, Complete(std::move(request)), timeout_, std::move(done));
}

std::unique_ptr<StreamHandle> HttpsTransport::Stream(net::Request request,
                                                     StreamCallbacks callbacks) {
  net::ClientStreamCallbacks inner{std::move(callbacks.on_head), std::move(callbacks.on_data),
                                   std::move(callbacks.on_end)};
  return std::make_unique<Handle>(
      http_->Stream(endpoint_, Complete(std::move(request)), std::move(inner)));
}

std::unique_ptr<StreamHandle> HttpsTransport::Upgrade(
    net::Request request, Function<void(Result<net::UpgradeAnswer>)> done) {
  return std::make_unique<Handle>(
      http_->Upgrade(endpoint_, Complete(std::move(request)), std::move(done)));
}

}  // namespace muster::client
