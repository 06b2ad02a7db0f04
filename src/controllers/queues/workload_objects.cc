#include "controllers/queues/workload_objects.h"

#include <algorithm>

#include "base/strings.h"
#include "controllers/jobset/jobset_facts.h"
#include "net/sha1.h"
#include "schema/conditions.h"
#include "schema/pod_phase.h"
#include "schema/training_kinds.h"

namespace muster::controllers {
namespace {

constexpr std::string_view kPartOfLabel = "app.kubernetes.io/name";
constexpr size_t kHashDigits = 5;
constexpr size_t kMaxWorkloadName = 63;         // it becomes a label of pods upstream
constexpr size_t kMaxConditionMessage = 32768;  // metav1.Condition

std::string_view NameOf(const json::Value& object) { return object["metadata"]["name"].AsString(); }

json::Value PodSet(std::string_view name, int64_t count, const json::Value& pod_template) {
  // Of the metadata only what tells pods apart.
  json::Value metadata{json::Object()};
  for (const char* key : {"labels", "annotations"}) {
    if (!pod_template["metadata"][key].empty())
      metadata = metadata.Set(key, pod_template["metadata"][key]);
  }
  return json::Obj(
      {{"name", name},
       {"count", count},
       {"template", json::Obj({{"metadata", metadata}, {"spec", pod_template["spec"]}})}});
}

// A pod as a template: without what admission put in because of the queue.
json::Value TemplateOfPod(const json::Value& pod) {
  return pod.Set("spec", pod["spec"].Remove("schedulingGates"));
}

// `pod_spec` placed like the template of the set called `name`.
json::Value Placed(json::Value pod_spec, const json::Value& pod_sets, std::string_view name) {
  for (const json::Value& set : pod_sets.items()) {
    if (set["name"].AsString() != name) continue;
    for (const char* key : {"nodeSelector", "tolerations"}) {
      const json::Value& value = set["template"]["spec"][key];
      pod_spec = value.empty() ? pod_spec.Remove(key) : pod_spec.Set(key, value);
    }
  }
  return pod_spec;
}

std::string_view MessageOf(const json::Value& job, std::string_view type) {
  return schema::FindCondition(job["status"]["conditions"], type)["message"].AsString();
}

}  // namespace

client::Resource ResourceOf(const schema::QueuedKind& kind) {
  return {std::string(kind.group), std::string(kind.version), std::string(kind.plural)};
}

void FollowDefinitions(client::InformerSet& informers) {
  informers.Get(client::resources::kCustomResourceDefinitions,
                {{"metadata", "labels", kPartOfLabel}});
}

bool AreManagedElsewhere(const client::View& view) {
  const json::Value* definition =
      view.Of(client::resources::kCustomResourceDefinitions).Find({"", "workloads.kueue.x-k8s.io"});
  return definition != nullptr &&
         (*definition)["metadata"]["labels"][kPartOfLabel].AsString() == "kueue";
}

std::string WorkloadName(const schema::QueuedKind& kind, const json::Value& job) {
  const std::string hash = net::Sha1Hex(fmt::format(
      "{}\n{}\n{}\n{}", kind.kind, kind.group, NameOf(job), job["metadata"]["uid"].AsString()));
  const std::string prefix = fmt::format("{}-{}", ToLower(kind.kind), NameOf(job));
  return fmt::format("{}-{}", prefix.substr(0, kMaxWorkloadName - 1 - kHashDigits),
                     hash.substr(0, kHashDigits));
}

json::Value PodSetsOf(const schema::QueuedKind& kind, const json::Value& job) {
  const json::Value& spec = job["spec"];
  json::Array sets;
  if (kind.IsPod()) {
    sets.push_back(PodSet("main", 1, TemplateOfPod(job)));
  } else if (kind.kind == "Job") {
    sets.push_back(PodSet("main", PodsAtATime(spec), spec["template"]));
  } else if (kind.kind == "JobSet") {
    for (const json::Value& replicated : spec["replicatedJobs"].items()) {
      const json::Value& job_spec = replicated["template"]["spec"];
      sets.push_back(PodSet(replicated["name"].AsString(),
                            replicated["replicas"].AsInt(1) * PodsAtATime(job_spec),
                            job_spec["template"]));
    }
  } else if (const schema::TrainingKind* training = schema::FindTrainingKind(kind.kind)) {
    for (const auto& [role, replica] : spec[training->specs].members())
      sets.push_back(PodSet(ToLower(role), replica["replicas"].AsInt(1), replica["template"]));
  }
  return json::Value(std::move(sets));
}

json::Value WithPlacement(const schema::QueuedKind& kind, const json::Value& job,
                          const json::Value& pod_sets) {
  const json::Value& spec = job["spec"];
  if (kind.IsPod()) return job.Set("spec", Placed(spec, pod_sets, "main"));
  if (kind.kind == "Job") {
    return job.SetPath({"spec", "template", "spec"},
                       Placed(spec["template"]["spec"], pod_sets, "main"));
  }
  if (kind.kind == "JobSet") {
    json::Array replicated_jobs;
    for (const json::Value& replicated : spec["replicatedJobs"].items()) {
      const json::Value& pod = replicated["template"]["spec"]["template"]["spec"];
      replicated_jobs.push_back(
          replicated.SetPath({"template", "spec", "template", "spec"},
                             Placed(pod, pod_sets, replicated["name"].AsString())));
    }
    return job.SetPath({"spec", "replicatedJobs"}, json::Value(std::move(replicated_jobs)));
  }
  const schema::TrainingKind* training = schema::FindTrainingKind(kind.kind);
  if (training == nullptr) return job;
  json::Value roles = spec[training->specs];
  for (const auto& [role, replica] : spec[training->specs].members()) {
    roles = roles.Set(
        role, replica.SetPath({"template", "spec"},
                              Placed(replica["template"]["spec"], pod_sets, ToLower(role))));
  }
  return job.SetPath({"spec", std::string(training->specs)}, roles);
}

json::Value MakeWorkload(const schema::QueuedKind& kind, const json::Value& job,
                         const WorkloadPriority& priority) {
  json::Value labels = json::Obj({{std::string(kJobUidLabel), job["metadata"]["uid"]}});
  const json::Value owner = json::Obj({{"apiVersion", job["apiVersion"]},
                                       {"kind", kind.kind},
                                       {"name", NameOf(job)},
                                       {"uid", job["metadata"]["uid"]},
                                       {"controller", true},
                                       {"blockOwnerDeletion", true}});
  json::Value spec = json::Obj({{"podSets", PodSetsOf(kind, job)},
                                {"queueName", schema::QueueOf(job)},
                                {"priority", priority.value},
                                {"active", true}});
  if (!priority.class_name.empty())
    spec = spec.Set("priorityClassName", priority.class_name)
               .Set("priorityClassSource", priority.source);
  return json::Obj(
      {{"apiVersion", "kueue.x-k8s.io/v1beta1"},
       {"kind", "Workload"},
       {"metadata", json::Obj({{"name", WorkloadName(kind, job)},
                               {"namespace", job["metadata"]["namespace"]},
                               {"labels", labels},
                               {"finalizers", json::Strings({std::string(kResourceInUse)})},
                               {"ownerReferences", json::List({owner})}})},
       {"spec", spec}});
}

std::optional<WorkloadEnd> EndOf(const schema::QueuedKind& kind, const json::Value& job) {
  if (kind.IsPod()) {
    const std::string_view phase = job["status"]["phase"].AsString();
    if (!schema::IsFinalPhase(phase)) return std::nullopt;
    const bool good = phase == "Succeeded";
    return WorkloadEnd{phase, fmt::format("Pods succeeded: {}/1", good ? 1 : 0)};
  }
  const json::Value& conditions = job["status"]["conditions"];
  for (std::string_view type : {"Complete", "Completed", "Succeeded", "Failed"}) {
    if (!schema::ConditionHolds(conditions, type)) continue;
    const bool good = type != "Failed";
    std::string message(MessageOf(job, type));
    if (message.empty()) message = good ? "Job finished successfully" : "Job failed";
    return WorkloadEnd{good ? "Succeeded" : "Failed", std::move(message)};
  }
  return std::nullopt;
}

bool Holds(const json::Value& object, std::string_view condition) {
  return schema::ConditionHolds(object["status"]["conditions"], condition);
}

json::Value WithCondition(const json::Value& status, std::string_view type, bool holds,
                          std::string_view reason, std::string message, int64_t generation,
                          Time now) {
  if (message.size() > kMaxConditionMessage) message.resize(kMaxConditionMessage);
  const std::string_view text = holds ? "True" : "False";
  json::Array conditions;
  bool known = false;
  for (const json::Value& condition : status["conditions"].items()) {
    if (condition["type"].AsString() != type) {
      conditions.push_back(condition);
      continue;
    }
    if (condition["status"].AsString() == text && condition["reason"].AsString() == reason &&
        condition["message"].AsString() == message)
      return status;
    known = true;
    conditions.push_back(
        condition.Set("status", text)
            .Set("reason", reason)
            .Set("message", message)
            .Set("observedGeneration", generation)
            .Set("lastTransitionTime", schema::TransitionTime(condition, text, now)));
  }
  if (!known) {
    conditions.push_back(json::Obj({{"type", type},
                                    {"status", text},
                                    {"observedGeneration", generation},
                                    {"lastTransitionTime", FormatTime(now)},
                                    {"reason", reason},
                                    {"message", message}}));
  }
  return status.Set("conditions", json::Value(std::move(conditions)));
}

}  // namespace muster::controllers
