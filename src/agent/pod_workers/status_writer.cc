#include "agent/pod_workers/status_writer.h"

#include <string>

#include "base/log.h"
#include "client/informer.h"
#include "schema/conditions.h"

namespace muster::agent {

StatusWriter::StatusWriter(Loop& loop, client::ApiClient& client, const json::Value& pod,
                           std::function<void()> on_acknowledged)
    : loop_(loop),
      client_(client),
      target_{client::resources::kPods, pod["metadata"]["namespace"].Str(),
              pod["metadata"]["name"].Str(), "status"},
      uid_(pod["metadata"]["uid"].Str()),
      on_acknowledged_(std::move(on_acknowledged)) {}

StatusWriter::~StatusWriter() { loop_.Cancel(retry_); }

void StatusWriter::Write(json::Value status, uint64_t revision) {
  wanted_ = std::move(status);
  base_revision_ = revision;
  if (!in_flight_ && retry_ == 0) Send();
}

bool StatusWriter::NeedsNewStatus(const json::Value& pod) const {
  return !in_flight_ && Outdated() && client::RevisionOf(pod) > refused_revision_;
}

bool StatusWriter::IsContradictedBy(const json::Value& pod) {
  if (acknowledged_.IsNull() || !Acknowledged() || object_gone_) return false;
  if (client::RevisionOf(pod) <= acknowledged_revision_) return false;  // as it was before
  const auto ready = [](const json::Value& status) {
    return schema::ConditionHolds(status["conditions"], "Ready");
  };
  if (ready(pod["status"]) == ready(acknowledged_)) return false;
  acknowledged_ = json::Value();
  return true;
}

void StatusWriter::Send() {
  if (object_gone_ || wanted_ == acknowledged_ || Outdated()) return;
  in_flight_ = true;
  const json::Value sent = wanted_;
  // The uid makes the write fail if another pod has taken the name, the version if somebody else
  // wrote: the pod may have been called Failed, or have conditions that the patch would drop.
  const uint64_t revision = Revision();
  json::Value metadata = json::Obj({{"uid", uid_}});
  if (revision > 0) metadata = metadata.Set("resourceVersion", std::to_string(revision));
  const json::Value patch = json::Obj({{"metadata", std::move(metadata)}, {"status", sent}});
  client_.Patch(target_, client::PatchType::kMerge, patch,
                lifetime_.Guard([this, sent, revision](Result<json::Value> answer) {
                  in_flight_ = false;
                  if (answer) {
                    acknowledged_ = sent;
                    acknowledged_revision_ = client::RevisionOf(*answer);
                  } else if (answer.error().reason() == Reason::kNotFound) {
                    object_gone_ = true;
                  } else if (answer.error().reason() == Reason::kConflict && revision > 0) {
                    refused_revision_ = revision;
                    if (Outdated()) return on_acknowledged_();
                  } else {
                    LOG_WARN("agent: write status of pod {}/{}: {}", target_.ns, target_.name,
                             answer.error().message());
                    retry_ = loop_.After(kStatusRetryDelay, [this] {
                      retry_ = 0;
                      Send();
                    });
                    return;
                  }
                  if (wanted_ != acknowledged_ && !object_gone_) return Send();
                  on_acknowledged_();
                }));
}

}  // namespace muster::agent
