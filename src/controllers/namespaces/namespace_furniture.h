// src/controllers/namespaces/namespace_furniture.h
//
// What every namespace has from its first second: the ServiceAccount "default" and the ConfigMap
// kube-root-ca.crt with the CA that signed the API server's certificate.
//
// Thread:     the loop thread (see client/reconcile.h).

#pragma once

#include <string>
#include <vector>

#include "client/reconcile.h"

namespace muster::controllers {

class NamespaceFurnitureController final : public client::Controller {
 public:
  // `root_ca_pem`: "" leaves the ConfigMap out.
  explicit NamespaceFurnitureController(std::string root_ca_pem);
  std::string_view name() const override { return "serviceaccount-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  const std::string root_ca_pem_;
};

}  // namespace muster::controllers
