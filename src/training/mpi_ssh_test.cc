#include "training/mpi_ssh.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "training/job_pass.h"
#include "training/mpi.h"
#include "training/test_jobs.h"

namespace muster::training {
namespace {

const Time kNow = *ParseTime("2026-01-02T03:04:05Z");

json::Value SshJob(const char* more = "{}") {
  json::Value job = Yaml(R"(
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: pi, namespace: d, uid: u6, resourceVersion: "7"}
spec:
  slotsPerWorker: 2
  mpiImplementation: OpenMPI
  sshAuthMountPath: /home/mpiuser/.ssh
  launcherCreationPolicy: AtStartup
  mpiReplicaSpecs:
    Launcher:
      restartPolicy: OnFailure
      template: {spec: {containers: [{name: mpi-launcher, image: l, command: [mpirun, pi]}]}}
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: mpi-worker, image: w}]}}
)");
  const json::Value fields = Yaml(more);
  for (const json::Member& field : fields.members())
    job = job.SetPath({"spec", field.first}, field.second);
  return job;
}

json::Value PodFor(const json::Value& object, std::string_view type, int64_t index = 0) {
  const Job job = Parsed(object);
  return MakePod(job, *job.Find(type), index, 0);
}

json::Value EnvFor(const json::Value& object, std::string_view type) {
  json::Value out = json::Obj();
  const json::Value pod = PodFor(object, type);
  for (const json::Value& entry : pod["spec"]["containers"].At(0)["env"].items())
    out = out.Set(entry["name"].AsString(), entry["value"]);
  return out;
}

TEST(MpiSsh, HostsAreNamedUnderOneService) {
  const json::Value hosts = SshHosts(Parsed(SshJob()), {"pi-worker-0"});
  EXPECT_EQ(hosts["hostfile"].AsString(),
            "pi-worker-0.pi.d.svc slots=2\npi-worker-1.pi.d.svc slots=2\n");
  EXPECT_EQ(hosts["discover_hosts.sh"].AsString(), "#!/bin/sh\necho pi-worker-0.pi.d.svc\n");
  const Job intel = Parsed(SshJob("{mpiImplementation: Intel, runLauncherAsWorker: true}"));
  EXPECT_EQ(SshHosts(intel, {})["hostfile"].AsString(),
            "pi-launcher.pi.d.svc:2\npi-worker-0.pi.d.svc:2\npi-worker-1.pi.d.svc:2\n");
  const json::Value service = SshService(Parsed(SshJob()));
  EXPECT_EQ(service["metadata"]["name"].AsString(), "pi");
  EXPECT_EQ(service["spec"]["selector"], Yaml(R"({training.kubeflow.org/job-name: pi,
    training.kubeflow.org/operator-name: mpi-operator})"));
}

TEST(MpiSsh, TheSecretHoldsTheKeyPair) {
  const json::Value secret = SshSecret(Parsed(SshJob()), {"private", "public"});
  EXPECT_EQ(secret["metadata"]["name"].AsString(), "pi-ssh");
  EXPECT_EQ(secret["type"].AsString(), "kubernetes.io/ssh-auth");
  EXPECT_EQ(secret["data"]["ssh-privatekey"].AsString(), Base64Encode("private"));
  EXPECT_EQ(secret["data"]["ssh-publickey"].AsString(), Base64Encode("public"));
}

TEST(MpiSsh, EnvironmentOfEachImplementation) {
  EXPECT_EQ(EnvFor(SshJob(), "Launcher"), Yaml(R"(
{K_MPI_JOB_ROLE: launcher, OMPI_MCA_orte_keep_fqdn_hostnames: "true",
 OMPI_MCA_orte_default_hostfile: /etc/mpi/hostfile,
 OMPI_MCA_plm_rsh_args: "-o ConnectionAttempts=10", OMPI_MCA_orte_set_default_slots: "2",
 NVIDIA_VISIBLE_DEVICES: "", NVIDIA_DRIVER_CAPABILITIES: ""})"));
  EXPECT_EQ(EnvFor(SshJob("{mpiImplementation: Intel}"), "Launcher"), Yaml(R"(
{K_MPI_JOB_ROLE: launcher, I_MPI_HYDRA_HOST_FILE: /etc/mpi/hostfile, I_MPI_PERHOST: "2",
 I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS: "-o ConnectionAttempts=10",
 NVIDIA_VISIBLE_DEVICES: "", NVIDIA_DRIVER_CAPABILITIES: ""})"));
  EXPECT_EQ(EnvFor(SshJob("{mpiImplementation: MPICH, runLauncherAsWorker: true}"), "Launcher"),
            Yaml(R"(
{K_MPI_JOB_ROLE: launcher, HYDRA_HOST_FILE: /etc/mpi/hostfile,
 HYDRA_LAUNCH_EXTRA_ARGS: "-o ConnectionAttempts=10"})"));
  EXPECT_EQ(EnvFor(SshJob(), "Worker"), Yaml("{K_MPI_JOB_ROLE: worker}"));
}

TEST(MpiSsh, PodsAreReachedByNameAndHoldTheKeys) {
  const json::Value pod = PodFor(SshJob(), "Worker", 1);
  EXPECT_EQ(pod["metadata"]["labels"], Yaml(R"({training.kubeflow.org/job-name: pi,
    training.kubeflow.org/operator-name: mpi-operator, training.kubeflow.org/job-role: worker,
    training.kubeflow.org/replica-type: worker, training.kubeflow.org/replica-index: "1"})"));
  EXPECT_EQ(pod["metadata"]["ownerReferences"].At(0)["apiVersion"].AsString(),
            "kubeflow.org/v2beta1");
  EXPECT_EQ(pod["spec"]["hostname"].AsString(), "pi-worker-1");
  EXPECT_EQ(pod["spec"]["subdomain"].AsString(), "pi");
  const json::Value& worker = pod["spec"]["containers"].At(0);
  EXPECT_EQ(worker["command"], Yaml("[/usr/sbin/sshd, -De]"));
  EXPECT_EQ(worker["volumeMounts"], Yaml("[{name: ssh-auth, mountPath: /home/mpiuser/.ssh}]"));
  EXPECT_EQ(pod["spec"]["volumes"].At(0)["secret"], Yaml(R"(
{secretName: pi-ssh, defaultMode: 384, items: [{key: ssh-privatekey, path: id_rsa},
  {key: ssh-publickey, path: id_rsa.pub}, {key: ssh-publickey, path: authorized_keys}]})"));
  const json::Value launcher = PodFor(SshJob(), "Launcher")["spec"];
  EXPECT_EQ(launcher["containers"].At(0)["volumeMounts"],
            Yaml("[{name: ssh-auth, mountPath: /home/mpiuser/.ssh},"
                 " {name: mpi-job-config, mountPath: /etc/mpi}]"));
  EXPECT_FALSE(launcher.Has("initContainers"));
  EXPECT_FALSE(launcher.Has("serviceAccountName"));
}

std::vector<std::string> Made(const client::Reconciled& out) {
  std::vector<std::string> made;
  for (const client::Write& write : out.writes)
    if (write.verb == client::Write::Verb::kCreate)
      made.push_back(write.target.resource.plural + "/" + write.target.name);
  return made;
}

TEST(MpiSsh, NeedsAHostfileAKeyAndAService) {
  EXPECT_EQ(Made(ReconcileJob(Parsed(SshJob()), {}, kNow)),
            (std::vector<std::string>{"podgroups/pi", "configmaps/pi-config", "secrets/pi-ssh",
                                      "services/pi", "pods/pi-launcher", "pods/pi-worker-0",
                                      "pods/pi-worker-1"}));
}

TEST(MpiSsh, ALauncherMayWaitForReadyWorkers) {
  json::Value object = SshJob("{launcherCreationPolicy: WaitForWorkersReady}");
  EXPECT_EQ(PodGroupSpec(Parsed(object))["minMember"].AsInt(), 2);
  EXPECT_FALSE(PodGroupSpec(Parsed(object)).Has("minTaskMember"));
  JobChildren children;
  client::Reconciled out = ReconcileJob(Parsed(object), children, kNow);
  EXPECT_EQ(Made(out).size(), 6u) << "no launcher";
  object = object.Set("status", out.writes[0].body["status"]);
  for (const MpiObject& made : MpiObjectsOf(Parsed(object), {"pi-worker-0", "pi-worker-1"}))
    children.mpi_objects[made.resource.plural] = made.object;
  children.services = {children.mpi_objects["services"]};
  children.pod_group = MakePodGroup(Parsed(object));
  for (int64_t i = 0; i < 2; ++i) {
    children.pods.push_back(
        PodOf(object, "Worker", i, "Running").SetPath({"spec", "nodeName"}, "n"));
  }
  EXPECT_TRUE(Made(ReconcileJob(Parsed(object), children, kNow)).empty());
  for (json::Value& pod : children.pods)
    pod = pod.SetPath({"status", "conditions"}, Yaml("[{type: Ready, status: \"True\"}]"));
  out = ReconcileJob(Parsed(object), children, kNow);
  EXPECT_EQ(Made(out), (std::vector<std::string>{"pods/pi-launcher"}))
      << "and its absence is no lost pod";
  for (const client::Write& write : out.writes)
    EXPECT_NE(write.verb, client::Write::Verb::kDelete) << write.target.name;
}

TEST(MpiSsh, IsManagedByUsUnderEitherName) {
  const json::Value job =
      SshJob().SetPath({"spec", "runPolicy", "managedBy"}, "kubeflow.org/mpi-operator");
  EXPECT_FALSE(IsManagedElsewhere(job));
}

}  // namespace
}  // namespace muster::training
