#include "cli/job_follower.h"

#include <utility>

#include "cli/waiting.h"
#include "schema/pod_phase.h"
#include "schema/training_kinds.h"

namespace muster::cli {
namespace {

LogOptions WithPrefix(LogOptions options, const json::Value& job) {
  options.follow = true;
  options.prefix = options.prefix || ReplicasOf(job) > 1;
  options.strip = job["metadata"]["name"].Str() + "-";
  return options;
}

ObjectWatch::Selection JobSelection(const ApiResource& resource, const json::Value& job) {
  return {resource.resource, job["metadata"]["namespace"].Str(), "",
          "metadata.name=" + job["metadata"]["name"].Str()};
}

ObjectWatch::Selection PodSelection(const ApiResource& resource, const json::Value& job) {
  return {client::resources::kPods, job["metadata"]["namespace"].Str(),
          PodSelectorOf(resource, job), ""};
}

bool IsOver(const json::Value& pod) {
  return schema::IsFinalPhase(pod["status"]["phase"].AsString());
}

}  // namespace

int64_t ReplicasOf(const json::Value& job) {
  int64_t total = 0;
  for (const auto& [type, replica] : schema::ReplicaSpecsOf(job).members())
    total += replica["replicas"].AsInt(1);
  if (total > 0) return total;
  return job["spec"]["parallelism"].AsInt(job["spec"]["numWorkers"].AsInt(1));
}

std::string PodSelectorOf(const ApiResource& resource, const json::Value& job) {
  const bool batch = resource.resource.group == "batch";
  return std::string(batch ? "batch.kubernetes.io/job-name" : kJobNameLabel) + "=" +
         job["metadata"]["name"].Str();
}

JobFollower::JobFollower(Session& session, Console& console, const ApiResource& resource,
                         const json::Value& job, LogOptions options,
                         std::function<void(const json::Value&)> on_over)
    : session_(session),
      console_(console),
      name_(job["metadata"]["name"].Str()),
      on_over_(std::move(on_over)),
      job_(job),
      logs_(session, console, WithPrefix(std::move(options), job)),
      jobs_(session, JobSelection(resource, job),
            [this](const std::string&, const json::Value& now) { OnJob(now); }),
      pods_(session, PodSelection(resource, job),
            [this](const std::string&, const json::Value& pod) { OnPod(pod); }) {
  logs_.OnError([this](const Status& status) {
    console_.Err("muster: cannot read a log: " + status.message());
  });
  jobs_.OnError([this](const Status& status) {
    console_.StatusLine("waiting for the server: " + status.message());
  });
  // A job that is gone when the first list comes was deleted meanwhile.
  jobs_.OnSync([this] {
    if (jobs_.Find(name_).IsNull()) OnJob(json::Value());
  });
}

void JobFollower::OnJob(const json::Value& job) {
  job_ = job;
  if (!finished_ && (job.IsNull() || JobFinished(job))) {
    finished_ = true;
    finished_at_ = session_.loop().Now();
    session_.loop().After(kLastWordsDelay, lifetime_.Guard([this] { LookForEnd(); }));
  }
  ShowProgress();
}

void JobFollower::OnPod(const json::Value& pod) {
  logs_.OnPod(pod);
  ShowProgress();
}

void JobFollower::ShowProgress() {
  if (finished_) return console_.StatusLine("");
  const std::string why = WhyPodsWait(pods_.objects());
  if (why.empty()) {
    console_.StatusLine(pods_.objects().empty() ? name_ + ": waiting for its pods" : "");
  } else {
    console_.StatusLine(name_ + " waits: " + why);
  }
  if (!console_.err_is_terminal()) TellWaiting();
}

// Without a terminal there is no live line, but what may never come is worth a sentence. A gang has
// one reason, told once for all its pods.
void JobFollower::TellWaiting() {
  for (const auto& [name, pod] : pods_.objects()) {
    const std::string why = WhyPodIsStuck(pod);
    if (why.empty() || told_reasons_.size() >= kMaxToldReasons) continue;
    if (!told_reasons_.insert(why).second) continue;
    const bool whole_gang = FindCondition(pod, "PodScheduled")["status"].AsString() == "False";
    console_.Err("muster: " + (whole_gang ? name_ : name) + " waits: " + why);
  }
}

bool JobFollower::PodsSettled() const {
  for (const auto& [name, pod] : pods_.objects()) {
    if (!IsOver(pod)) return false;
  }
  return true;
}

void JobFollower::LookForEnd() {
  if (told_) return;
  const bool read = logs_.Idle() && PodsSettled();
  if (!read && session_.loop().Now() - finished_at_ < kLastWordsLimit) {
    session_.loop().After(kLastWordsDelay, lifetime_.Guard([this] { LookForEnd(); }));
    return;
  }
  told_ = true;
  on_over_(job_);
}

}  // namespace muster::cli
