#include "client/leader_election.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace muster::client {
namespace {

constexpr int64_t kMaxSecondsOfLease = 3600;  // of others; what claims more counts as that

Duration HeldFor(const json::Value& spec) {
  const int64_t held = spec["leaseDurationSeconds"].AsInt();
  return seconds(std::clamp<int64_t>(held, 1, kMaxSecondsOfLease));
}

}  // namespace

LeaderElector::LeaderElector(ApiClient& api, LeaderElectionOptions options,
                             LeaderCallbacks callbacks, Rng rng)
    : api_(api),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      rng_(rng),
      target_{resources::kLeases, options_.ns, options_.name, ""} {}

json::Value LeaderElector::Spec(int64_t transitions, const json::Value& acquired) const {
  const std::string now = FormatMicroTime(api_.loop().Now());
  const int64_t held = std::chrono::duration_cast<seconds>(kLeaseDuration).count();
  return json::Obj({{"holderIdentity", options_.identity},
                    {"leaseDurationSeconds", held},
                    {"acquireTime", acquired.IsNull() ? json::Value(now) : acquired},
                    {"renewTime", now},
                    {"leaseTransitions", transitions}});
}

json::Value LeaderElector::WithSpec(json::Value spec) const {
  json::Value metadata = json::Obj({{"name", options_.name}, {"namespace", options_.ns}});
  // So that of two that write only one succeeds.
  if (!version_.empty()) metadata = metadata.Set("resourceVersion", version_);
  return json::Obj({{"apiVersion", "coordination.k8s.io/v1"},
                    {"kind", "Lease"},
                    {"metadata", std::move(metadata)},
                    {"spec", std::move(spec)}});
}

void LeaderElector::Look() {
  if (over_) return;
  asked_at_ = api_.loop().Now();
  // The leader knows the Lease: its write fails if that changed.
  if (leads_) return TakeOver();
  Read();
}

void LeaderElector::Read() {
  api_.Get(target_,
           lifetime_.Guard([this](Result<json::Value> lease) { OnLease(std::move(lease)); }));
}

void LeaderElector::OnLease(Result<json::Value> lease) {
  if (over_) return;
  if (!lease) {
    if (lease.error().reason() == Reason::kNotFound) return Create();
    return Again(lease.error());
  }
  Observe(*lease);
  const std::string holder(observed_["holderIdentity"].AsString());
  const bool is_ours = holder == options_.identity;
  if (leads_ && !is_ours) return Lose();
  if (!holder.empty() && !is_ours && api_.loop().Now() < observed_at_ + HeldFor(observed_)) {
    if (std::exchange(told_of_, holder) != holder && callbacks_.on_other)
      callbacks_.on_other(holder);
    return Again(Status::Ok());
  }
  TakeOver();
}

void LeaderElector::Create() {
  version_.clear();
  api_.Create({target_.resource, target_.ns, "", ""}, WithSpec(Spec(0, {})),
              lifetime_.Guard([this](const Result<json::Value>& answer) { OnWritten(answer); }));
}

void LeaderElector::TakeOver() {
  const bool is_ours = observed_["holderIdentity"].AsString() == options_.identity;
  const int64_t transitions = observed_["leaseTransitions"].AsInt() + (is_ours ? 0 : 1);
  api_.Update(target_,
              WithSpec(Spec(transitions, is_ours ? observed_["acquireTime"] : json::Value())),
              lifetime_.Guard([this](const Result<json::Value>& answer) { OnWritten(answer); }));
}

void LeaderElector::OnWritten(const Result<json::Value>& answer) {
  if (over_) return;
  if (!answer) {
    const bool changed = answer.error().reason() == Reason::kConflict ||
                         answer.error().reason() == Reason::kNotFound;
    if (changed && leads_) return Read();  // somebody wrote or deleted it
    return Again(answer.error());
  }
  Observe(*answer);
  renewed_at_ = asked_at_;
  if (!leads_) {
    leads_ = true;
    LOG_INFO("leader: leads lease={}/{} identity={}", options_.ns, options_.name,
             options_.identity);
    callbacks_.on_started();
  }
  Again(Status::Ok());
}

void LeaderElector::Observe(const json::Value& lease) {
  version_ = std::string(lease["metadata"]["resourceVersion"].AsString());
  if (lease["spec"] == observed_) return;
  observed_ = lease["spec"];
  observed_at_ = api_.loop().Now();
}

void LeaderElector::Again(const Status& failure) {
  if (!failure.ok()) LOG_WARN("leader: {}", failure.message());
  if (leads_ && api_.loop().Now() >= renewed_at_ + kRenewDeadline) return Lose();
  const Duration jitter = kLeaseRetryPeriod * static_cast<int64_t>(rng_.Below(1000)) / 5000;
  api_.loop().After(kLeaseRetryPeriod + jitter, lifetime_.Guard([this] { Look(); }));
}

void LeaderElector::Lose() {
  LOG_WARN("leader: lost lease={}/{} holder={}", options_.ns, options_.name,
           observed_["holderIdentity"].AsString());
  over_ = true;
  leads_ = false;
  callbacks_.on_lost();
}

void LeaderElector::Release(Task done) {
  const bool led = std::exchange(leads_, false);
  over_ = true;
  if (!led) return done();
  json::Value spec = Spec(observed_["leaseTransitions"].AsInt(), observed_["acquireTime"]);
  spec = spec.Set("holderIdentity", "").Set("leaseDurationSeconds", 1);
  api_.Update(
      target_, WithSpec(std::move(spec)),
      lifetime_.Guard([done = std::move(done)](const Result<json::Value>&) mutable { done(); }));
}

}  // namespace muster::client
