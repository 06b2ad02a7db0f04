// src/apiserver/admission/https_webhook_client.h
//
// HttpsWebhookClient: a pool of kept-alive connections for each set of authorities that some
// webhook's caBundle names.
//
// Life cycle: made before, destroyed after the ApiServer; the IoThreads outlive it. Destroying it
//             abandons what is under way.
// Thread:     the loop thread.
// Invariants: no more than kMaxWebhookPools; one that nobody waits for makes place.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "apiserver/admission/webhook_client.h"
#include "loop/loop.h"
#include "net/io_threads.h"

namespace muster::apiserver {

inline constexpr size_t kMaxWebhookPools = 64;
inline constexpr size_t kMaxReviewAnswerBytes = 4 * 1024 * 1024;  // a larger answer is an error

class HttpsWebhookClient final : public WebhookClient {
 public:
  // `pod_io`: threads in the network of the pods, where that is not the machine's; else nullptr.
  HttpsWebhookClient(Loop& loop, net::IoThreads& io, net::IoThreads* pod_io = nullptr)
      : loop_(loop), io_(io), pod_io_(pod_io) {}

  void Post(const WebhookTarget& target, std::string body, Duration timeout,
            Function<void(Result<net::Response>)> done) override;

 private:
  struct ConnectionPool {
    std::unique_ptr<net::HttpClient> client;
    size_t under_way = 0;
  };
  using PoolPtr = std::shared_ptr<ConnectionPool>;
  using Key = std::pair<bool, std::string>;  // in the pods' network; authorities

  Result<PoolPtr> Find(const WebhookTarget& target);

  Loop& loop_;
  net::IoThreads& io_;
  net::IoThreads* pod_io_;
  std::map<Key, PoolPtr> pools_;
};

}  // namespace muster::apiserver
