#include "serving/builtin_runtime.h"

#include <algorithm>

#include <fmt/core.h>

namespace muster::serving {

std::string_view SklearnProgram() {
  static constexpr std::string_view kText =
#include "serving/sklearn_server.inc"
      ;
  return kText;
}

json::Value MakeSklearnRuntime() {
  const std::string program = fmt::format("/opt/muster/{}", kSklearnProgram);
  const json::Value probe =
      json::Obj({{"httpGet", json::Obj({{"path", "/v2/health/ready"}, {"port", 8080}})},
                 {"periodSeconds", 1},
                 {"failureThreshold", 3},
                 {"timeoutSeconds", 5}});
  // Upstream's runtime asks for 1 CPU and 2 GiB; a small model needs a tenth of it.
  const json::Value resources =
      json::Obj({{"requests", json::Obj({{"cpu", "100m"}, {"memory", "256Mi"}})}});
  const json::Value container = json::Obj(
      {{"name", "kserve-container"},
       {"image", "kserve/sklearnserver:v0.15.2"},
       {"command", json::List({"python3", program})},
       {"args",
        json::List({"--model_name={{.Name}}", "--model_dir=/mnt/models", "--http_port=8080"})},
       {"ports", json::List({json::Obj({{"containerPort", 8080}, {"protocol", "TCP"}})})},
       {"readinessProbe", probe},
       {"resources", resources},
       {"volumeMounts",
        json::List({json::Obj(
            {{"name", kSklearnConfigMap}, {"mountPath", "/opt/muster"}, {"readOnly", true}})})}});
  const json::Value volume = json::Obj(
      {{"name", kSklearnConfigMap}, {"configMap", json::Obj({{"name", kSklearnConfigMap}})}});
  const json::Value format =
      json::Obj({{"name", "sklearn"}, {"version", "1"}, {"autoSelect", true}, {"priority", 1}});
  return json::Obj({{"apiVersion", "serving.kserve.io/v1alpha1"},
                    {"kind", "ClusterServingRuntime"},
                    {"metadata", json::Obj({{"name", kSklearnRuntime}})},
                    {"spec", json::Obj({{"supportedModelFormats", json::List({format})},
                                        {"protocolVersions", json::List({"v1", "v2"})},
                                        {"containers", json::List({container})},
                                        {"volumes", json::List({volume})}})}});
}

json::Value MakeSklearnConfigMap(std::string_view ns) {
  return json::Obj(
      {{"apiVersion", "v1"},
       {"kind", "ConfigMap"},
       {"metadata",
        json::Obj({{"name", kSklearnConfigMap},
                   {"namespace", ns},
                   {"annotations", json::Obj({{"muster.dev/purpose",
                                               "the program of the ClusterServingRuntime "
                                               "kserve-sklearnserver, kept by muster"}})}})},
       {"data", json::Obj({{kSklearnProgram, SklearnProgram()}})}});
}

bool UsesSklearnConfigMap(const json::Value& pod_spec) {
  return std::ranges::any_of(pod_spec["volumes"].items(), [](const json::Value& volume) {
    return volume["configMap"]["name"].AsString() == kSklearnConfigMap;
  });
}

}  // namespace muster::serving
