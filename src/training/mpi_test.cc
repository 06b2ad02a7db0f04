#include "training/mpi.h"

#include <gtest/gtest.h>

#include "training/job_pass.h"
#include "training/test_jobs.h"

namespace muster::training {
namespace {

const Time kNow = *ParseTime("2026-01-02T03:04:05Z");

json::Value MpiJob() {
  return Yaml(R"(
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: pi, namespace: d, uid: u5, resourceVersion: "7"}
spec:
  slotsPerWorker: 2
  runPolicy: {cleanPodPolicy: Running}
  mpiReplicaSpecs:
    Launcher:
      template: {spec: {containers: [{name: mpi, image: l, command: [mpirun, pi]}]}}
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: mpi, image: w}]}}
)");
}

json::Value PodFor(const json::Value& object, std::string_view type, int64_t index = 0) {
  const Job job = Parsed(object);
  return MakePod(job, *job.Find(type), index, 0);
}

std::vector<std::string> NamesOf(const json::Value& list) {
  std::vector<std::string> names;
  for (const json::Value& item : list.items()) names.push_back(item["name"].Str());
  return names;
}

TEST(Mpi, TheLauncherFindsItsWorkers) {
  const std::vector<MpiObject> objects = MpiObjectsOf(Parsed(MpiJob()), {"pi-worker-1"});
  ASSERT_EQ(objects.size(), 4u);
  const json::Value& config = objects[0].object;
  EXPECT_EQ(config["metadata"]["name"].AsString(), "pi-config");
  EXPECT_EQ(config["data"]["hostfile"].AsString(), "pi-worker-0 slots=2\npi-worker-1 slots=2\n");
  EXPECT_EQ(config["data"]["discover_hosts.sh"].AsString(), "#!/bin/sh\necho pi-worker-1:2\n");
  EXPECT_NE(config["data"]["kubexec.sh"].AsString().find(
                R"(exec /opt/kube/kubectl exec "$pod" --container mpi -- /bin/sh -c "$*")"),
            std::string::npos);
  for (const MpiObject& object : objects) {
    EXPECT_EQ(object.object["metadata"]["ownerReferences"].At(0)["uid"].AsString(), "u5");
    EXPECT_EQ(object.object["metadata"]["name"].AsString(),
              MpiObjectName(Parsed(MpiJob()), object.resource));
  }
}

TEST(Mpi, TheLauncherMayExecuteInItsWorkersAndNowhereElse) {
  const json::Value role = MpiObjectsOf(Parsed(MpiJob()), {})[2].object;
  EXPECT_EQ(role["rules"], Yaml(R"(
- {verbs: [get, list, watch], apiGroups: [""], resources: [pods]}
- {verbs: [create, get], apiGroups: [""], resources: [pods/exec],
   resourceNames: [pi-worker-0, pi-worker-1]})"));
  const json::Value binding = MpiObjectsOf(Parsed(MpiJob()), {})[3].object;
  EXPECT_EQ(binding["subjects"], Yaml("[{kind: ServiceAccount, name: pi-launcher, namespace: d}]"));
}

TEST(Mpi, LauncherPod) {
  const json::Value pod = PodFor(MpiJob(), "Launcher");
  EXPECT_EQ(pod["metadata"]["name"].AsString(), "pi-launcher") << "without a number";
  const json::Value& spec = pod["spec"];
  EXPECT_EQ(spec["serviceAccountName"].AsString(), "pi-launcher");
  EXPECT_EQ(spec["restartPolicy"].AsString(), "Never");
  EXPECT_EQ(NamesOf(spec["initContainers"]),
            (std::vector<std::string>{"kubectl-delivery", "wait-for-workers"}));
  EXPECT_EQ(spec["initContainers"].At(1)["image"].AsString(), "l");
  EXPECT_EQ(NamesOf(spec["volumes"]),
            (std::vector<std::string>{"mpi-job-kubectl", "mpi-job-config"}));
  const json::Value& mpi = spec["containers"].At(0);
  EXPECT_EQ(mpi["env"].At(0), Yaml("{name: OMPI_MCA_plm_rsh_agent, value: /etc/mpi/kubexec.sh}"));
  EXPECT_EQ(mpi["env"].At(2),
            Yaml("{name: OMPI_MCA_orte_default_hostfile, value: /etc/mpi/hostfile}"));
  EXPECT_EQ(mpi["volumeMounts"], Yaml(R"([{name: mpi-job-kubectl, mountPath: /opt/kube},
                                          {name: mpi-job-config, mountPath: /etc/mpi}])"));
}

TEST(Mpi, ATemplateMayBringItsOwnKubectlAndAccount) {
  const json::Value job =
      MpiJob().SetPath({"spec", "mpiReplicaSpecs", "Launcher", "template", "spec"}, Yaml(R"(
serviceAccountName: mine
initContainers: [{name: kubectl-delivery, image: k, command: [cp, kubectl, /opt/kube]}]
containers: [{name: sidecar, image: s}, {name: mpi, image: l}])"));
  const json::Value spec = PodFor(job, "Launcher")["spec"];
  EXPECT_EQ(spec["serviceAccountName"].AsString(), "mine");
  ASSERT_EQ(NamesOf(spec["initContainers"]),
            (std::vector<std::string>{"kubectl-delivery", "wait-for-workers"}));
  EXPECT_EQ(spec["initContainers"].At(0), Yaml(R"(
{name: kubectl-delivery, image: k, command: [cp, kubectl, /opt/kube],
 volumeMounts: [{name: mpi-job-kubectl, mountPath: /opt/kube}]})"));
  EXPECT_EQ(spec["containers"].At(0), Yaml("{name: sidecar, image: s}")) << "left alone";
}

TEST(Mpi, WorkersIdleUnlessTheyHaveACommand) {
  const json::Value spec = PodFor(MpiJob(), "Worker", 1)["spec"];
  EXPECT_EQ(spec["containers"].At(0)["command"], Yaml("[sleep, 365d]"));
  EXPECT_EQ(spec["containers"].At(0)["volumeMounts"],
            Yaml("[{name: mpi-job-config, mountPath: /etc/mpi}]"));
  const json::Value own =
      MpiJob().SetPath({"spec", "mpiReplicaSpecs", "Worker", "template", "spec", "containers"},
                       Yaml("[{name: any, image: w, args: [serve]}]"));
  EXPECT_FALSE(PodFor(own, "Worker")["spec"]["containers"].At(0).Has("command"));
  EXPECT_EQ(Parsed(own).Find("Worker")->main_container, "any") << "the first, if none is named mpi";
}

TEST(Mpi, WhatCannotRun) {
  const schema::TrainingKind& kind = *schema::FindTrainingKind("MPIJob");
  const json::Value headless = MpiJob().RemovePath({"spec", "mpiReplicaSpecs", "Launcher"});
  ASSERT_FALSE(ParseJob(kind, headless).has_value());
  EXPECT_NE(ParseJob(kind, headless).error().message().find("has no Launcher"), std::string::npos);
  EXPECT_FALSE(ParseJob(kind, MpiJob().SetPath({"spec", "mainContainer"}, "x")).has_value());
}

const json::Value& StatusIn(const client::Reconciled& out) {
  static const json::Value kNone;
  for (const client::Write& write : out.writes)
    if (write.target.subresource == "status") return write.body["status"];
  return kNone;
}

bool Holds(const json::Value& status, std::string_view type) {
  for (const json::Value& condition : status["conditions"].items()) {
    if (condition["type"].AsString() == type) return condition["status"].AsString() == "True";
  }
  return false;
}

TEST(Mpi, RunsWhenAllRunAndEndsWithTheLauncher) {
  json::Value object = MpiJob();
  JobChildren children;
  client::Reconciled out = ReconcileJob(Parsed(object), children, kNow);
  std::vector<std::string> made;
  for (const client::Write& write : out.writes)
    if (write.verb == client::Write::Verb::kCreate)
      made.push_back(write.target.resource.plural + "/" + write.target.name);
  EXPECT_EQ(made, (std::vector<std::string>{"podgroups/pi", "configmaps/pi-config",
                                            "serviceaccounts/pi-launcher", "roles/pi-launcher",
                                            "rolebindings/pi-launcher", "pods/pi-launcher",
                                            "pods/pi-worker-0", "pods/pi-worker-1"}))
      << "no services";
  object = object.Set("status", StatusIn(out));
  children.pod_group = MakePodGroup(Parsed(object));
  for (const MpiObject& made_object : MpiObjectsOf(Parsed(object), {}))
    children.mpi_objects[made_object.resource.plural] = made_object.object;
  children.pods = {PodOf(object, "Launcher", 0, "Pending"), PodOf(object, "Worker", 0, "Running"),
                   PodOf(object, "Worker", 1, "Running")};
  out = ReconcileJob(Parsed(object), children, kNow);
  EXPECT_FALSE(Holds(StatusIn(out), "Running"));
  const auto patch =
      std::ranges::find(out.writes, client::Write::Verb::kPatchMerge, &client::Write::verb);
  ASSERT_NE(patch, out.writes.end()) << "discover_hosts.sh follows the workers";
  EXPECT_EQ(patch->body["data"]["discover_hosts.sh"].AsString(),
            "#!/bin/sh\necho pi-worker-0:2\necho pi-worker-1:2\n");
  children.pods[0] = PodOf(object, "Launcher", 0, "Running");
  EXPECT_TRUE(Holds(StatusIn(ReconcileJob(Parsed(object), children, kNow)), "Running"));
  children.pods[0] = PodOf(object, "Launcher", 0, "Succeeded");
  EXPECT_TRUE(Holds(StatusIn(ReconcileJob(Parsed(object), children, kNow)), "Succeeded"));
  children.pods[0] = PodOf(object, "Launcher", 0, "Failed");
  EXPECT_TRUE(Holds(StatusIn(ReconcileJob(Parsed(object), children, kNow)), "Failed"));
}

}  // namespace
}  // namespace muster::training
