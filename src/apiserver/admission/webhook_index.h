// src/apiserver/admission/webhook_index.h
//
// WebhookIndex: the webhooks of all configurations in the store, read once per change, in the order
// in which they are asked: by the name of the configuration, then as they are listed.
//
// Life cycle: a member of the server; Start() loads, then it follows the store.
// Thread:     the loop thread.
// Invariants: equals the committed state: a configuration counts when its write is answered.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "apiserver/admission/webhook.h"
#include "schema/kind.h"
#include "store/store.h"

namespace muster::apiserver {

class WebhookIndex {
 public:
  // REQUIRES: `store` outlives it.
  explicit WebhookIndex(store::Store& store);
  ~WebhookIndex();
  WebhookIndex(const WebhookIndex&) = delete;
  WebhookIndex& operator=(const WebhookIndex&) = delete;
  // Once, on the loop thread. Before it there are no webhooks.
  void Start();

  bool empty() const { return mutating_.all.empty() && validating_.all.empty(); }
  const std::vector<WebhookPtr>& mutating() const { return mutating_.all; }
  const std::vector<WebhookPtr>& validating() const { return validating_.all; }

 private:
  struct Set {
    std::map<std::string, std::vector<WebhookPtr>, std::less<>> by_configuration;
    std::vector<WebhookPtr> all;
    void Flatten();
  };

  void Follow(const schema::KindPtr& kind, Set& set);

  store::Store& store_;
  std::vector<store::Store::WatchId> watches_;
  Set mutating_, validating_;
};

}  // namespace muster::apiserver
