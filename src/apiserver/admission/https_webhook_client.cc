#include "apiserver/admission/https_webhook_client.h"

namespace muster::apiserver {

Result<HttpsWebhookClient::PoolPtr> HttpsWebhookClient::Find(const WebhookTarget& target) {
  const Key key(target.in_cluster && pod_io_ != nullptr, target.ca_pem);
  if (const auto found = pools_.find(key); found != pools_.end()) return found->second;
  if (pools_.size() >= kMaxWebhookPools)
    std::erase_if(pools_, [](const auto& pool) { return pool.second->under_way == 0; });
  if (pools_.size() >= kMaxWebhookPools) {
    return Error(Reason::kServiceUnavailable,
                 "webhooks with {} different caBundles are being asked already", kMaxWebhookPools);
  }
  net::ClientOptions options;
  options.ca_pem = target.ca_pem;
  options.max_response_bytes = kMaxReviewAnswerBytes;
  Result<std::unique_ptr<net::HttpClient>> client =
      net::HttpClient::Make(loop_, key.first ? *pod_io_ : io_, std::move(options));
  if (!client) return Error(client.error().WithPrefix("unable to load root certificates: "));
  auto pool = std::make_shared<ConnectionPool>();
  pool->client = std::move(*client);
  pools_[key] = pool;
  return pool;
}

void HttpsWebhookClient::Post(const WebhookTarget& target, std::string body, Duration timeout,
                              Function<void(Result<net::Response>)> done) {
  Result<PoolPtr> pool = Find(target);
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
        const PoolPtr keep = weak.lock();
        done(std::move(answer));
        if (keep != nullptr) --keep->under_way;
      });
}

}  // namespace muster::apiserver
