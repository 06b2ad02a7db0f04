#include "controllers/jobset/jobset_jobs.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "cluster/pod_info.h"
#include "controllers/pods/ownership.h"
#include "net/sha1.h"

namespace muster::controllers {
namespace {

constexpr std::string_view kJobKeyLabel = "jobset.sigs.k8s.io/job-key";
constexpr std::string_view kExclusiveAnnotation = "alpha.jobset.sigs.k8s.io/exclusive-topology";
constexpr std::string_view kNodeSelectorAnnotation = "alpha.jobset.sigs.k8s.io/node-selector";
constexpr std::string_view kNamespacedJobLabel = "alpha.jobset.sigs.k8s.io/namespaced-job";
constexpr std::string_view kNoScheduleTaint = "alpha.jobset.sigs.k8s.io/no-schedule";

using Marks = std::vector<std::pair<std::string_view, std::string>>;

// Where a Job stands among all, and among those of its group.
struct Places {
  int64_t of_all = 0, all = 0, of_group = 0, group = 0;
};

Places PlacesOf(const JobSetFacts& job_set, const ReplicatedJob& replicated_job, int64_t index) {
  Places places;
  bool found = false;
  for (const ReplicatedJob& other : job_set.replicated_jobs) {
    if (other.name == replicated_job.name && !std::exchange(found, true)) {
      places.of_all = places.all + index;
      places.of_group = places.group + index;
    }
    places.all += other.replicas;
    if (other.group == replicated_job.group) places.group += other.replicas;
  }
  return places;
}

// Labels and annotations alike, of the Job and of its pods.
Marks MarksOf(const JobSetFacts& job_set, const ReplicatedJob& replicated_job, int64_t index) {
  const Places places = PlacesOf(job_set, replicated_job, index);
  const std::string key = job_set.ns + "/" + job_set.JobName(replicated_job, index);
  Marks marks = {
      {kJobSetNameLabel, job_set.name},
      {kJobSetUidLabel, job_set.uid},
      {kReplicatedJobNameLabel, replicated_job.name},
      {kRestartAttemptLabel, std::to_string(job_set.restarts)},
      {"jobset.sigs.k8s.io/replicatedjob-replicas", std::to_string(replicated_job.replicas)},
      {"jobset.sigs.k8s.io/global-replicas", std::to_string(places.all)},
      {"jobset.sigs.k8s.io/job-index", std::to_string(index)},
      {kJobKeyLabel, net::Sha1Hex(key)},
      {"jobset.sigs.k8s.io/job-global-index", std::to_string(places.of_all)},
      {"jobset.sigs.k8s.io/group-name", replicated_job.group},
      {"jobset.sigs.k8s.io/group-replicas", std::to_string(places.group)},
      {"jobset.sigs.k8s.io/job-group-index", std::to_string(places.of_group)}};
  if (!job_set.coordinator.empty())
    marks.emplace_back("jobset.sigs.k8s.io/coordinator", job_set.coordinator);
  return marks;
}

// Annotations that say how Jobs are placed: those of the template before those of the JobSet.
json::Value PlacementOf(const JobSetFacts& job_set, const ReplicatedJob& replicated_job) {
  json::Value out = json::Obj();
  for (const json::Value* object : {&job_set.object, &replicated_job.job_template}) {
    const json::Value& annotations = (*object)["metadata"]["annotations"];
    if (!annotations.Has(kExclusiveAnnotation)) continue;
    for (const std::string_view key : {kExclusiveAnnotation, kNodeSelectorAnnotation}) {
      if (annotations.Has(key)) out = std::move(out).Set(key, annotations[key]);
    }
  }
  return out;
}

json::Value WithMembersOf(json::Value object, const json::Value& more) {
  for (const auto& [key, value] : more.members()) object = std::move(object).Set(key, value);
  return object;
}

json::Value Marked(json::Value metadata, const Marks& marks, const json::Value& placement) {
  json::Value labels = metadata["labels"];
  json::Value annotations = metadata["annotations"];
  for (const auto& [key, value] : marks) {
    labels = std::move(labels).Set(key, value);
    annotations = std::move(annotations).Set(key, value);
  }
  annotations = WithMembersOf(std::move(annotations), placement);
  return std::move(metadata).Set("labels", std::move(labels)).Set("annotations", annotations);
}

json::Value Term(const json::Value& topology, json::Value expressions) {
  return json::Obj({{"labelSelector", json::Obj({{"matchExpressions", std::move(expressions)}})},
                    {"topologyKey", topology},
                    {"namespaceSelector", json::Obj()}});
}

// With the pods of its own Job, and with those of no other one.
json::Value WithExclusiveDomain(json::Value pod_spec, const json::Value& topology,
                                const std::string& job_key) {
  constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  const auto expression = [&](const char* op, bool named) {
    json::Value out = json::Obj({{"key", kJobKeyLabel}, {"operator", op}});
    return named ? out.Set("values", json::Strings({job_key})) : out;
  };
  for (const auto& [kind, expressions] :
       {std::pair{"podAffinity", json::List({expression("In", true)})},
        {"podAntiAffinity",
         json::List({expression("Exists", false), expression("NotIn", true)})}}) {
    const json::Value terms = pod_spec.Path({"affinity", kind, kRequired});
    pod_spec = std::move(pod_spec).SetPath({"affinity", kind, kRequired},
                                           terms.Append(Term(topology, expressions)));
  }
  return pod_spec;
}

// Somebody has given the nodes of each Job a label and a taint.
json::Value WithLabelledNodes(json::Value pod_spec, const std::string& ns,
                              const std::string& job_name) {
  pod_spec =
      std::move(pod_spec).SetPath({"nodeSelector", kNamespacedJobLabel}, ns + "_" + job_name);
  const json::Value toleration =
      json::Obj({{"key", kNoScheduleTaint}, {"operator", "Exists"}, {"effect", "NoSchedule"}});
  const json::Value tolerations = pod_spec["tolerations"];
  return std::move(pod_spec).Set("tolerations", tolerations.Append(toleration));
}

json::Value Placed(json::Value pod_spec, const json::Value& placement, const std::string& ns,
                   const std::string& job_name, const std::string& job_key) {
  if (!placement.Has(kExclusiveAnnotation)) return pod_spec;
  if (placement.Has(kNodeSelectorAnnotation))
    return WithLabelledNodes(std::move(pod_spec), ns, job_name);
  return WithExclusiveDomain(std::move(pod_spec), placement[kExclusiveAnnotation], job_key);
}

}  // namespace

json::Value MakeJob(const JobSetFacts& job_set, const ReplicatedJob& replicated_job,
                    int64_t index) {
  const std::string name = job_set.JobName(replicated_job, index);
  const Marks marks = MarksOf(job_set, replicated_job, index);
  const json::Value placement = PlacementOf(job_set, replicated_job);
  const json::Value& from = replicated_job.job_template;
  json::Value metadata = json::Obj({{"name", name}, {"namespace", job_set.ns}});
  for (const char* key : {"labels", "annotations"}) {
    if (from["metadata"].Has(key)) metadata = std::move(metadata).Set(key, from["metadata"][key]);
  }
  metadata = Marked(std::move(metadata), marks, placement)
                 .Set("ownerReferences", ControlledByOnly(job_set.object));

  json::Value spec = from["spec"].Set("suspend", job_set.suspended);
  json::Value pod_template = spec["template"];
  json::Value pod_spec = Placed(pod_template["spec"], placement, job_set.ns, name,
                                net::Sha1Hex(job_set.ns + "/" + name));
  if (job_set.dns_hostnames) pod_spec = std::move(pod_spec).Set("subdomain", job_set.subdomain);
  json::Value pod_metadata = Marked(pod_template["metadata"], marks, placement);
  if (job_set.gang)
    pod_metadata = std::move(pod_metadata)
                       .SetPath({"annotations", cluster::kGroupNameAnnotation}, job_set.name);
  pod_template = std::move(pod_template)
                     .Set("metadata", std::move(pod_metadata))
                     .Set("spec", std::move(pod_spec));
  return json::Obj({{"apiVersion", "batch/v1"},
                    {"kind", "Job"},
                    {"metadata", std::move(metadata)},
                    {"spec", std::move(spec).Set("template", std::move(pod_template))}});
}

json::Value MakeHeadlessService(const JobSetFacts& job_set) {
  return json::Obj(
      {{"apiVersion", "v1"},
       {"kind", "Service"},
       {"metadata", json::Obj({{"name", job_set.subdomain},
                               {"namespace", job_set.ns},
                               {"ownerReferences", ControlledByOnly(job_set.object)}})},
       {"spec", json::Obj({{"clusterIP", "None"},
                           {"selector", json::Obj({{std::string(kJobSetNameLabel), job_set.name}})},
                           {"publishNotReadyAddresses", job_set.publish_not_ready}})}});
}

bool GivesHostNames(const json::Value& service, const JobSetFacts& job_set) {
  const json::Value& selector = service["spec"]["selector"];
  if (service["spec"]["clusterIP"].AsString() != "None" || selector.empty()) return false;
  return std::ranges::all_of(job_set.replicated_jobs, [&](const ReplicatedJob& replicated_job) {
    const json::Value job = MakeJob(job_set, replicated_job, 0);
    const json::Value& labels = job["spec"]["template"]["metadata"]["labels"];
    return std::ranges::all_of(selector.members(), [&](const json::Member& member) {
      return labels[member.first] == member.second;
    });
  });
}

json::Value MakeGang(const JobSetFacts& job_set, int64_t done) {
  int64_t members = -done;
  for (const ReplicatedJob& replicated_job : job_set.replicated_jobs)
    members += replicated_job.replicas * PodsAtATime(replicated_job.job_template["spec"]);
  return json::Obj(
      {{"apiVersion", "scheduling.volcano.sh/v1beta1"},
       {"kind", "PodGroup"},
       {"metadata", json::Obj({{"name", job_set.name},
                               {"namespace", job_set.ns},
                               {"ownerReferences", ControlledByOnly(job_set.object)}})},
       {"spec", json::Obj({{"minMember", std::max<int64_t>(members, 1)}, {"queue", "default"}})}});
}

json::Value WithDirectives(json::Value pod_template, const json::Value& wanted) {
  for (const auto& [part, key] :
       {std::pair{"metadata", "labels"}, {"metadata", "annotations"}, {"spec", "nodeSelector"}}) {
    if (wanted[part][key].empty()) continue;
    const json::Value now = pod_template[part][key];
    pod_template =
        std::move(pod_template).SetPath({part, key}, WithMembersOf(now, wanted[part][key]));
  }
  for (const char* key : {"tolerations", "schedulingGates"}) {
    json::Value list = pod_template["spec"][key];
    for (const json::Value& item : wanted["spec"][key].items()) {
      const auto& known = list.items();
      if (std::find(known.begin(), known.end(), item) == known.end())
        list = std::move(list).Append(item);
    }
    if (!list.empty()) pod_template = std::move(pod_template).SetPath({"spec", key}, list);
  }
  return pod_template;
}

}  // namespace muster::controllers
