#include "serving/runtime_selection.h"

#include <algorithm>
#include <tuple>

#include <fmt/core.h>

namespace muster::serving {
namespace {

using json::Value;

constexpr std::string_view kDefaultProtocol = "v1";

std::string_view NameOf(const Value& object) { return object["metadata"]["name"].AsString(); }

bool SpeaksProtocol(const Value& runtime, std::string_view protocol) {
  const Value& spoken = runtime["spec"]["protocolVersions"];
  return spoken.empty() || std::ranges::any_of(spoken.items(), [protocol](const Value& one) {
           return one.AsString() == protocol;
         });
}

// "1" stands for 1, 1.2 and 1.2.3.
bool VersionFits(std::string_view runtime, std::string_view model) {
  if (model.empty() || runtime.empty() || runtime == model) return true;
  return model.starts_with(runtime) && model.size() > runtime.size() &&
         model[runtime.size()] == '.';
}

// The entry of supportedModelFormats that fits; null if none does.
const Value& FormatThatFits(const Value& runtime, const Value& format, bool by_itself) {
  static const Value kNone;
  for (const Value& entry : runtime["spec"]["supportedModelFormats"].items()) {
    if (entry["name"] == format["name"] &&
        VersionFits(entry["version"].AsString(), format["version"].AsString()) &&
        (!by_itself || entry["autoSelect"].AsBool()))
      return entry;
  }
  return kNone;
}

RuntimeChoice Refused(std::string reason, std::string message) {
  RuntimeChoice choice;
  choice.reason = std::move(reason);
  choice.message = std::move(message);
  return choice;
}

RuntimeChoice Named(const Value& model, const Value& runtime, bool of_cluster) {
  const std::string_view name = NameOf(runtime);
  if (runtime["spec"]["disabled"].AsBool())
    return Refused(kRuntimeDisabled, fmt::format("the runtime {} is disabled", name));
  const std::string_view protocol = model["protocolVersion"].AsString(kDefaultProtocol);
  if (!SpeaksProtocol(runtime, protocol)) {
    return Refused(kNoSupportingRuntime,
                   fmt::format("the runtime {} does not speak the protocol {}", name, protocol));
  }
  if (FormatThatFits(runtime, model["modelFormat"], false).IsNull()) {
    return Refused(kNoSupportingRuntime,
                   fmt::format("the runtime {} does not take models of the format {}", name,
                               model["modelFormat"]["name"].AsString()));
  }
  return {runtime, of_cluster, "", ""};
}

// The best of those that may be chosen; nullptr if there is none.
const Value* BestOf(const Value& model, const std::vector<Value>& runtimes) {
  const std::string_view protocol = model["protocolVersion"].AsString(kDefaultProtocol);
  const Value* best = nullptr;
  const auto rank = [&model](const Value& runtime) {
    const Value& format = FormatThatFits(runtime, model["modelFormat"], true);
    return std::tuple(format["priority"].AsInt(0),
                      runtime["metadata"]["creationTimestamp"].AsString());
  };
  for (const Value& runtime : runtimes) {
    const Value& spec = runtime["spec"];
    if (spec["disabled"].AsBool() || spec["multiModel"].AsBool() ||
        !SpeaksProtocol(runtime, protocol) ||
        FormatThatFits(runtime, model["modelFormat"], true).IsNull())
      continue;
    if (best == nullptr || rank(runtime) > rank(*best) ||
        (rank(runtime) == rank(*best) && NameOf(runtime) < NameOf(*best)))
      best = &runtime;
  }
  return best;
}

}  // namespace

RuntimeChoice ChooseRuntime(const Value& model, const std::vector<Value>& of_namespace,
                            const std::vector<Value>& of_cluster) {
  const std::string_view name = model["runtime"].AsString();
  for (const auto* runtimes : {&of_namespace, &of_cluster}) {
    const bool cluster = runtimes == &of_cluster;
    if (name.empty()) {
      if (const Value* best = BestOf(model, *runtimes)) return {*best, cluster, "", ""};
      continue;
    }
    const auto found = std::ranges::find_if(
        *runtimes, [name](const Value& runtime) { return NameOf(runtime) == name; });
    if (found != runtimes->end()) return Named(model, *found, cluster);
  }
  if (!name.empty()) {
    return Refused(
        kRuntimeNotRecognized,
        fmt::format("there is no ServingRuntime and no ClusterServingRuntime called {}", name));
  }
  return Refused(
      kNoSupportingRuntime,
      fmt::format("no runtime takes models of the format {} with the protocol {}; kubectl get "
                  "clusterservingruntimes shows those of the cluster, and a ServingRuntime of your "
                  "own brings another server",
                  model["modelFormat"]["name"].AsString(),
                  model["protocolVersion"].AsString(kDefaultProtocol)));
}

}  // namespace muster::serving
