#include "apiserver/admission/https_webhook_client.h"

namespace muster::apiserver {

namespace {

net::ClientOptions Options() {
  net::ClientOptions options;
  options.max_response_bytes = kMaxReviewAnswerBytes;
  return options;
}

}  // namespace

HttpsWebhookClient::HttpsWebhookClient(Loop& loop, net::IoThreads& io, net::IoThreads* pod_io)
    : loop_(loop), pools_(loop, io, pod_io, Options(), "webhooks") {}

void HttpsWebhookClient::Post(const WebhookTarget& target, std::string body, Duration timeout,
                              Function<void(Result<net::Response>)> done) {
  Result<HttpsPoolPtr> pool =
      pools_.Find({.ca_pem = target.ca_pem, .in_cluster = target.in_cluster});
  if (!pool) {
    // Later, as every answer.
    loop_.Post([status = pool.error(), done = std::move(done)]() mutable { done(Error(status)); });
    return;
  }
  net::Request request;
  request.method = "POST";
  request.target = target.path;
  request.headers.Set("Host", target.host);
  request.headers.Set("Content-Type", "application/json");
  request.headers.Set("Accept", "application/json");
  request.headers.Set("User-Agent", "muster-admission");
  request.body = std::move(body);
  ++(*pool)->under_way;
  // A pool may go only once its callback has returned, so it counts until then.
  (*pool)->client->Send(
      target.endpoint, std::move(request), timeout,
      [weak = std::weak_ptr(*pool), done = std::move(done)](Result<net::Response> answer) mutable {
        const HttpsPoolPtr keep = weak.lock();
        done(std::move(answer));
        if (keep != nullptr) --keep->under_way;
      });
}

}  // namespace muster::apiserver
