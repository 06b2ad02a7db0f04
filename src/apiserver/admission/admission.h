// src/apiserver/admission/admission.h
//
// Admission: asks the webhooks of the cluster about a write or a connection. Mutating webhooks are
// asked one after another and may change the object, validating ones all at once and may refuse
// it. Source: k8s.io/apiserver pkg/admission/plugin/webhook.
//
// Life cycle: a member of the server; Start() once.
// Thread:     the loop thread. `done` runs inside the call where no webhook has to be asked, else
//             later: whoever read the store before looks again then.
// Invariants: every webhook has its timeout, so each request is answered; without configurations
//             nothing is done (idle()).

#pragma once

#include <optional>

#include "apiserver/admission/admission_request.h"
#include "apiserver/admission/admission_review.h"
#include "apiserver/admission/webhook_client.h"
#include "apiserver/admission/webhook_index.h"
#include "apiserver/core.h"
#include "base/status.h"
#include "base/task.h"

namespace muster::apiserver {

// Questions that wait for their answers; further ones count as calls that failed.
inline constexpr size_t kMaxWebhookCalls = 4096;
inline constexpr size_t kMaxWebhookBytes = 64 * 1024 * 1024;  // of these questions

class Admission {
 public:
  using Mutated = Function<void(Result<json::Value>)>;
  using Checked = Function<void(const Status&)>;
  using Answered = Function<void(Result<ReviewAnswer>)>;

  // REQUIRES: `core` outlives it.
  explicit Admission(Core& core);
  void Start() { index_.Start(); }

  // No webhook at all.
  bool idle() const { return index_.empty(); }

  // `done` gets request.object as the webhooks want it, or the refusal.
  void Mutate(AdmissionRequest request, Mutated done);
  void Validate(AdmissionRequest request, Checked done);
  // First the one, then, with the object that came out, the other.
  void Run(AdmissionRequest request, Mutated done);

  // For the runs in admission.cc.
  // The version of the resource that `webhook` is asked about; nullopt if it is not concerned.
  Result<std::optional<schema::KindPtr>> Match(const Webhook& webhook,
                                               const AdmissionRequest& request) const;
  // Ok: `webhook` may be asked about the request.
  static Status CheckDryRun(const Webhook& webhook, const AdmissionRequest& request);
  void Ask(const WebhookPtr& webhook, const schema::Kind& seen, const AdmissionRequest& request,
           bool mutating, Answered done);
  // What the client is told of an answer, or of none: Ok goes on.
  Status Judge(const Webhook& webhook, const AdmissionRequest& request, bool mutating,
               const Result<ReviewAnswer>& answer);

 private:
  Result<bool> FitsNamespace(const Webhook& webhook, const AdmissionRequest& request) const;
  Result<WebhookTarget> TargetOf(const Webhook& webhook) const;

  Core& core_;
  WebhookIndex index_;
  size_t under_way_ = 0, bytes_under_way_ = 0;
  HistogramFamily& durations_;
  CounterFamily& rejections_;
  CounterFamily& opened_;
};

// Run() with an object that is not stored (an Eviction, a review, the options of a connection);
// `go_on` answers `call` with what came out, or says why it cannot.
void AdmitUnstored(Core& core, const CallPtr& call, const ResourcePtr& resource,
                   Operation operation, bool dry_run, json::Value object,
                   Function<Status(const json::Value& admitted)> go_on);

// `patch` on an object, which stays of its kind; the result conforms and has its defaults.
Result<json::Value> ApplyReviewPatch(const Webhook& webhook, const AdmissionRequest& request,
                                     const schema::Kind& seen, const json::Value& patch);

}  // namespace muster::apiserver
