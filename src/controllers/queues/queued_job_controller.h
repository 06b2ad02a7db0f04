// src/controllers/queues/queued_job_controller.h
//
// The controller of the jobs of one kind that wait in queues: finds what queued_job_pass.h reads.
//
// Thread: the loop thread (see client/reconcile.h).

#pragma once

#include <string>

#include "client/reconcile.h"
#include "schema/queued_kinds.h"

namespace muster::controllers {

class QueuedJobController final : public client::Controller {
 public:
  explicit QueuedJobController(const schema::QueuedKind& kind);
  std::string_view name() const override { return name_; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  bool HasPods(const client::View& view, const client::ObjectKey& key,
               const std::string& uid) const;

  const schema::QueuedKind& kind_;
  const client::Resource resource_;
  const std::string name_;  // "queued-job-controller"
};

}  // namespace muster::controllers
