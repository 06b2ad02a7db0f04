// src/apiserver/admission/https_webhook_client.h
//
// HttpsWebhookClient: asks webhooks over kept-alive connections (services/https_pools.h).
//
// Life cycle: made before, destroyed after the ApiServer; the IoThreads outlive it. Destroying it
//             abandons what is under way.
// Thread:     the loop thread.

#pragma once

#include <string>

#include "apiserver/admission/webhook_client.h"
#include "apiserver/services/https_pools.h"
#include "loop/loop.h"
#include "net/io_threads.h"

namespace muster::apiserver {

inline constexpr size_t kMaxReviewAnswerBytes = 4 * 1024 * 1024;  // a larger answer is an error

class HttpsWebhookClient final : public WebhookClient {
 public:
  // `pod_io`: threads in the network of the pods, where that is not the machine's; else nullptr.
  HttpsWebhookClient(Loop& loop, net::IoThreads& io, net::IoThreads* pod_io = nullptr);

  void Post(const WebhookTarget& target, std::string body, Duration timeout,
            Function<void(Result<net::Response>)> done) override;

 private:
  Loop& loop_;
  HttpsPools pools_;
};

}  // namespace muster::apiserver
