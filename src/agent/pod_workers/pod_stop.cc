// The part of PodWorker that ends a pod.

#include <signal.h>

#include "agent/pod_workers/pod_worker.h"
#include "agent/runtime/files.h"
#include "base/log.h"
#include "schema/pod_phase.h"

namespace muster::agent {
namespace {
using Is = ContainerRuntimeState::Is;
}

bool PodWorker::ShouldStop() const {
  if (object_gone_ || IsDeleted() || !state_.failed_reason.empty()) return true;
  return schema::IsFinalPhase(PodPhase(pod_, state_));
}

// Waits for what runs, then: final status, sandbox away, object away.
void PodWorker::Stop() {
  state_.terminal = true;
  if (!stop_since_) {
    stop_since_ = context_.loop.Now();
    // A pod that had ended before we saw it has its last status already.
    if (!removed_) MarkStatus();
  }
  if (AnyRunning()) return SignalAll();
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

Time PodWorker::StopDeadline() const {
  if (object_gone_) return *stop_since_;
  if (state_.failed_reason == kEvicted) return *stop_since_ + kEvictionGrace;
  const int64_t of_spec = pod_["spec"]["terminationGracePeriodSeconds"].AsInt(kDefaultGraceSeconds);
  const int64_t grace =
      IsDeleted() ? pod_["metadata"]["deletionGracePeriodSeconds"].AsInt(of_spec) : of_spec;
  return *stop_since_ + seconds(grace);
}

void PodWorker::SignalAll() {
  const Duration left = StopDeadline() - context_.loop.Now();
  const bool kill_now = left <= Duration();
  const bool first = !signalled_;
  if ((kill_now && !killed_) || first) {
    for (const ContainerRuntimeState& container : state_.containers) {
      if (container.is != Is::kRunning) continue;
      if (first) {
        Event(client::EventType::kNormal, "Killing",
              fmt::format("Stopping container {}", container.name));
      }
      const ImageRecord* image = container.image_name.empty() || context_.images == nullptr
                                     ? nullptr
                                     : context_.images->FindRoot(container.image_name);
      const int stop = image == nullptr ? SIGTERM : StopSignal(image->config);
      context_.runtime.SignalContainer(uid_, container.name, kill_now ? SIGKILL : stop);
    }
  }
  signalled_ = true;
  if (!kill_now) return ScheduleSync(left);
  // A shim that is stopped or hangs passes no signal on.
  if (killed_ && -left >= kKillPatience) {
    LOG_WARN("agent: pod {} does not end, its sandbox is killed", uid_);
    context_.runtime.KillSandbox(uid_);
  }
  killed_ = true;
  ScheduleSync(kKillPatience);
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
