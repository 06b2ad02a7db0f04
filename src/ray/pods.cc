#include "ray/pods.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "base/strings.h"
#include "cluster/pod_info.h"
#include "controllers/pods/ownership.h"
#include "controllers/pods/template_hash.h"
#include "ray/autoscaler.h"
#include "ray/start_command.h"
#include "schema/names.h"

namespace muster::ray {
namespace {

// Of the base of a pod's name: what upstream leaves of long names.
constexpr size_t kMaxPodBaseLength = 50;

json::Value EnvFromField(std::string_view name, std::string_view path) {
  return json::Obj(
      {{"name", name}, {"valueFrom", json::Obj({{"fieldRef", json::Obj({{"fieldPath", path}})}})}});
}

json::Value Env(std::string_view name, std::string_view value) {
  return json::Obj({{"name", name}, {"value", value}});
}

// What the user sets stays as it is.
json::Value WithEnv(json::Value container, const json::Array& variables) {
  json::Value env = container["env"];
  for (const json::Value& variable : variables) {
    const auto& present = env.items();
    const bool taken = std::any_of(present.begin(), present.end(), [&](const json::Value& entry) {
      return entry["name"] == variable["name"];
    });
    if (!taken) env = std::move(env).Append(variable);
  }
  return std::move(container).Set("env", std::move(env));
}

json::Array EnvOf(const Cluster& cluster, bool head, const std::string& command) {
  const std::string port = cluster.head["rayStartParams"]["port"].Str(std::to_string(kGcsPort));
  const std::string host = head ? "127.0.0.1" : cluster.HeadAddress();
  json::Array env = {
      EnvFromField("RAY_CLUSTER_NAME", "metadata.labels['ray.io/cluster']"),
      EnvFromField("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
      EnvFromField("RAY_CLOUD_INSTANCE_ID", "metadata.name"),
      EnvFromField("RAY_NODE_TYPE_NAME", "metadata.labels['ray.io/group']"),
      Env("KUBERAY_GEN_RAY_START_CMD", command),
      Env("RAY_PORT", port),
      Env("RAY_ADDRESS", fmt::format("{}:{}", host, port)),
      Env("RAY_USAGE_STATS_KUBERAY_IN_USE", "1"),
      Env("RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "1"),
  };
  if (!head) {
    env.push_back(Env("FQ_RAY_IP", cluster.HeadAddress()));
    env.push_back(Env("RAY_IP", cluster.HeadServiceName()));
  } else if (IsAutoscalerV2(cluster)) {
    env.push_back(Env("RAY_enable_autoscaler_v2", "1"));
  }
  return env;
}

bool Mounts(const json::Value& container, std::string_view path) {
  const auto& mounts = container["volumeMounts"].items();
  return std::any_of(mounts.begin(), mounts.end(), [path](const json::Value& mount) {
    return mount["mountPath"].AsString() == path;
  });
}

json::Value HttpProbe(std::string_view path, int64_t port, int64_t delay, int64_t failures) {
  return json::Obj({{"httpGet", json::Obj({{"path", path}, {"port", port}})},
                    {"initialDelaySeconds", delay},
                    {"timeoutSeconds", 5},
                    {"periodSeconds", 5},
                    {"failureThreshold", failures}});
}

// A head is ready when it can be asked for the cluster, a worker when its own part is; where the
// head has no dashboard, it counts as a worker.
json::Value WithProbes(const json::Value& params, bool head, json::Value container) {
  const json::Value& agent_port = params["dashboard-agent-listen-port"];
  const int64_t port = ParseInt(agent_port.AsString()).value_or(kAgentPort);
  const bool dashboard = head && ToLower(params["include-dashboard"].Str("true")) == "true";
  const std::string local = "/api/local_raylet_healthz";
  if (!container.Has("readinessProbe")) {
    const int64_t at = ParseInt(params["dashboard-port"].AsString()).value_or(kDashboardPort);
    container = std::move(container).Set(
        "readinessProbe",
        dashboard ? HttpProbe("/api/gcs_healthz", at, 1, 10) : HttpProbe(local, port, 1, 10));
  }
  if (!container.Has("livenessProbe"))
    container = std::move(container).Set("livenessProbe", HttpProbe(local, port, 30, 120));
  return container;
}

// Ray keeps its objects there; without it they are files.
json::Value WithSharedMemory(json::Value spec, json::Value& container) {
  if (Mounts(container, "/dev/shm")) return spec;
  json::Value volume = json::Obj({{"medium", "Memory"}});
  const json::Value& memory = container["resources"]["requests"]["memory"];
  if (!memory.IsNull()) volume = std::move(volume).Set("sizeLimit", memory);
  spec = spec.Set(
      "volumes",
      spec["volumes"].Append(json::Obj({{"name", "shared-mem"}, {"emptyDir", std::move(volume)}})));
  const json::Value mount = json::Obj({{"name", "shared-mem"}, {"mountPath", "/dev/shm"}});
  container = container.Set("volumeMounts", container["volumeMounts"].Append(mount));
  return spec;
}

json::Value WithCommand(const json::Value& pod_template, json::Value container,
                        const std::string& command) {
  const json::Value& annotation = pod_template["metadata"]["annotations"][kOwnCommandAnnotation];
  if (annotation.AsString() == "true") return container;
  // What the user's container would run comes after the node has started, as upstream.
  std::string user;
  for (const char* member : {"command", "args"}) {
    for (const json::Value& word : container[member].items())
      user += fmt::format("{}{}", user.empty() ? "" : " ", word.AsString());
  }
  const std::string all = user.empty() ? command : fmt::format("{} && {}", command, user);
  return std::move(container)
      .Set("command", json::Strings({"/bin/bash", "-c", "--"}))
      .Set("args", json::Strings({all}));
}

// The head's port is open once it can be joined. Bash alone can ask: no Python that needs memory.
json::Value WaitForHead(const Cluster& cluster, const json::Value& container) {
  const std::string port = cluster.head["rayStartParams"]["port"].Str(std::to_string(kGcsPort));
  const std::string script = fmt::format(
      "until (exec 3<>/dev/tcp/{}/{}) 2>/dev/null; do echo waiting for the head; sleep 1; done",
      cluster.HeadAddress(), port);
  const json::Value amounts = json::Obj({{"cpu", "100m"}, {"memory", "64Mi"}});
  json::Value wait =
      json::Obj({{"name", "wait-gcs-ready"},
                 {"image", container["image"]},
                 {"command", json::Strings({"/bin/bash", "-c", "--"})},
                 {"args", json::Strings({script})},
                 {"resources", json::Obj({{"requests", amounts}, {"limits", amounts}})}});
  for (const char* member : {"imagePullPolicy", "securityContext"}) {
    if (container.Has(member)) wait = std::move(wait).Set(member, container[member]);
  }
  return wait;
}

json::Value LabelsOf(const Cluster& cluster, std::string_view type, std::string_view group) {
  return json::Obj(
      {{std::string(kClusterLabel), cluster.name},
       {std::string(kNodeTypeLabel), type},
       {std::string(kGroupLabel), group},
       {std::string(kIdentifierLabel),
        fmt::format("{}-{}", cluster.name, type).substr(0, schema::kMaxDnsLabelLength)},
       {std::string(kIsRayNodeLabel), "yes"},
       {"app.kubernetes.io/name", "kuberay"},
       {"app.kubernetes.io/created-by", "kuberay-operator"}});
}

json::Value MetadataOf(const Cluster& cluster, const json::Value& pod_template,
                       const std::string& name, std::string_view type, std::string_view group,
                       const std::string& hash) {
  const json::Value& from = pod_template["metadata"];
  json::Value labels = from["labels"];
  const json::Value ours = LabelsOf(cluster, type, group);
  for (const auto& [key, value] : ours.members()) labels = std::move(labels).Set(key, value);
  for (const std::string_view key : {kOriginNameLabel, kOriginKindLabel}) {
    const json::Value& origin = cluster.object["metadata"]["labels"][key];
    if (!origin.IsNull()) labels = std::move(labels).Set(key, origin);
  }
  json::Value metadata =
      json::Obj({{"name", name},
                 {"namespace", cluster.ns},
                 {"labels", std::move(labels)},
                 {"annotations", from["annotations"]
                                     .Set(cluster::kGroupNameAnnotation, cluster.PodGroupName())
                                     .Set(cluster::kTaskSpecAnnotation, group)
                                     .Set(kTemplateHashAnnotation, hash)},
                 {"ownerReferences", controllers::ControlledByOnly(cluster.object)}});
  return metadata;
}

json::Value PodOf(json::Value metadata, json::Value spec) {
  return json::Obj({{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"metadata", std::move(metadata)},
                    {"spec", std::move(spec)}});
}

json::Value WithFirstContainer(const json::Value& spec, json::Value container) {
  return spec.Set("containers", spec["containers"].SetAt(0, std::move(container)));
}

}  // namespace

json::Value HeadSelector(const Cluster& cluster) {
  return LabelsOf(cluster, "head", kHeadGroup).Remove(kGroupLabel).Remove(kIsRayNodeLabel);
}

std::string HeadHash(const Cluster& cluster) {
  return controllers::TemplateHash(
      json::SortKeys(json::Obj({{"template", cluster.head["template"]},
                                {"params", cluster.head["rayStartParams"]},
                                {"autoscaling", cluster.autoscaling}})),
      0);
}

std::string WorkerHash(const Cluster&, const WorkerGroup& group) {
  return controllers::TemplateHash(
      json::SortKeys(json::Obj({{"template", group.pod_template}, {"params", group.start_params}})),
      0);
}

std::string HeadPodBase(const Cluster& cluster) {
  return fmt::format("{}-head", cluster.name).substr(0, kMaxPodBaseLength);
}

std::string WorkerPodBase(const Cluster& cluster, const WorkerGroup& group) {
  return fmt::format("{}-{}-worker", cluster.name, group.name).substr(0, kMaxPodBaseLength);
}

json::Value MakeHeadPod(const Cluster& cluster, const std::string& pod_name) {
  const json::Value& pod_template = cluster.head["template"];
  json::Value spec = pod_template["spec"];
  json::Value container = spec["containers"].At(0);
  const std::string command = HeadCommand(cluster, container);
  container = WithCommand(pod_template, std::move(container), command);
  container = WithEnv(std::move(container), EnvOf(cluster, true, command));
  container = WithProbes(cluster.head["rayStartParams"], true, std::move(container));
  spec = WithSharedMemory(std::move(spec), container);
  spec = WithFirstContainer(spec, std::move(container));
  if (cluster.autoscaling) spec = WithAutoscaler(cluster, std::move(spec));
  if (IsAutoscalerV2(cluster)) spec = std::move(spec).Set("restartPolicy", "Never");
  return PodOf(MetadataOf(cluster, pod_template, pod_name, "head", kHeadGroup, HeadHash(cluster)),
               std::move(spec));
}

json::Value MakeWorkerPod(const Cluster& cluster, const WorkerGroup& group,
                          const std::string& pod_name) {
  json::Value spec = group.pod_template["spec"];
  json::Value container = spec["containers"].At(0);
  const std::string command = WorkerCommand(cluster, group.start_params, container);
  spec = spec.Set("initContainers", spec["initContainers"].Append(WaitForHead(cluster, container)));
  container = WithCommand(group.pod_template, std::move(container), command);
  container = WithEnv(std::move(container), EnvOf(cluster, false, command));
  container = WithProbes(group.start_params, false, std::move(container));
  spec = WithSharedMemory(std::move(spec), container);
  spec = WithFirstContainer(spec, std::move(container));
  if (IsAutoscalerV2(cluster)) spec = std::move(spec).Set("restartPolicy", "Never");
  return PodOf(MetadataOf(cluster, group.pod_template, pod_name, "worker", group.name,
                          WorkerHash(cluster, group)),
               std::move(spec));
}

json::Value MakeHeadService(const Cluster& cluster) {
  const std::pair<std::string_view, int64_t> defaults[] = {{"gcs-server", kGcsPort},
                                                           {"dashboard", kDashboardPort},
                                                           {"client", kClientPort},
                                                           {"metrics", kMetricsPort},
                                                           {"serve", kServePort}};
  json::Array ports;
  const auto add = [&ports](std::string_view name, int64_t number) {
    const bool taken = std::any_of(ports.begin(), ports.end(), [&](const json::Value& port) {
      return port["name"].AsString() == name || port["port"].AsInt() == number;
    });
    if (taken) return;
    ports.push_back(
        json::Obj({{"name", name}, {"port", number}, {"targetPort", number}, {"protocol", "TCP"}}));
  };
  const json::Value& container = cluster.head["template"]["spec"]["containers"].At(0);
  for (const json::Value& port : container["ports"].items()) {
    const int64_t number = port["containerPort"].AsInt();
    const auto known =
        std::ranges::find(defaults, number, &std::pair<std::string_view, int64_t>::second);
    const std::string otherwise =
        known == std::end(defaults) ? fmt::format("{}-port", number) : std::string(known->first);
    add(port["name"].AsString(otherwise), number);
  }
  for (const auto& [name, number] : defaults) add(name, number);
  const std::string type = cluster.head["serviceType"].Str();
  json::Value spec = json::Obj({{"selector", HeadSelector(cluster)},
                                {"ports", json::Value(std::move(ports))},
                                {"publishNotReadyAddresses", true}});
  spec =
      type.empty() ? std::move(spec).Set("clusterIP", "None") : std::move(spec).Set("type", type);
  json::Value metadata =
      json::Obj({{"name", cluster.HeadServiceName()},
                 {"namespace", cluster.ns},
                 {"labels", HeadSelector(cluster)},
                 {"ownerReferences", controllers::ControlledByOnly(cluster.object)}});
  const json::Value& annotations = cluster.object["spec"]["headServiceAnnotations"];
  if (!annotations.empty()) metadata = std::move(metadata).Set("annotations", annotations);
  return json::Obj({{"apiVersion", "v1"},
                    {"kind", "Service"},
                    {"metadata", std::move(metadata)},
                    {"spec", std::move(spec)}});
}

json::Value PodGroupSpec(const Cluster& cluster) {
  return json::Obj({{"minMember", cluster.MinMembers()},
                    {"minTaskMember", json::Obj({{std::string(kHeadGroup), 1}})},
                    {"queue", "default"}});
}

json::Value MakePodGroup(const Cluster& cluster) {
  return json::Obj({{"apiVersion", "scheduling.volcano.sh/v1beta1"},
                    {"kind", "PodGroup"},
                    {"metadata", json::Obj({{"name", cluster.PodGroupName()},
                                            {"namespace", cluster.ns},
                                            {"ownerReferences",
                                             controllers::ControlledByOnly(cluster.object)}})},
                    {"spec", PodGroupSpec(cluster)}});
}

}  // namespace muster::ray
