#include "training/mpi_ssh.h"

#include "base/strings.h"
#include "training/mpi.h"
#include "training/pods.h"

namespace muster::training {
namespace {

constexpr std::string_view kKeyVolume = "ssh-auth";
constexpr std::string_view kPrivateKey = "ssh-privatekey";  // of a Secret of type ssh-auth
constexpr std::string_view kPublicKey = "ssh-publickey";
constexpr std::string_view kSshArguments = "-o ConnectionAttempts=10";
constexpr std::string_view kHostfilePath = "/etc/mpi/hostfile";

std::string HostOf(const Job& job, std::string_view pod) {
  return fmt::format("{}.{}.{}.svc", pod, job.name, job.ns);
}

std::string Hostfile(const Job& job) {
  const std::string_view slots = job.ssh->implementation == "OpenMPI" ? " slots=" : ":";
  std::vector<std::string> pods;
  if (job.ssh->launcher_works) pods.push_back(ReplicaName(job.name, "launcher", 0));
  for (std::string& worker : WorkerNames(job)) pods.push_back(std::move(worker));
  std::string text;
  for (const std::string& pod : pods)
    text += fmt::format("{}{}{}\n", HostOf(job, pod), slots, job.slots_per_worker);
  return text;
}

json::Value KeyFile(std::string_view key, std::string_view path) {
  return json::Obj({{"key", key}, {"path", path}});
}

json::Value KeyVolume(const Job& job) {
  constexpr int64_t kOwnerOnly = 0600;
  const json::Value secret = json::Obj(
      {{"secretName", job.name + "-ssh"},
       {"defaultMode", kOwnerOnly},
       {"items", json::List({KeyFile(kPrivateKey, "id_rsa"), KeyFile(kPublicKey, "id_rsa.pub"),
                             KeyFile(kPublicKey, "authorized_keys")})}});
  return json::Obj({{"name", kKeyVolume}, {"secret", secret}});
}

// Of mpirun: where the hosts are, how ssh is to try, how many ranks a host takes.
std::vector<EnvVar> ImplementationEnv(const Job& job) {
  const std::string slots = std::to_string(job.slots_per_worker);
  const std::string hostfile(kHostfilePath);
  const std::string arguments(kSshArguments);
  if (job.ssh->implementation == "Intel") {
    return {{"I_MPI_HYDRA_HOST_FILE", hostfile},
            {"I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", arguments},
            {"I_MPI_PERHOST", slots}};
  }
  if (job.ssh->implementation == "MPICH")
    return {{"HYDRA_HOST_FILE", hostfile}, {"HYDRA_LAUNCH_EXTRA_ARGS", arguments}};
  return {{"OMPI_MCA_orte_keep_fqdn_hostnames", "true"},
          {"OMPI_MCA_orte_default_hostfile", hostfile},
          {"OMPI_MCA_plm_rsh_args", arguments},
          {"OMPI_MCA_orte_set_default_slots", slots}};
}

}  // namespace

json::Value SshHosts(const Job& job, const std::vector<std::string>& running) {
  std::string script = "#!/bin/sh\n";
  for (const std::string& pod : running) script += fmt::format("echo {}\n", HostOf(job, pod));
  return json::Obj({{"hostfile", Hostfile(job)}, {"discover_hosts.sh", script}});
}

json::Value SshSecret(const Job& job, const net::SshKeyPair& key) {
  return json::Obj(
      {{"apiVersion", "v1"},
       {"kind", "Secret"},
       {"metadata", MpiMetadata(job, job.name + "-ssh")},
       {"type", "kubernetes.io/ssh-auth"},
       {"data", json::Obj({{std::string(kPrivateKey), Base64Encode(key.private_pem)},
                           {std::string(kPublicKey), Base64Encode(key.public_line)}})}});
}

json::Value SshService(const Job& job) {
  const json::Value selector = json::Obj({{std::string(kJobNameLabel), job.name},
                                          {std::string(kOperatorNameLabel), job.OperatorName()}});
  return json::Obj({{"apiVersion", "v1"},
                    {"kind", "Service"},
                    {"metadata", MpiMetadata(job, job.name)},
                    {"spec", json::Obj({{"clusterIP", "None"},
                                        {"selector", selector},
                                        {"publishNotReadyAddresses", true}})}});
}

std::vector<EnvVar> SshEnv(const Job& job, const Replica& replica) {
  std::vector<EnvVar> env{{"K_MPI_JOB_ROLE", replica.LowerType()}};
  if (!replica.leads) return env;
  for (EnvVar& variable : ImplementationEnv(job)) env.push_back(std::move(variable));
  if (!job.ssh->launcher_works) {
    env.emplace_back("NVIDIA_VISIBLE_DEVICES", "");
    env.emplace_back("NVIDIA_DRIVER_CAPABILITIES", "");
  }
  return env;
}

json::Value WithSsh(const Job& job, const Replica& replica, int64_t index, json::Value spec) {
  spec = spec.Set("hostname", ReplicaName(job.name, replica.LowerType(), index))
             .Set("subdomain", job.name)
             .Set("volumes", spec["volumes"].Append(KeyVolume(job)));
  json::Array containers;
  for (const json::Value& container : spec["containers"].items()) {
    if (container["name"].AsString() != replica.main_container) {
      containers.push_back(container);
      continue;
    }
    const json::Value mount = json::Obj({{"name", kKeyVolume}, {"mountPath", job.ssh->mount_path}});
    json::Value main = container.Set("volumeMounts", container["volumeMounts"].Append(mount));
    if (!replica.leads && main["command"].empty() && main["args"].empty())
      main = main.Set("command", json::Strings({"/usr/sbin/sshd", "-De"}));
    containers.push_back(std::move(main));
  }
  return spec.Set("containers", json::Value(std::move(containers)));
}

}  // namespace muster::training
