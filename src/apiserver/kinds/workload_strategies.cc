#include "apiserver/kinds/workload_strategies.h"

#include <algorithm>
#include <optional>

#include "apiserver/update.h"
#include "base/strings.h"
#include "schema/defaulting.h"
#include "schema/gpu_operator.h"
#include "schema/job_labels.h"

namespace muster::apiserver {
namespace {

class WorkloadStrategy : public Strategy {
 public:
  bool has_generation() const override { return true; }
};

class DeploymentStrategy : public WorkloadStrategy {
 public:
  bool annotations_count_for_generation() const override { return true; }

  Status PrepareCreate(WriteContext&, json::Value& deployment) override {
    KeepGpuOperatorAtNone(deployment);
    return Status::Ok();
  }

  // Whoever scales it, too.
  Status PrepareUpdate(WriteContext& context, const json::Value&, json::Value& after) override {
    const bool asks = after.Path({"spec", "replicas"}).AsInt() != 0;
    if (KeepGpuOperatorAtNone(after) && asks) Warn(context, schema::kGpuOperatorIsKept);
    return Status::Ok();
  }

  Status PrepareStatusUpdate(WriteContext&, const json::Value& before,
                             json::Value& after) override {
    const json::Value* labels = before["metadata"].Find("labels");
    after = labels != nullptr ? after.SetPath({"metadata", "labels"}, *labels)
                              : after.RemovePath({"metadata", "labels"});
    return Status::Ok();
  }

 private:
  // So whoever waits for the rollout (helm --wait) does not wait for ever.
  static bool KeepGpuOperatorAtNone(json::Value& deployment) {
    if (!schema::IsGpuOperator(deployment.Path({"spec", "template", "spec"}))) return false;
    deployment = std::move(deployment).SetPath({"spec", "replicas"}, 0);
    return true;
  }
};

// The generation of a DaemonSet's template is an annotation in this version of the API.
class DaemonSetStrategy : public WorkloadStrategy {
 public:
  Status PrepareCreate(WriteContext&, json::Value& object) override {
    ASSIGN_OR_RETURN(const int64_t sent, TemplateGeneration(object));
    SetTemplateGeneration(object, std::max<int64_t>(sent, 1));
    return Status::Ok();
  }

  Status PrepareUpdate(WriteContext& context, const json::Value& before,
                       json::Value& after) override {
    after = schema::ApplyDefaults(context.kind, std::move(after));
    const bool changed = !(after["spec"]["template"] == before["spec"]["template"]);
    const Result<int64_t> generation = TemplateGeneration(before);
    SetTemplateGeneration(after, std::max<int64_t>(generation.value_or(0), 1) + (changed ? 1 : 0));
    return Status::Ok();
  }

 private:
  static constexpr const char* kAnnotation = "deprecated.daemonset.template.generation";

  static Result<int64_t> TemplateGeneration(const json::Value& object) {
    const json::Value& text = object["metadata"]["annotations"][kAnnotation];
    if (text.IsNull()) return 0;
    const std::optional<int64_t> number = ParseInt(text.AsString());
    if (number) return *number;
    return Error(Reason::kBadRequest, "metadata.annotations[{}]: \"{}\" is not a number",
                 kAnnotation, text.AsString());
  }

  static void SetTemplateGeneration(json::Value& object, int64_t generation) {
    object = std::move(object).SetPath({"metadata", "annotations", kAnnotation},
                                       std::to_string(generation));
  }
};

class JobStrategy : public WorkloadStrategy {
 public:
  bool orphans_by_default() const override { return true; }

  // Makes the selector, and the labels that it selects. Labels that the user chose stay, and are
  // refused by validation if they say otherwise.
  Status PrepareCreate(WriteContext&, json::Value& job) override {
    if (job["spec"]["manualSelector"].AsBool()) return Status::Ok();
    const json::Value labels = schema::GeneratedJobLabels(job["metadata"]);
    for (const auto& [key, value] : labels.members()) {
      if (!job.Path({"spec", "template", "metadata", "labels"}).Has(key))
        job = std::move(job).SetPath({"spec", "template", "metadata", "labels", key}, value);
    }
    if (!job.Path({"spec", "selector", "matchLabels"}).Has(schema::kJobUidLabel)) {
      job = std::move(job).SetPath({"spec", "selector", "matchLabels", schema::kJobUidLabel},
                                   labels[schema::kJobUidLabel]);
    }
    return Status::Ok();
  }
};

}  // namespace

void AddWorkloadStrategies(std::map<std::string, std::unique_ptr<Strategy>>& strategies) {
  strategies["deployments.apps"] = std::make_unique<DeploymentStrategy>();
  strategies["replicasets.apps"] = std::make_unique<WorkloadStrategy>();
  strategies["statefulsets.apps"] = std::make_unique<WorkloadStrategy>();
  strategies["daemonsets.apps"] = std::make_unique<DaemonSetStrategy>();
  strategies["jobs.batch"] = std::make_unique<JobStrategy>();
  strategies["cronjobs.batch"] = std::make_unique<WorkloadStrategy>();
}

}  // namespace muster::apiserver
