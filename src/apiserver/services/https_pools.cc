#include "apiserver/services/https_pools.h"

namespace muster::apiserver {

Result<HttpsPoolPtr> HttpsPools::Find(HttpsTrust trust) {
  trust.in_cluster = trust.in_cluster && pod_io_ != nullptr;
  if (const auto found = pools_.find(trust); found != pools_.end()) return found->second;
  if (pools_.size() >= kMaxHttpsPools)
    std::erase_if(pools_, [](const auto& pool) { return pool.second->under_way == 0; });
  if (pools_.size() >= kMaxHttpsPools) {
    return Error(Reason::kServiceUnavailable,
                 "{} with {} different caBundles are being asked already", users_, kMaxHttpsPools);
  }
  net::ClientOptions options = options_;
  options.ca_pem = trust.ca_pem;
  options.insecure_skip_verify = trust.believes_all;
  Result<std::unique_ptr<net::HttpClient>> client =
      net::HttpClient::Make(loop_, trust.in_cluster ? *pod_io_ : io_, std::move(options));
  if (!client) return Error(client.error().WithPrefix("unable to load root certificates: "));
  auto pool = std::make_shared<HttpsPool>();
  pool->client = std::move(*client);
  pools_[std::move(trust)] = pool;
  return pool;
}

}  // namespace muster::apiserver
