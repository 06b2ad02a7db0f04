#include "training/mpi.h"

#include "base/strings.h"
#include "training/mpi_ssh.h"
#include "training/pods.h"

namespace muster::training {
namespace {

namespace resources = client::resources;

const client::Resource kRoles{"rbac.authorization.k8s.io", "v1", "roles"};
const client::Resource kRoleBindings{"rbac.authorization.k8s.io", "v1", "rolebindings"};

constexpr std::string_view kConfigFolder = "/etc/mpi";
constexpr std::string_view kKubectlFolder = "/opt/kube";
constexpr std::string_view kConfigVolume = "mpi-job-config";
constexpr std::string_view kKubectlVolume = "mpi-job-kubectl";

std::string Hostfile(const Job& job) {
  std::string text;
  for (const std::string& worker : WorkerNames(job))
    text += fmt::format("{} slots={}\n", worker, job.slots_per_worker);
  return text;
}

// mpirun calls it as it would rsh: the host, then the words of a shell command.
std::string KubexecScript(const Job& job) {
  const Replica* workers = job.Find(kWorker);
  return fmt::format(
      "#!/bin/sh\n"
      "pod=$1\n"
      "shift\n"
      "exec {}/kubectl exec \"$pod\" --container {} -- /bin/sh -c \"$*\"\n",
      kKubectlFolder, workers == nullptr ? "mpi" : workers->main_container);
}

// What elastic programs (Horovod) ask for the hosts that there are.
std::string DiscoverHostsScript(const Job& job, const std::vector<std::string>& running) {
  std::string text = "#!/bin/sh\n";
  for (const std::string& pod : running)
    text += fmt::format("echo {}:{}\n", pod, job.slots_per_worker);
  return text;
}

json::Value ExecHosts(const Job& job, const std::vector<std::string>& running) {
  return json::Obj({{"hostfile", Hostfile(job)},
                    {"kubexec.sh", KubexecScript(job)},
                    {"discover_hosts.sh", DiscoverHostsScript(job, running)}});
}

json::Value ConfigMapOf(const Job& job, const std::vector<std::string>& running) {
  return json::Obj({{"apiVersion", "v1"},
                    {"kind", "ConfigMap"},
                    {"metadata", MpiMetadata(job, job.name + "-config")},
                    {"data", job.ssh ? SshHosts(job, running) : ExecHosts(job, running)}});
}

json::Value ServiceAccountOf(const Job& job) {
  return json::Obj({{"apiVersion", "v1"},
                    {"kind", "ServiceAccount"},
                    {"metadata", MpiMetadata(job, job.name + "-launcher")}});
}

json::Value RoleOf(const Job& job) {
  const json::Value core = json::Strings({""});
  return json::Obj(
      {{"apiVersion", "rbac.authorization.k8s.io/v1"},
       {"kind", "Role"},
       {"metadata", MpiMetadata(job, job.name + "-launcher")},
       {"rules", json::List({json::Obj({{"verbs", json::Strings({"get", "list", "watch"})},
                                        {"apiGroups", core},
                                        {"resources", json::Strings({"pods"})}}),
                             json::Obj({{"verbs", json::Strings({"create", "get"})},
                                        {"apiGroups", core},
                                        {"resources", json::Strings({"pods/exec"})},
                                        {"resourceNames", json::Strings(WorkerNames(job))}})})}});
}

json::Value RoleBindingOf(const Job& job) {
  const std::string name = job.name + "-launcher";
  return json::Obj(
      {{"apiVersion", "rbac.authorization.k8s.io/v1"},
       {"kind", "RoleBinding"},
       {"metadata", MpiMetadata(job, name)},
       {"roleRef",
        json::Obj({{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", name}})},
       {"subjects", json::List({json::Obj(
                        {{"kind", "ServiceAccount"}, {"name", name}, {"namespace", job.ns}})})}});
}

json::Value Mount(std::string_view volume, std::string_view path) {
  return json::Obj({{"name", volume}, {"mountPath", path}});
}

// Upstream's is an image of its own; here kubectl is a program of the node, like all of image none.
json::Value KubectlDelivery() {
  const std::string script = fmt::format(
      "kubectl=$(command -v kubectl) || {{ echo 'an MPIJob of kubeflow.org/v1 starts its ranks by "
      "kubectl exec, and this node has no kubectl: install it, or give the Launcher an init "
      "container {} that puts one into {}' >&2; exit 1; }}; cp \"$kubectl\" {}/kubectl",
      kKubectlDelivery, kKubectlFolder, kKubectlFolder);
  return json::Obj({{"name", kKubectlDelivery},
                    {"image", "none"},
                    {"command", json::Strings({"/bin/sh", "-c", script})},
                    {"terminationMessagePolicy", "FallbackToLogsOnError"},
                    {"volumeMounts", json::List({Mount(kKubectlVolume, kKubectlFolder)})}});
}

// mpirun does not ask twice, so it begins when all workers run.
json::Value WaitForWorkers(const json::Value& image) {
  const std::string script = fmt::format(
      "cut -d' ' -f1 {0}/hostfile | while read -r pod; do {1}/kubectl wait --timeout=-1s "
      "--for=jsonpath='{{.status.phase}}'=Running \"pod/$pod\" || exit 1; done",
      kConfigFolder, kKubectlFolder);
  return json::Obj({{"name", "wait-for-workers"},
                    {"image", image},
                    {"command", json::Strings({"/bin/sh", "-c", script})},
                    {"terminationMessagePolicy", "FallbackToLogsOnError"},
                    {"volumeMounts", json::List({Mount(kKubectlVolume, kKubectlFolder),
                                                 Mount(kConfigVolume, kConfigFolder)})}});
}

json::Value InitContainersOf(const Replica& launcher, const json::Value& spec) {
  json::Value containers{json::Array()};
  bool brought = false;
  for (const json::Value& container : spec["initContainers"].items()) {
    const bool brings = container["name"].AsString() == kKubectlDelivery;
    brought |= brings;
    containers = containers.Append(
        brings ? container.Set("volumeMounts", container["volumeMounts"].Append(
                                                   Mount(kKubectlVolume, kKubectlFolder)))
               : container);
  }
  if (!brought) containers = containers.Append(KubectlDelivery());
  json::Value image = "none";
  for (const json::Value& container : spec["containers"].items()) {
    if (container["name"].AsString() == launcher.main_container) image = container["image"];
  }
  return containers.Append(WaitForWorkers(image));
}

json::Value ConfigVolume(const Job& job) {
  constexpr int64_t kReadAndExecute = 0555;
  const json::Value config =
      json::Obj({{"name", job.name + "-config"}, {"defaultMode", kReadAndExecute}});
  return json::Obj({{"name", kConfigVolume}, {"configMap", config}});
}

// The spec with `change` made to the container that MPI runs in.
template <typename Change>
json::Value WithMainContainer(const Replica& replica, json::Value spec, const Change& change) {
  json::Array containers;
  for (const json::Value& container : spec["containers"].items()) {
    const bool main = container["name"].AsString() == replica.main_container;
    containers.push_back(main ? change(container) : container);
  }
  return spec.Set("containers", json::Value(std::move(containers)));
}

json::Value WithMount(const json::Value& container, std::string_view volume,
                      std::string_view path) {
  return container.Set("volumeMounts", container["volumeMounts"].Append(Mount(volume, path)));
}

json::Value WithLauncher(const Job& job, const Replica& launcher, json::Value spec) {
  const json::Value kubectl = json::Obj({{"name", kKubectlVolume}, {"emptyDir", json::Obj()}});
  spec = spec.Set("initContainers", InitContainersOf(launcher, spec))
             .Set("volumes", spec["volumes"].Append(kubectl));
  if (spec["serviceAccountName"].AsString().empty())
    spec = spec.Set("serviceAccountName", job.name + "-launcher");
  return WithMainContainer(launcher, std::move(spec), [](const json::Value& container) {
    return WithMount(container, kKubectlVolume, kKubectlFolder);
  });
}

// There for others to execute in.
json::Value WithIdleCommand(const Replica& worker, json::Value spec) {
  return WithMainContainer(worker, std::move(spec), [](const json::Value& container) {
    const bool idle = container["command"].empty() && container["args"].empty();
    return idle ? container.Set("command", json::Strings({"sleep", "365d"})) : container;
  });
}

}  // namespace

json::Value MpiMetadata(const Job& job, const std::string& name) {
  return json::Obj({{"name", name},
                    {"namespace", job.ns},
                    {"labels", json::Obj({{std::string(kJobNameLabel), job.name}})},
                    {"ownerReferences", OwnerReferencesTo(job)}});
}

std::vector<std::string> WorkerNames(const Job& job) {
  std::vector<std::string> names;
  const Replica* workers = job.Find(kWorker);
  for (int64_t i = 0; workers != nullptr && i < workers->count; ++i)
    names.push_back(ReplicaName(job.name, workers->LowerType(), i));
  return names;
}

bool IsMpi(const Job& job) { return job.kind->kind == "MPIJob"; }

const std::vector<client::Resource>& MpiResources() {
  static const std::vector<client::Resource> all = {
      resources::kConfigMaps, resources::kServiceAccounts, kRoles,
      kRoleBindings,          resources::kSecrets,         resources::kServices};
  return all;
}

std::string MpiObjectName(const Job& job, const client::Resource& resource) {
  if (resource == resources::kConfigMaps) return job.name + "-config";
  if (resource == resources::kSecrets) return job.ssh ? job.name + "-ssh" : "";
  if (resource == resources::kServices) return job.ssh ? job.name : "";
  return job.ssh ? "" : job.name + "-launcher";
}

std::vector<MpiObject> MpiObjectsOf(const Job& job, const std::vector<std::string>& running,
                                    const net::SshKeyPair& key) {
  const MpiObject config{resources::kConfigMaps, ConfigMapOf(job, running), "data"};
  if (job.ssh) {
    return {config,
            {resources::kSecrets, SshSecret(job, key), ""},
            {resources::kServices, SshService(job), ""}};
  }
  return {config,
          {resources::kServiceAccounts, ServiceAccountOf(job), ""},
          {kRoles, RoleOf(job), "rules"},
          {kRoleBindings, RoleBindingOf(job), ""}};
}

std::vector<EnvVar> MpiEnv(const Job& job, const Replica& replica) {
  if (job.ssh) return SshEnv(job, replica);
  if (!replica.leads) return {};
  const std::string script = fmt::format("{}/kubexec.sh", kConfigFolder);
  const std::string hostfile = fmt::format("{}/hostfile", kConfigFolder);
  return {{"OMPI_MCA_plm_rsh_agent", script},
          // Beyond 64 workers the daemons would start each other, and have no kubectl.
          {"OMPI_MCA_plm_rsh_no_tree_spawn", "1"},
          {"OMPI_MCA_orte_default_hostfile", hostfile},
          {"I_MPI_HYDRA_BOOTSTRAP", "rsh"},
          {"I_MPI_HYDRA_BOOTSTRAP_EXEC", script},
          {"I_MPI_HYDRA_HOST_FILE", hostfile},
          // It computes nothing: devices that the node gives to whoever asks for none are not its.
          {"NVIDIA_VISIBLE_DEVICES", ""},
          {"NVIDIA_DRIVER_CAPABILITIES", ""}};
}

json::Value WithMpi(const Job& job, const Replica& replica, int64_t index, json::Value spec) {
  if (job.ssh) {
    spec = WithSsh(job, replica, index, std::move(spec));
    if (!replica.leads) return spec;
  } else {
    spec = replica.leads ? WithLauncher(job, replica, std::move(spec))
                         : WithIdleCommand(replica, std::move(spec));
  }
  // OpenMPI's daemons look for the script of the launcher, too.
  spec = spec.Set("volumes", spec["volumes"].Append(ConfigVolume(job)));
  return WithMainContainer(replica, std::move(spec), [](const json::Value& container) {
    return WithMount(container, kConfigVolume, kConfigFolder);
  });
}

}  // namespace muster::training
