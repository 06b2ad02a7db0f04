// src/controllers/daemonset/daemonset_controller.h
//
// Keeps the pods and revisions of every DaemonSet (daemon_pass.h). What it knows of a set's nodes
// and pods is kept from pass to pass, and changes of pods and nodes are noted as they are told, so
// a pass looks at these only; a pass without that memory wants the same.
//
// Thread: the loop thread (see client/reconcile.h).

#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/reconcile.h"
#include "controllers/daemonset/daemon_ledger.h"
#include "schema/label_selector.h"

namespace muster::controllers {

class DaemonSetController final : public client::Controller {
 public:
  std::string_view name() const override { return "daemonset-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  struct Memory {
    std::optional<DaemonLedger> ledger;
    // What changed since it was brought up to date.
    std::set<client::ObjectKey> pods;
    std::set<std::string> nodes;
  };

  // Notes the change for each set that a trigger wakes.
  client::Trigger Noting(client::Trigger trigger);
  // False: something has to be adopted or released first.
  static bool FollowChanges(const client::View& view, const json::Value& set,
                            const schema::LabelSelector& selector, Memory& memory);
  static void Begin(const client::View& view, const json::Value& set,
                    const std::vector<json::Value>& owned, Memory& memory);

  std::map<client::ObjectKey, Memory> memories_;
};

}  // namespace muster::controllers
