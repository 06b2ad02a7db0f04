// src/controllers/resourcequota/resource_quota_controller.h
//
// Keeps the status of every ResourceQuota: the bounds, and what the objects of its namespace take
// (schema/quota.h), of every kind that is served, custom ones too. For people to read: the API
// server refuses what is too much by a count of its own (apiserver/kinds/quota_ledger.h).
//
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: a tally equals what the informers' objects take; it is kept by their changes, so a
//             pass does not cost more for more objects. A quota gets no status before the informers
//             of all that it limits are synced.

#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "client/lifetime.h"
#include "client/reconcile.h"
#include "client/resource_discovery.h"
#include "schema/quota.h"

namespace muster::controllers {

inline const client::Resource kResourceQuotas{"", "v1", "resourcequotas"};
// How soon a quota is looked at again while it is not known which kinds there are.
inline constexpr Duration kQuotaDiscoveryRetry = seconds(1);

class ResourceQuotaController final : public client::Controller {
 public:
  // REQUIRES: `discovery` outlives the controller.
  explicit ResourceQuotaController(client::ResourceDiscovery& discovery) : discovery_(discovery) {}
  std::string_view name() const override { return "resourcequota-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  void Attach(std::function<void(const client::ObjectKey&)> wake) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  struct Source {
    client::Resource resource;
    bool live = false;  // what it holds is counted, and changes are told
  };
  struct Counted {
    json::Value spec;
    schema::QuotaTally tally;
  };

  void Follow(const client::Resource& resource);
  void OnLive(const schema::GroupResource& resource);
  void OnChange(const schema::GroupResource& resource, const client::ObjectKey& key,
                const json::Value& before, const json::Value& after);
  bool AllLive(const schema::Quota& quota) const;
  schema::QuotaTally Count(const client::View& view, schema::Quota quota, const std::string& ns,
                           Time now) const;

  client::ResourceDiscovery& discovery_;
  client::InformerSet* informers_ = nullptr;
  std::function<void(const client::ObjectKey&)> wake_;
  std::map<schema::GroupResource, Source> sources_;
  std::map<client::ObjectKey, Counted> counted_;
  client::Lifetime lifetime_;
};

}  // namespace muster::controllers
