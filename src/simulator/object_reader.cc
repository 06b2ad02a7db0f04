#include "simulator/object_reader.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "json/parse.h"

namespace muster::simulator {
namespace {

Status Fault(std::string_view file, const json::Value& object, std::string_view field,
             std::string_view expected, std::string_view got) {
  return Error(Reason::kInvalid, "{}: {} {:?}: {}: expected {}, got {:?}", file,
               ToLower(object["kind"].Str("Pod")), object["metadata"]["name"].AsString(), field,
               expected, got.substr(0, 100));
}

// As `kubectl apply` has it. Selectors of other pods mean the namespace, too.
json::Value InNamespace(const json::Value& object, const std::string& ns) {
  if (!object["metadata"].IsObject() || !object["metadata"]["namespace"].AsString().empty())
    return object;
  return object.Set("metadata", object["metadata"].Set("namespace", ns));
}

// What all kinds have in common.
Result<Job> BareJob(std::string_view file, const json::Value& object, RunTime rule) {
  Job job;
  job.name = object["metadata"]["name"].Str();
  job.ns = object["metadata"]["namespace"].Str();
  ASSIGN_OR_RETURN(job.run_time, RunTimeOf(file, object, rule));
  const json::Value& created = object["metadata"]["creationTimestamp"];
  if (created.IsNull()) return job;
  const auto time = ParseTime(created.AsString());
  if (!time)
    return Error(Fault(file, object, "metadata.creationTimestamp", "a time", created.AsString()));
  job.arrival = time->time_since_epoch();
  return job;
}

PodSet SetOf(const json::Value& pod, int64_t count) {
  const cluster::PodInfo info = cluster::ToPodInfo(pod);
  return {count, info.labels, info.constraints};
}

// A pod as the controller of `object` would make it. Its labels are those of the template and
// those by which the job finds it.
json::Value PodOfTemplate(const json::Value& object, const json::Value& pod_template,
                          const std::vector<std::pair<std::string, std::string>>& labels) {
  json::Value metadata =
      pod_template["metadata"].IsObject() ? pod_template["metadata"] : json::Value(json::Object());
  json::Value own =
      metadata["labels"].IsObject() ? metadata["labels"] : json::Value(json::Object());
  for (const auto& [key, value] : labels) own = own.Set(key, value);
  metadata = metadata.Set("labels", own)
                 .Set("name", object["metadata"]["name"])
                 .Set("namespace", object["metadata"]["namespace"]);
  return json::Obj({{"metadata", metadata}, {"spec", pod_template["spec"]}});
}

Result<int64_t> Count(std::string_view file, const json::Value& object, std::string_view field,
                      const json::Value& value) {
  const int64_t count = value.AsInt(1);
  if (count >= 0 && count <= kMaxPodsOfJob) return count;
  return Error(
      Fault(file, object, field, fmt::format("0 to {}", kMaxPodsOfJob), std::to_string(count)));
}

class Reader {
 public:
  Reader(std::string_view file, const ReadOptions& options) : file_(file), options_(options) {}

  Status Add(size_t index, const json::Value& object) {
    if (jobs_.size() >= kMaxSimulatedJobs)
      return Error(Reason::kInvalid, "{}: more than {} jobs", file_, kMaxSimulatedJobs);
    if (IsOfKind(object, "Pod")) return AddPod(object);
    const std::string_view kind = object["kind"].AsString();
    if (kind == "PodGroup") {
      min_member_[GangKey(object, object["metadata"]["name"].Str())] =
          object["spec"]["minMember"].AsInt(1);
      return Status::Ok();
    }
    if (kind == "PyTorchJob") return AddPyTorchJob(object);
    if (kind == "Job") return AddBatchJob(object);
    if (options_.passes_over_others) return Status::Ok();
    return WrongKind(file_, index, object,
                     "Pod, PodGroup, PyTorchJob or Job (or a CSV of openb or Philly)");
  }

  std::vector<Job> Take() {
    for (const auto& [key, position] : gangs_) {
      const auto found = min_member_.find(key);
      if (found != min_member_.end()) jobs_[position].min_member = found->second;
    }
    return std::move(jobs_);
  }

 private:
  static std::string GangKey(const json::Value& object, const std::string& name) {
    return object["metadata"]["namespace"].Str() + "/" + name;
  }

  // `class_of_job`: of a job that names one for all its pods.
  int64_t PriorityOf(const json::Value& pod_spec, std::string_view class_of_job) const {
    if (!pod_spec["priority"].IsNull()) return pod_spec["priority"].AsInt();
    const std::string name =
        class_of_job.empty() ? pod_spec["priorityClassName"].Str() : std::string(class_of_job);
    const auto found = options_.priority_classes.find(name);
    return found == options_.priority_classes.end() ? 0 : found->second;
  }

  // Pods of one gang become one job, which arrives with the last and runs as long as the longest.
  Status AddPod(const json::Value& pod) {
    ASSIGN_OR_RETURN(Job job, BareJob(file_, pod, options_.run_time));
    job.priority = PriorityOf(pod["spec"], "");
    job.pods.push_back(SetOf(pod, 1));
    const std::string group = cluster::GroupOf(pod["metadata"]);
    if (group.empty()) {
      jobs_.push_back(std::move(job));
      return Status::Ok();
    }
    const auto [found, added] = gangs_.try_emplace(GangKey(pod, group), jobs_.size());
    if (added) {
      job.name = group;
      jobs_.push_back(std::move(job));
      return Status::Ok();
    }
    Job& gang = jobs_[found->second];
    gang.arrival = std::max(gang.arrival, job.arrival);
    gang.run_time = std::max(gang.run_time, job.run_time);
    gang.priority = std::max(gang.priority, job.priority);
    PodSet& last = gang.pods.back();
    if (last.labels == job.pods[0].labels && last.constraints == job.pods[0].constraints) {
      ++last.count;
    } else {
      gang.pods.push_back(std::move(job.pods[0]));
    }
    return Status::Ok();
  }

  Status AddPyTorchJob(const json::Value& object) {
    ASSIGN_OR_RETURN(Job job, BareJob(file_, object, options_.run_time));
    for (const char* type : {"Master", "Worker"}) {
      const json::Value& replicas = object["spec"]["pytorchReplicaSpecs"][type];
      if (replicas.IsNull()) continue;
      ASSIGN_OR_RETURN(
          const int64_t count,
          Count(file_, object, fmt::format("spec.pytorchReplicaSpecs.{}.replicas", type),
                replicas["replicas"]));
      if (count == 0) continue;
      const json::Value pod =
          PodOfTemplate(object, replicas["template"],
                        {{"training.kubeflow.org/job-name", job.name},
                         {"training.kubeflow.org/replica-type", ToLower(type)}});
      job.priority = std::max(
          job.priority,
          PriorityOf(
              pod["spec"],
              object["spec"].Path({"runPolicy", "schedulingPolicy", "priorityClass"}).AsString()));
      job.pods.push_back(SetOf(pod, count));
    }
    if (job.pods.empty())
      return Fault(file_, object, "spec.pytorchReplicaSpecs", "a Master or a Worker", "");
    jobs_.push_back(std::move(job));
    return Status::Ok();
  }

  Status AddBatchJob(const json::Value& object) {
    ASSIGN_OR_RETURN(Job job, BareJob(file_, object, options_.run_time));
    const json::Value& spec = object["spec"];
    ASSIGN_OR_RETURN(int64_t at_once,
                     Count(file_, object, "spec.parallelism", spec["parallelism"]));
    ASSIGN_OR_RETURN(
        const int64_t wanted,
        Count(file_, object, "spec.completions",
              spec["completions"].IsNull() ? spec["parallelism"] : spec["completions"]));
    at_once = std::min(at_once, wanted);
    const json::Value pod =
        PodOfTemplate(object, spec["template"], {{"batch.kubernetes.io/job-name", job.name}});
    job.priority = PriorityOf(pod["spec"], "");
    job.pods.push_back(SetOf(pod, 1));
    const Duration each = job.run_time;
    for (int64_t i = 0; i < at_once; ++i) {
      Job one = job;
      if (at_once > 1) one.name = fmt::format("{}-{}", job.name, i);
      const int64_t runs = (wanted - i + at_once - 1) / at_once;
      if (each != kNoKnownEnd) one.run_time = std::min(each * runs, kLongest);
      jobs_.push_back(std::move(one));
    }
    return Status::Ok();
  }

  static constexpr Duration kLongest = seconds(kMaxSimulatedSeconds);

  const std::string_view file_;
  const ReadOptions& options_;
  std::vector<Job> jobs_;
  std::map<std::string, size_t> gangs_;  // position in jobs_
  std::map<std::string, int64_t> min_member_;
};

}  // namespace

Result<Duration> RunTimeOf(std::string_view file, const json::Value& object, RunTime rule) {
  const json::Value& annotation = object["metadata"]["annotations"][kRunTimeAnnotation];
  if (annotation.IsNull() && rule == RunTime::kOptional) return kNoKnownEnd;
  const std::string_view text = annotation.AsString();
  const auto run_seconds = ParseInt(text);
  if (run_seconds && *run_seconds > 0 && *run_seconds <= kMaxSimulatedSeconds)
    return Duration(seconds(*run_seconds));
  return Error(Fault(file, object, fmt::format("annotation {}", kRunTimeAnnotation),
                     fmt::format("seconds from 1 to {}", kMaxSimulatedSeconds), text));
}

Result<std::vector<json::Value>> ReadObjects(std::string_view file, std::string_view text) {
  auto documents = json::ParseYaml(text);
  if (!documents) return Error(documents.error().WithPrefix(fmt::format("{}: ", file)));
  std::vector<json::Value> objects;
  for (const json::Value& document : *documents) {
    if (!document["items"].IsArray()) {
      objects.push_back(document);
      continue;
    }
    for (const json::Value& item : document["items"].items()) objects.push_back(item);
  }
  return objects;
}

Result<std::vector<Job>> JobsOfObjects(std::string_view file,
                                       const std::vector<json::Value>& objects,
                                       const ReadOptions& options) {
  Reader reader(file, options);
  for (size_t i = 0; i < objects.size(); ++i)
    RETURN_IF_ERROR(reader.Add(i, InNamespace(objects[i], options.ns)));
  return InOrderOfArrival(file, reader.Take());
}

Result<std::vector<Job>> InOrderOfArrival(std::string_view file, std::vector<Job> jobs) {
  if (jobs.empty()) return Error(Reason::kInvalid, "{}: no job with a run time", file);
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const Job& a, const Job& b) { return a.arrival < b.arrival; });
  const Duration first = jobs.front().arrival;
  // In whole seconds, which cannot overflow however far apart the two are.
  const auto whole = [](Duration time) { return std::chrono::floor<seconds>(time).count(); };
  if (whole(jobs.back().arrival) - whole(first) > kMaxSimulatedSeconds)
    return Error(Reason::kInvalid, "{}: the arrivals of {} and {} are more than {} s apart", file,
                 jobs.front().name, jobs.back().name, kMaxSimulatedSeconds);
  for (Job& job : jobs) job.arrival -= first;
  return jobs;
}

Status WrongKind(std::string_view file, size_t index, const json::Value& object,
                 std::string_view expected) {
  return Error(Reason::kInvalid, "{}: object {}: kind: expected {}, got {:?}", file, index + 1,
               expected, object["kind"].AsString().substr(0, 100));
}

bool IsOfKind(const json::Value& object, std::string_view kind) {
  return object["kind"].AsString() == kind ||
         (!object.Has("kind") && object["metadata"].Has("name"));
}

}  // namespace muster::simulator
