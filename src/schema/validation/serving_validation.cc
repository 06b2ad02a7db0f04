// InferenceService, ServingRuntime and InferenceGraph. Rules: kserve
// pkg/apis/serving/v1beta1/{component,predictor,inference_service_validation}.go,
// pkg/apis/serving/v1alpha1/{servingruntime_types,inference_graph_validation}.go.

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "schema/serving_formats.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr std::string_view kRoot = "root";
constexpr int64_t kWholePercent = 100;

template <class List>
std::vector<std::string_view> Choices(const List& list) {
  return {list.begin(), list.end()};
}

void ValidateServiceName(const Value& object, size_t longest_suffix, std::string_view child,
                         FieldErrors& errors) {
  const Value& name = object["metadata"]["name"];
  const size_t most = kMaxDnsLabelLength - longest_suffix;
  if (name.AsString().size() <= most) return;
  errors.Invalid(Path("metadata").Child("name"), name,
                 fmt::format("must be no more than {} characters, because a Service of it is "
                             "called {} (at most {})",
                             most, child, kMaxDnsLabelLength));
}

void ValidateReplicas(const Value& predictor, const Path& path, FieldErrors& errors) {
  const Value& least = predictor["minReplicas"];
  const Value& most = predictor["maxReplicas"];
  if (least.AsInt() < 0)
    errors.Invalid(path.Child("minReplicas"), least, "'MinReplicas' cannot be less than 0");
  if (most.AsInt() < 0)
    errors.Invalid(path.Child("maxReplicas"), most, "'MaxReplicas' cannot be less than 0");
  if (most.AsInt() > 0 && least.AsInt(1) > most.AsInt()) {
    errors.Invalid(path.Child("minReplicas"), least.IsNull() ? Value(1) : least,
                   "'MinReplicas' cannot be greater than MaxReplicas");
  }
  const Value& concurrency = predictor["containerConcurrency"];
  if (concurrency.AsInt() < 0) {
    errors.Invalid(path.Child("containerConcurrency"), concurrency,
                   "parallelism cannot be less than 0");
  }
  for (const char* key : {"scaleTarget", "timeout"}) {
    const Value& value = predictor[key];
    if (!value.IsNull() && value.AsInt() < 1)
      errors.Invalid(path.Child(key), value, "must be greater than 0");
  }
  const Value& canary = predictor["canaryTrafficPercent"];
  if (!canary.IsNull() && (canary.AsInt() < 0 || canary.AsInt() > kWholePercent)) {
    errors.Invalid(path.Child("canaryTrafficPercent"), canary,
                   "must be between 0 and 100, inclusive");
  }
}

void ValidateModel(const Value& model, const Path& path, FieldErrors& errors) {
  if (model["modelFormat"]["name"].AsString().empty())
    errors.Required(path.Child("modelFormat").Child("name"));
  const Value& protocol = model["protocolVersion"];
  if (!protocol.IsNull())
    errors.OneOf(path.Child("protocolVersion"), protocol, Choices(kInferenceProtocols));
  const Value& uri = model["storageUri"];
  const bool known = std::ranges::any_of(kStorageSchemes, [&uri](std::string_view scheme) {
    return uri.AsString().starts_with(scheme);
  });
  if (!uri.IsNull() && !known) {
    errors.Invalid(path.Child("storageUri"), uri,
                   fmt::format("must begin with one of {}", fmt::join(kStorageSchemes, ", ")));
  }
}

void ValidateSteps(const Value& nodes, const std::string& name, const Path& path,
                   FieldErrors& errors) {
  const Value& router = nodes[name];
  const Path list = path.Child("steps");
  const size_t count = router["steps"].size();
  if (count == 0) return errors.Required(list);
  if (count > kMaxGraphNodes) return errors.TooMany(list, count, kMaxGraphNodes);
  std::set<std::string_view> names;
  int64_t weights = 0;
  for (size_t i = 0; i < count; ++i) {
    const Value& step = router["steps"].At(i);
    const Path place = list.Index(i);
    const auto targets =
        std::ranges::count_if(std::array{"nodeName", "serviceName", "serviceUrl"},
                              [&step](const char* key) { return !step[key].AsString().empty(); });
    if (targets != 1)
      errors.Invalid(place, "must name exactly one of nodeName, serviceName and serviceUrl");
    const Value& node = step["nodeName"];
    if (!node.AsString().empty() && !nodes.Has(node.AsString()))
      errors.NotFound(place.Child("nodeName"), node);
    const std::string_view called = step["name"].AsString();
    if (!called.empty() && !names.insert(called).second)
      errors.Duplicate(place.Child("name"), step["name"]);
    const Value& weight = step["weight"];
    if (router["routerType"].AsString() == "Splitter" && weight.IsNull())
      errors.Required(place.Child("weight"));
    errors.NotNegative(place.Child("weight"), weight);
    weights += weight.AsInt();
  }
  if (router["routerType"].AsString() == "Splitter" && weights != kWholePercent) {
    errors.Invalid(list,
                   fmt::format("the weights of a Splitter must add up to 100, not {}", weights));
  }
}

// Where one router leads to another there must be an end.
bool LeadsToItself(const Value& nodes, std::string_view name, std::set<std::string_view>& on_way,
                   std::set<std::string_view>& done) {
  if (done.contains(name)) return false;
  if (!on_way.insert(name).second) return true;
  for (const Value& step : nodes[name]["steps"].items()) {
    const std::string_view next = step["nodeName"].AsString();
    if (!next.empty() && LeadsToItself(nodes, next, on_way, done)) return true;
  }
  on_way.erase(name);
  done.insert(name);
  return false;
}

}  // namespace

void ValidateInferenceService(const Value& service, FieldErrors& errors) {
  ValidateServiceName(service, kLongestPredictorSuffix.size(), "<name>-predictor-canary", errors);
  const Path spec("spec");
  const Path path = spec.Child("predictor");
  const Value& predictor = service["spec"]["predictor"];
  const bool has_model = !predictor["model"].IsNull();
  const bool own_server = std::ranges::any_of(
      predictor["containers"].items(),
      [](const Value& container) { return container["name"].AsString() == "kserve-container"; });
  if (!has_model && predictor["containers"].empty()) {
    errors.Required(path, fmt::format("exactly one of model, {} and containers must be specified",
                                      fmt::join(kFrameworks, ", ")));
  } else if (has_model && own_server) {
    errors.Forbidden(path.Child("containers"),
                     "exactly one of model and a container called kserve-container may be "
                     "specified");
  }
  if (has_model) ValidateModel(predictor["model"], path.Child("model"), errors);
  ValidateReplicas(predictor, path, errors);
}

void ValidateServingRuntime(const Value& runtime, FieldErrors& errors) {
  const Path path("spec");
  const Value& spec = runtime["spec"];
  if (spec["containers"].empty()) errors.Required(path.Child("containers"));
  for (size_t i = 0; i < spec["protocolVersions"].size(); ++i) {
    errors.OneOf(path.Child("protocolVersions").Index(i), spec["protocolVersions"].At(i),
                 Choices(kInferenceProtocols));
  }
  for (size_t i = 0; i < spec["supportedModelFormats"].size(); ++i) {
    const Value& priority = spec["supportedModelFormats"].At(i)["priority"];
    if (!priority.IsNull() && priority.AsInt() < 1) {
      errors.Invalid(path.Child("supportedModelFormats").Index(i).Child("priority"), priority,
                     "must be greater than or equal to 1");
    }
  }
}

void ValidateInferenceGraph(const Value& graph, FieldErrors& errors) {
  ValidateServiceName(graph, 0, "<name>", errors);
  const Path spec("spec");
  const Path path = spec.Child("nodes");
  const Value& nodes = graph["spec"]["nodes"];
  if (!nodes.Has(kRoot)) {
    return errors.Required(path.Key(kRoot), "a request begins at the node called root");
  }
  if (nodes.size() > kMaxGraphNodes) return errors.TooMany(path, nodes.size(), kMaxGraphNodes);
  for (const auto& [name, router] : nodes.members())
    ValidateSteps(nodes, name, path.Key(name), errors);
  std::set<std::string_view> on_way, done;
  for (const auto& [name, router] : nodes.members()) {
    if (LeadsToItself(nodes, name, on_way, done))
      return errors.Invalid(path.Key(name), "leads back to itself");
  }
}

}  // namespace muster::schema
