#include "training/training_controller.h"

#include <memory>

#include "base/strings.h"
#include "training/distributed_training_controller.h"
#include "training/job.h"
#include "training/job_pass.h"
#include "training/mpi.h"
#include "training/training.h"

namespace muster::training {
namespace {

namespace resources = client::resources;

std::vector<json::Value> ChildrenOf(const client::Informer& informer, const Job& job) {
  std::vector<json::Value> children;
  for (const client::ObjectKey& key : client::ControlledBy(informer, job.uid)) {
    if (key.ns == job.ns) children.push_back(*informer.Find(key));
  }
  return children;
}

bool BelongsTo(const json::Value& object, const Job& job) {
  return client::ControllerOf(object)["uid"].AsString() == job.uid;
}

void FindMpiObjects(const client::View& view, const Job& job, JobChildren& children) {
  for (const client::Resource& resource : MpiResources()) {
    const std::string name = MpiObjectName(job, resource);
    if (name.empty()) continue;
    const json::Value* object = view.Of(resource).Find({job.ns, name});
    if (object == nullptr) continue;
    children.mpi_objects.emplace(resource.plural, *object);
    if (!BelongsTo(*object, job))
      children.taken.push_back(fmt::format("{} {:?}", resource.plural, name));
  }
}

JobChildren FindChildren(const client::View& view, const Job& job) {
  JobChildren children;
  const client::Informer& pods = view.Of(resources::kPods);
  const client::Informer& services = view.Of(resources::kServices);
  children.pods = ChildrenOf(pods, job);
  children.services = ChildrenOf(services, job);
  const json::Value* group = view.Of(resources::kPodGroups).Find({job.ns, job.name});
  if (group != nullptr) children.pod_group = *group;
  const json::Value* autoscaler =
      view.Of(resources::kHorizontalPodAutoscalers).Find({job.ns, job.name});
  if (autoscaler != nullptr) children.autoscaler = *autoscaler;
  if (job.elastic) {
    if (autoscaler != nullptr && !job.elastic->metrics.IsNull() && !BelongsTo(*autoscaler, job))
      children.taken.push_back(fmt::format("horizontalpodautoscalers \"{}\"", job.name));
    const auto service = job.elastic->ServiceFor(job.ns);
    if (service && services.Find({service->first, service->second}) == nullptr)
      children.missing_rendezvous = fmt::format("{}/{}", service->first, service->second);
  }
  if (IsMpi(job)) FindMpiObjects(view, job, children);
  for (const Replica& replica : job.replicas) {
    for (int64_t i = 0; i < replica.count; ++i) {
      const std::string name = ReplicaName(job.name, replica.LowerType(), i);
      const json::Value* pod = pods.Find({job.ns, name});
      if (pod != nullptr && !BelongsTo(*pod, job))
        children.taken.push_back(fmt::format("pods \"{}\"", name));
      const json::Value* service = services.Find({job.ns, name});
      if (service != nullptr && !BelongsTo(*service, job)) {
        children.taken.push_back(fmt::format("services \"{}\"", name));
      }
    }
  }
  return children;
}

}  // namespace

TrainingController::TrainingController(const schema::TrainingKind& kind)
    : kind_(kind), resource_(ResourceOf(kind)), name_(ToLower(kind.kind) + "-controller") {}

std::vector<client::Trigger> TrainingController::Setup(client::InformerSet& informers) {
  informers.Get(resource_, json::Fields::Whole());
  client::IndexByController(informers.Get(resources::kPods, ChildPodFields()));
  client::IndexByController(informers.Get(resources::kServices));
  informers.Get(resources::kPodGroups, {{"spec"}});
  informers.Get(resources::kHorizontalPodAutoscalers, {{"spec"}});
  std::vector<client::Trigger> triggers = {client::OnSelf(resource_)};
  if (kind_.kind == "MPIJob") {
    for (const client::Resource& resource : MpiResources()) {
      informers.Get(
          resource,
          {{"data", "hostfile"}, {"data", "kubexec.sh"}, {"data", "discover_hosts.sh"}, {"rules"}});
      triggers.push_back(client::OnControlledBy(resource, "MPIJob", "kubeflow.org"));
    }
  }
  for (const client::Resource& child :
       {resources::kPods, resources::kServices, resources::kPodGroups,
        resources::kHorizontalPodAutoscalers}) {
    triggers.push_back(client::OnControlledBy(child, std::string(kind_.kind), "kubeflow.org"));
  }
  return triggers;
}

client::Reconciled TrainingController::Reconcile(const client::View& view,
                                                 const client::Observations&,
                                                 const client::ObjectKey& key, Time now, uint64_t) {
  const json::Value* object = view.Of(resource_).Find(key);
  if (object == nullptr || (*object)["metadata"].Has("deletionTimestamp") ||
      IsManagedElsewhere(*object))
    return {};
  const Result<Job> job = ParseJob(kind_, *object);
  if (!job) return RefuseJob(kind_, *object, job.error(), now);
  JobChildren children = FindChildren(view, *job);
  if (job->ssh && !children.mpi_objects.contains(resources::kSecrets.plural))
    children.ssh_key = net::GenerateSshKey();
  return ReconcileJob(*job, children, now);
}

void AddAll(client::Runtime& runtime) {
  for (const schema::TrainingKind& kind : schema::TrainingKinds())
    runtime.Add(std::make_unique<TrainingController>(kind));
  runtime.Add(std::make_unique<DistributedTrainingController>());
}

}  // namespace muster::training
