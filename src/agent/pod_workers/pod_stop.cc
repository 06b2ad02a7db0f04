// The part of PodWorker that ends a pod.

#include <signal.h>

#include <algorithm>

#include "agent/pod_workers/pod_worker.h"
#include "agent/runtime/files.h"
#include "agent/runtime/signal_names.h"
#include "base/bounded_seconds.h"
#include "base/log.h"
#include "schema/pod_phase.h"

namespace muster::agent {
namespace {
using Is = ContainerRuntimeState::Is;
}

bool PodWorker::ShouldStop() const {
  if (object_gone_ || IsDeleted() || !state_.failed_reason.empty()) return true;
  return AppsDone() || schema::IsFinalPhase(PodPhase(pod_, state_));
}

// Waits for what runs, then: final status, sandbox away, object away.
void PodWorker::Stop() {
  state_.terminal = true;
  if (!stop_since_) {
    stop_since_ = context_.loop.Now();
    probes_.RetireLivenessAndStartup();
    // A pod that had ended before we saw it has its last status already.
    if (!removed_) MarkStatus();
  }
  if (AnyRunning()) return AdvanceEndings();
  // Before the last status is published: whoever reads it may give the devices away at once.
  context_.devices.Release(uid_);
  if (IsPlain()) context_.plain_ports->Release(uid_);
  if (!object_gone_ && !status_.object_gone()) {
    // A pod that had ended before we saw it keeps the status that it has.
    if (!removed_ || IsDeleted()) {
      if (!(removed_ && status_.NothingWrittenYet())) WriteStatusNow();
      if (!status_.Acknowledged()) return;  // its acknowledgement calls Sync()
    }
  }
  if (!removed_) return RemoveEverything();
  if (object_gone_ || status_.object_gone()) return Finish();
  if (IsDeleted()) DeleteObject();
}

Duration PodWorker::SpecGrace() const {
  const json::Value& of_spec = pod_["spec"]["terminationGracePeriodSeconds"];
  return BoundedSeconds((IsDeleted() ? pod_["metadata"]["deletionGracePeriodSeconds"] : of_spec)
                            .AsInt(of_spec.AsInt(kDefaultGraceSeconds)));
}

// What the pod as a whole has.
Duration PodWorker::StopGrace() const {
  if (object_gone_) return Duration();
  return state_.failed_reason == kEvicted ? kEvictionGrace : SpecGrace();
}

// Counted from the beginning of the container's own ending.
Duration PodWorker::GraceNow(size_t index) const {
  const Ending& ending = *endings_[index];
  if (object_gone_) return Duration();
  if (!stop_since_) return ending.grace;
  return std::min<Duration>(ending.grace, *stop_since_ + StopGrace() - ending.stop.since());
}

// Sidecars end after the containers that they serve, the first one last.
bool PodWorker::ItsTurnToEnd(size_t index) const {
  if (!stop_since_ || !state_.containers[index].sidecar) return true;
  for (size_t i = index + 1; i < state_.containers.size(); ++i) {
    const ContainerRuntimeState& other = state_.containers[i];
    if (other.is == Is::kRunning && (other.sidecar || !other.init)) return false;
  }
  return true;
}

void PodWorker::BeginEnding(size_t index, Duration grace, const std::string& message) {
  Event(client::EventType::kNormal, "Killing", message);
  post_starts_[index].reset();
  const bool has_hook = AllContainers(pod_)[index]["lifecycle"].Has("preStop");
  endings_[index].emplace(ContainerStop(context_.loop.Now(), has_hook), grace, nullptr);
}

void PodWorker::AdvanceEndings() {
  for (size_t i = 0; i < state_.containers.size(); ++i) {
    const ContainerRuntimeState& container = state_.containers[i];
    if (container.is != Is::kRunning) continue;
    if (stop_since_ && !endings_[i])
      BeginEnding(i, StopGrace(), fmt::format("Stopping container {}", container.name));
    if (endings_[i]) AdvanceEnding(i);
  }
}

void PodWorker::AdvanceEnding(size_t index) {
  ContainerStop& stop = endings_[index]->stop;
  const Time now = context_.loop.Now();
  while (true) {
    const ContainerStop::Do next = stop.Next(now, GraceNow(index), ItsTurnToEnd(index));
    if (next == ContainerStop::Do::kWait) break;
    if (next == ContainerStop::Do::kRunHook) RunPreStop(index);
    if (next == ContainerStop::Do::kSignal || next == ContainerStop::Do::kKill)
      Signal(index, next == ContainerStop::Do::kKill);
    if (next == ContainerStop::Do::kKillSandbox) {
      // A shim that is stopped or hangs passes no signal on.
      LOG_WARN("agent: pod {} does not end, its sandbox is killed", uid_);
      context_.runtime.KillSandbox(uid_);
    }
  }
  ScheduleSync(stop.due() - now);
}

void PodWorker::RunPreStop(size_t index) {
  const json::Value container = AllContainers(pod_)[index];
  const Result<HandlerAction> action =
      HookActionOf(container["lifecycle"]["preStop"], container, state_.pod_ip);
  const auto done = [this, index](const HandlerResult& result) {
    if (!result.Good()) {
      // Without its words: they may be secrets of the server, as upstream has it.
      Event(client::EventType::kWarning, "FailedPreStopHook", "PreStopHook failed");
    }
    endings_[index]->stop.HookDone();
    endings_[index]->hook.reset();
    Sync();
  };
  if (!action) return done({HandlerResult::Is::kUnknown, action.error().message()});
  endings_[index]->hook = context_.handlers.Run({uid_, state_.containers[index].name}, *action,
                                                std::nullopt, lifetime_.Guard(done));
}

void PodWorker::Signal(size_t index, bool kill) {
  const ContainerRuntimeState& container = state_.containers[index];
  endings_[index]->hook.reset();
  const std::string name = StopSignalOf(AllContainers(pod_)[index], container);
  const int stop = SignalNamed(name).value_or(SIGTERM);
  context_.runtime.SignalContainer(uid_, container.name, kill ? SIGKILL : stop);
}

void PodWorker::RemoveEverything() {
  busy_ = true;
  for (TimerId* timer : {&sync_timer_, &deadline_timer_, &refresh_timer_, &first_status_timer_}) {
    context_.loop.Cancel(*timer);
    *timer = 0;
  }
  context_.runtime.RemoveSandbox(uid_, lifetime_.Guard([this](Status status) {
    busy_ = false;
    if (!status.ok()) LOG_WARN("agent: remove pod {}: {}", uid_, status.message());
    removed_ = true;
    sandbox_ready_ = false;
    ReleaseAddress();
    context_.host_ports.Release(uid_);
    context_.volume_users.Release(uid_);
    context_.on_addresses_changed();
    Sync();
  }));
}

void PodWorker::DeleteObject() {
  if (delete_sent_) return;
  delete_sent_ = true;
  client::DeleteOptions options;
  options.grace_period_seconds = 0;
  options.precondition_uid = uid_;
  const client::Target target = {client::resources::kPods, pod_["metadata"]["namespace"].Str(),
                                 pod_["metadata"]["name"].Str(), ""};
  context_.client.Delete(target, options, lifetime_.Guard([this](Result<json::Value> answer) {
    const bool gone = !answer && (answer.error().reason() == Reason::kNotFound ||
                                  answer.error().reason() == Reason::kConflict);
    // With finalizers the object stays for a while; the informer tells when it goes.
    if (answer) return;
    if (gone) {
      object_gone_ = true;
    } else {
      delete_sent_ = false;
      LOG_WARN("agent: delete pod {}: {}", uid_, answer.error().message());
    }
    ScheduleSync(gone ? Duration() : kStatusRetryDelay);
  }));
}

void PodWorker::Finish() {
  done_ = true;
  const std::string logs = PodLogDir(context_.data_dir, pod_);
  context_.pool.Run([logs] { (void)RemoveTree(logs); }, context_.loop, [] {});
  context_.loop.Post([&context = context_, uid = uid_] { context.on_done(uid); });
}

}  // namespace muster::agent
