#include "serving/predictor_pod.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "base/strings.h"
#include "serving/model_storage.h"

namespace muster::serving {
namespace {

using json::Value;

// Fields of spec.predictor that its pods have, too.
constexpr std::array kPodFields = {"initContainers",
                                   "nodeSelector",
                                   "affinity",
                                   "tolerations",
                                   "topologySpreadConstraints",
                                   "serviceAccountName",
                                   "automountServiceAccountToken",
                                   "securityContext",
                                   "imagePullSecrets",
                                   "schedulerName",
                                   "priorityClassName",
                                   "runtimeClassName",
                                   "terminationGracePeriodSeconds",
                                   "dnsPolicy",
                                   "dnsConfig",
                                   "hostAliases",
                                   "hostNetwork",
                                   "hostIPC",
                                   "hostPID",
                                   "shareProcessNamespace",
                                   "enableServiceLinks"};
// Fields of spec.predictor.model that replace those of the runtime's container.
constexpr std::array kReplaced = {"image",
                                  "command",
                                  "workingDir",
                                  "ports",
                                  "livenessProbe",
                                  "readinessProbe",
                                  "startupProbe",
                                  "lifecycle",
                                  "imagePullPolicy",
                                  "securityContext",
                                  "terminationMessagePath",
                                  "terminationMessagePolicy"};

bool IsServer(const Value& container) { return container["name"].AsString() == kServerContainer; }

// Items of `more` replace those of `list` with the same `key`; the others come behind.
Value Merged(const Value& list, const Value& more, std::string_view key) {
  Value merged = list;
  for (const Value& item : more.items()) {
    const auto same = std::ranges::find_if(merged.items(),
                                           [&](const Value& one) { return one[key] == item[key]; });
    const auto index = static_cast<size_t>(same - merged.items().begin());
    merged = index < merged.size() ? merged.SetAt(index, item) : merged.Append(item);
  }
  return merged;
}

Value MergedMap(Value map, const Value& more) {
  for (const auto& [key, value] : more.members()) map = std::move(map).Set(key, value);
  return map;
}

// {{.Name}} and {{.Namespace}}, with or without blanks, wherever a text of the container has them.
Value Filled(const Value& value, const InferenceService& service) {
  if (value.IsString()) {
    std::string text = value.Str();
    if (!text.contains("{{")) return value;
    for (const auto& [from, to] : {std::pair{"{{.Name}}", &service.name},
                                   {"{{ .Name }}", &service.name},
                                   {"{{.Namespace}}", &service.ns},
                                   {"{{ .Namespace }}", &service.ns}})
      text = ReplaceAll(std::move(text), from, *to);
    return text;
  }
  if (value.IsArray()) {
    json::Array items;
    for (const Value& item : value.items()) items.push_back(Filled(item, service));
    return Value(std::move(items));
  }
  if (value.IsObject()) {
    Value object = value;
    for (const auto& [key, member] : value.members())
      object = std::move(object).Set(key, Filled(member, service));
    return object;
  }
  return value;
}

std::string WithTag(std::string_view image, std::string_view tag) {
  const size_t digest = image.find('@');
  image = image.substr(0, digest);
  const size_t colon = image.rfind(':');
  const bool tagged = colon != image.npos && image.find('/', colon) == image.npos;
  return fmt::format("{}:{}", tagged ? image.substr(0, colon) : image, tag);
}

Value ServerOf(const Value& model, Value container) {
  for (const char* field : kReplaced) {
    if (model.Has(field)) container = std::move(container).Set(field, model[field]);
  }
  for (const Value& argument : model["args"].items())
    container = container.Set("args", container["args"].Append(argument));
  for (const auto& [list, key] : {std::pair{"env", "name"}, {"volumeMounts", "mountPath"}}) {
    if (model.Has(list)) container = container.Set(list, Merged(container[list], model[list], key));
  }
  for (const Value& source : model["envFrom"].items())
    container = container.Set("envFrom", container["envFrom"].Append(source));
  for (const char* kind : {"requests", "limits"}) {
    const Value& amounts = model["resources"][kind];
    if (amounts.empty()) continue;
    container =
        container.SetPath({"resources", kind}, MergedMap(container["resources"][kind], amounts));
  }
  if (const std::string_view tag = model["runtimeVersion"].AsString(); !tag.empty())
    container = container.Set("image", WithTag(container["image"].AsString(), tag));
  return container;
}

int PortOf(const Value& container) {
  const int64_t port = container["ports"].At(0)["containerPort"].AsInt(kDefaultServerPort);
  return static_cast<int>(port);
}

// Ready means that the model is: where the protocol has a question for that, it is asked; of a
// server that we know nothing of, that it listens, as upstream.
Value DefaultProbe(const InferenceService& service, const Value& container) {
  const int port = PortOf(container);
  const Value& model = service.model();
  Value probe = json::Obj({{"periodSeconds", 2}, {"failureThreshold", 3}, {"timeoutSeconds", 5}});
  const std::string_view protocol = model["protocolVersion"].AsString("v1");
  if (model.IsNull() || protocol.starts_with("grpc"))
    return probe.Set("tcpSocket", json::Obj({{"port", port}}));
  const std::string path = protocol == "v2" ? fmt::format("/v2/models/{}/ready", service.name)
                                            : fmt::format("/v1/models/{}", service.name);
  return probe.Set("httpGet", json::Obj({{"path", path}, {"port", port}}));
}

Value Completed(const InferenceService& service, Value container) {
  if (container["readinessProbe"].IsNull())
    container = container.Set("readinessProbe", DefaultProbe(service, container));
  if (container["lifecycle"]["preStop"].IsNull()) {
    container = container.SetPath({"lifecycle", "preStop", "sleep", "seconds"}, kDrainSeconds);
  }
  return container;
}

// The containers, the server among them under its name; the user's own go before the runtime's.
Result<Value> ContainersOf(const InferenceService& service, const Value& runtime) {
  const Value& given = service.predictor()["containers"];
  Value containers = Merged(runtime["spec"]["containers"], given, "name");
  const auto& items = containers.items();
  auto server = std::ranges::find_if(items, IsServer);
  if (server == items.end() && runtime.IsNull()) server = items.begin();
  if (server == items.end()) {
    return Error(Reason::kInvalid, "the runtime {} has no container called {}",
                 runtime["metadata"]["name"].AsString(), kServerContainer);
  }
  Value container = ServerOf(service.model(), *server).Set("name", kServerContainer);
  return containers.SetAt(static_cast<size_t>(server - items.begin()),
                          Completed(service, Filled(container, service)));
}

// The server of one's own says where its model is in the environment, as upstream.
std::string_view StorageUriOf(const InferenceService& service, const Value& containers) {
  if (const Value& uri = service.model()["storageUri"]; !uri.IsNull()) return uri.AsString();
  for (const Value& container : containers.items()) {
    if (!IsServer(container)) continue;
    for (const Value& variable : container["env"].items()) {
      if (variable["name"].AsString() == "STORAGE_URI") return variable["value"].AsString();
    }
  }
  return "";
}

Value PodMetadata(const InferenceService& service, const Value& runtime) {
  Value labels = MergedMap(runtime["spec"]["labels"], service.predictor()["labels"])
                     .Set(kServiceLabel, service.name)
                     .Set("component", "predictor");
  Value annotations = MergedMap(runtime["spec"]["annotations"], service.predictor()["annotations"]);
  Value metadata = json::Obj({{"labels", std::move(labels)}});
  return annotations.empty() ? metadata : metadata.Set("annotations", std::move(annotations));
}

}  // namespace

Result<Value> PredictorPodTemplate(const InferenceService& service, const Value& runtime) {
  ASSIGN_OR_RETURN(Value containers, ContainersOf(service, runtime));
  Value spec;
  for (const char* field : {"nodeSelector", "affinity", "tolerations", "imagePullSecrets"}) {
    if (runtime["spec"].Has(field)) spec = spec.Set(field, runtime["spec"][field]);
  }
  if (runtime["spec"]["hostIPC"].AsBool()) spec = spec.Set("hostIPC", true);
  for (const char* field : kPodFields) {
    if (service.predictor().Has(field)) spec = spec.Set(field, service.predictor()[field]);
  }
  Value volumes = Merged(runtime["spec"]["volumes"], service.predictor()["volumes"], "name");
  if (const std::string_view uri = StorageUriOf(service, containers); !uri.empty()) {
    ASSIGN_OR_RETURN(const ModelMount model, MountOf(uri));
    volumes = Merged(volumes, json::List({model.volume}), "name");
    json::Array mounted;
    for (const Value& container : containers.items()) {
      mounted.push_back(
          IsServer(container)
              ? container.Set("volumeMounts", Merged(container["volumeMounts"],
                                                     json::List({model.mount}), "mountPath"))
              : container);
    }
    containers = Value(std::move(mounted));
  }
  if (!volumes.empty()) spec = spec.Set("volumes", std::move(volumes));
  return json::Obj({{"metadata", PodMetadata(service, runtime)},
                    {"spec", spec.Set("containers", std::move(containers))}});
}

int ServerPortOf(const Value& pod_template) {
  for (const Value& container : pod_template["spec"]["containers"].items()) {
    if (IsServer(container)) return PortOf(container);
  }
  return kDefaultServerPort;
}

}  // namespace muster::serving
