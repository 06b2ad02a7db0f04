#include "scheduler/binder.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace muster::scheduler {

namespace {

// The server did not decide: the binding may or may not have happened.
bool IsUndecided(Reason reason) {
  switch (reason) {
    case Reason::kUnknown:
    case Reason::kServerTimeout:
    case Reason::kTimeout:
    case Reason::kTooManyRequests:
    case Reason::kInternalError:
    case Reason::kServiceUnavailable:
      return true;
    default:
      return false;
  }
}

client::Target BindingTarget(const cluster::PodKey& pod) {
  return {client::resources::kPods, pod.ns, pod.name, "binding"};
}

}  // namespace

Duration BindBackoff(int attempts) {
  Duration backoff = kFirstBindBackoff;
  for (int i = 1; i < attempts && backoff < kMaxBindBackoff; ++i) backoff *= 2;
  return std::min(backoff, kMaxBindBackoff);
}

Binder::Binder(client::ApiClient& api, BinderHooks hooks) : api_(api), hooks_(std::move(hooks)) {}

void Binder::Bind(const std::vector<cluster::PodKey>& pods, bool partly_bound) {
  const auto unit = std::make_shared<UnitBinding>();
  unit->any_bound = partly_bound;
  unit->unanswered = pods.size();
  unit->pods = pods;
  unit->attempts.assign(pods.size(), 0);
  for (size_t member = 0; member < pods.size(); ++member) waiting_.push_back({unit, member});
  SchedulePump();
}

void Binder::SchedulePump() {
  if (pump_posted_ || waiting_.empty() || in_flight_ >= kMaxBindsInFlight) return;
  pump_posted_ = true;
  api_.loop().Post(lifetime_.Guard([this] {
    pump_posted_ = false;
    Pump();
  }));
}

void Binder::Pump() {
  for (size_t sent = 0;
       sent < kMaxBindsPerTask && !waiting_.empty() && in_flight_ < kMaxBindsInFlight; ++sent) {
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    Send(std::move(job));
  }
  SchedulePump();
}

void Binder::Send(Job job) {
  const json::Value binding = hooks_.binding_of(job.unit->pods[job.member]);
  if (binding.IsNull()) {
    --job.unit->unanswered;
    Settle(*job.unit, job.unit);
    return;
  }
  ++job.unit->attempts[job.member];
  ++in_flight_;
  const client::Target target = BindingTarget(job.unit->pods[job.member]);
  api_.Create(target, binding, lifetime_.Guard([this, job, binding](Result<json::Value> answer) {
    --in_flight_;
    OnAnswer(job, binding, answer.has_value() ? Status() : answer.error());
    SchedulePump();
  }));
}

void Binder::OnAnswer(const Job& job, const json::Value& binding, const Status& status) {
  // A conflict may speak of this very binding: an earlier answer was lost.
  if (!status.ok() && status.reason() == Reason::kConflict) return Verify(job, binding, status);
  if (status.ok() || !IsUndecided(status.reason())) return OnDecision(job, binding, status);
  LOG_WARN("scheduler: got no decision on a binding pod={} error={}",
           job.unit->pods[job.member].ToString(), status.ToString());
  if (job.unit->attempts[job.member] < kMaxBindAttempts) return RetryLater(job);
  Verify(job, binding, status);
}

// A server that fails the same binding over and over would otherwise hold the place for ever.
void Binder::Verify(const Job& job, const json::Value& binding, const Status& failure) {
  ++in_flight_;
  const cluster::PodKey& pod = job.unit->pods[job.member];
  const client::Target target{client::resources::kPods, pod.ns, pod.name, ""};
  api_.Get(target, lifetime_.Guard([this, job, binding, failure](Result<json::Value> answer) {
    --in_flight_;
    if (!answer.has_value()) {
      if (answer.error().reason() == Reason::kNotFound)
        return OnDecision(job, binding, answer.error());
      return RetryLater(job);
    }
    const json::Value& node = answer->Path({"spec", "nodeName"});
    if (node.AsString().empty()) {
      // The binding that it conflicts with may not be committed yet.
      const bool again = job.unit->attempts[job.member] < kMaxBindAttempts;
      if (failure.reason() == Reason::kConflict && again) return RetryLater(job);
      return OnDecision(job, binding, Error(Reason::kForbidden, "{}", failure.message()));
    }
    if (node == binding["target"]["name"]) return OnDecision(job, binding, Status());
    OnDecision(job, binding,
               Error(Reason::kConflict, "the pod was bound to node {}", node.AsString()));
  }));
}

void Binder::OnDecision(const Job& job, const json::Value& binding, const Status& status) {
  UnitBinding& unit = *job.unit;
  const cluster::PodKey& pod = unit.pods[job.member];
  --unit.unanswered;
  if (status.ok()) {
    unit.any_bound = true;
    hooks_.on_bound(pod, binding);
  } else if (status.reason() == Reason::kNotFound) {
    hooks_.on_released(pod, status);
  } else {
    LOG_WARN("scheduler: binding was refused pod={} error={}", pod.ToString(), status.ToString());
    unit.refused.emplace_back(job.member, status);
  }
  Settle(unit, job.unit);
}

// Once every member was answered: tries the refused ones again if the gang has begun to run, else
// gives them up.
void Binder::Settle(UnitBinding& unit, const std::shared_ptr<UnitBinding>& shared) {
  if (unit.unanswered > 0) return;
  for (auto& [member, status] : std::exchange(unit.refused, {})) {
    if (unit.any_bound && unit.attempts[member] < kMaxBindAttempts) {
      ++unit.unanswered;
      RetryLater({shared, member});
    } else {
      hooks_.on_released(unit.pods[member], status);
    }
  }
}

void Binder::RetryLater(Job job) {
  ++backing_off_;
  const Duration backoff = BindBackoff(job.unit->attempts[job.member]);
  api_.loop().After(backoff, lifetime_.Guard([this, job = std::move(job)] {
    --backing_off_;
    waiting_.push_back(job);
    SchedulePump();
  }));
}

}  // namespace muster::scheduler
