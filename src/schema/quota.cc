#include "schema/quota.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/bounded_seconds.h"
#include "base/strings.h"
#include "schema/names.h"
#include "schema/pod_phase.h"
#include "schema/pod_qos.h"

namespace muster::schema {
namespace {

constexpr std::string_view kRequests = "requests.";
constexpr std::string_view kOfClass = ".storageclass.storage.k8s.io/";
constexpr __int128 kOneInNano = 1'000'000'000;

const GroupResource kPodResource{"", "pods"};
const GroupResource kServiceResource{"", "services"};
const GroupResource kClaimResource{"", "persistentvolumeclaims"};

constexpr std::array<std::string_view, 10> kPodNames = {"pods",
                                                        "cpu",
                                                        "memory",
                                                        "ephemeral-storage",
                                                        "requests.cpu",
                                                        "limits.cpu",
                                                        "requests.memory",
                                                        "limits.memory",
                                                        "requests.ephemeral-storage",
                                                        "limits.ephemeral-storage"};
// Containers of a quota's pods must state these, if it limits them.
constexpr std::array<std::string_view, 6> kMustBeStated = {
    "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"};
// Counted by their own name as well as by "count/".
constexpr std::array<std::string_view, 6> kCountedByName = {
    "services",   "replicationcontrollers", "resourcequotas", "secrets",
    "configmaps", "persistentvolumeclaims"};

template <size_t N>
bool IsIn(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

Amount Whole(int64_t units) { return {units * kOneInNano, QuantityFormat::kDecimalSi}; }

void AddAmount(Amounts& sum, std::string_view name, const Amount& more) {
  Amount& amount = sum.try_emplace(std::string(name)).first->second;
  // As upstream: nothing has no format of its own.
  if (amount.nano == 0) amount.format = more.format;
  amount.nano += more.nano;
}

std::string CountName(const GroupResource& resource) {
  return resource.group.empty() ? "count/" + resource.plural
                                : fmt::format("count/{}.{}", resource.plural, resource.group);
}

// "requests.nvidia.com/gpu"
bool IsExtendedInQuota(std::string_view name) {
  return name.starts_with(kRequests) && !IsNativeResource(name);
}

std::optional<GroupResource> ResourceOf(std::string_view name) {
  if (name.starts_with("count/")) {
    const std::string_view counted = name.substr(6);
    const size_t dot = counted.find('.');
    if (dot == std::string_view::npos) return GroupResource{"", std::string(counted)};
    return GroupResource{std::string(counted.substr(dot + 1)), std::string(counted.substr(0, dot))};
  }
  if (IsIn(kPodNames, name) || name.starts_with("hugepages-") ||
      name.starts_with("requests.hugepages-") || IsExtendedInQuota(name)) {
    return kPodResource;
  }
  if (name.starts_with("services.")) return kServiceResource;
  if (name == "requests.storage" || name.find(kOfClass) != std::string_view::npos)
    return kClaimResource;
  if (IsIn(kCountedByName, name)) return GroupResource{"", std::string(name)};
  return std::nullopt;
}

void RaiseTo(Amounts& most, const Amounts& other) {
  for (const auto& [name, amount] : other) {
    Amount& own = most.try_emplace(name, amount).first->second;
    if (own < amount) own = amount;
  }
}

// Of all containers together: those that run at once, or the init container that needs most beside
// the sidecars before it.
Amounts SumOfContainers(const json::Value& spec, std::string_view list) {
  Amounts sidecars, most, sum;
  for (const json::Value& container : spec["initContainers"].items()) {
    const Amounts own = AmountsOf(container["resources"][list]);
    if (container["restartPolicy"].AsString() == "Always") {
      AddAmounts(sidecars, own);
      RaiseTo(most, sidecars);
    } else {
      Amounts beside = sidecars;
      AddAmounts(beside, own);
      RaiseTo(most, beside);
    }
  }
  for (const json::Value& container : spec["containers"].items())
    AddAmounts(sum, AmountsOf(container["resources"][list]));
  AddAmounts(sum, sidecars);
  RaiseTo(sum, most);
  return sum;
}

// Requests and limits by the names that quotas have for them.
Amounts ComputeUsage(const Amounts& requests, const Amounts& limits) {
  Amounts usage;
  usage["pods"] = Whole(1);
  for (const auto& [name, amount] : requests) {
    const bool common = name == "cpu" || name == "memory" || name == "ephemeral-storage" ||
                        name.starts_with("hugepages-");
    if (common) usage[name] = amount;
    if (common || IsExtendedResource(name)) usage[std::string(kRequests) + name] = amount;
  }
  for (const char* name : {"cpu", "memory", "ephemeral-storage"}) {
    if (const auto limit = limits.find(name); limit != limits.end())
      usage[std::string("limits.") + name] = limit->second;
  }
  return usage;
}

Amounts UsageOfPod(const json::Value& pod) {
  const json::Value& spec = pod["spec"];
  Amounts requests = SumOfContainers(spec, "requests"), limits = SumOfContainers(spec, "limits");
  for (const auto& [name, amount] : AmountsOf(spec["overhead"])) {
    AddAmount(requests, name, amount);
    if (limits.contains(name)) AddAmount(limits, name, amount);
  }
  return ComputeUsage(requests, limits);
}

Amounts UsageOfService(const json::Value& service) {
  const json::Value& spec = service["spec"];
  const std::string_view type = spec["type"].AsString();
  Amounts usage;
  const json::Array& ports = spec["ports"].items();
  if (type == "LoadBalancer") usage["services.loadbalancers"] = Whole(1);
  if (type == "LoadBalancer" && !spec["allocateLoadBalancerNodePorts"].AsBool(true)) {
    const auto stated = std::ranges::count_if(
        ports, [](const json::Value& port) { return port["nodePort"].AsInt() != 0; });
    usage["services.nodeports"] = Whole(stated);
  } else if (type == "LoadBalancer" || type == "NodePort") {
    usage["services.nodeports"] = Whole(static_cast<int64_t>(ports.size()));
  }
  return usage;
}

Amounts UsageOfClaim(const json::Value& claim) {
  const json::Value& annotation =
      claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
  const std::string storage_class =
      annotation.IsString() ? annotation.Str() : claim["spec"]["storageClassName"].Str();
  Amounts usage;
  // What a growth that was given up had reached already is still taken.
  Amounts storage = AmountsOf(claim["spec"]["resources"]["requests"]);
  RaiseTo(storage, AmountsOf(claim["status"]["allocatedResources"]));
  const auto size = storage.find("storage");
  if (size != storage.end()) usage["requests.storage"] = size->second;
  if (storage_class.empty()) return usage;
  const std::string prefix = storage_class + std::string(kOfClass);
  usage[prefix + "persistentvolumeclaims"] = Whole(1);
  if (size != storage.end()) usage[prefix + "requests.storage"] = size->second;
  return usage;
}

bool HasCrossNamespaceTerm(const json::Value& affinity) {
  const auto crosses = [](const json::Value& term) {
    return !term["namespaces"].empty() || !term["namespaceSelector"].IsNull();
  };
  for (const char* direction : {"podAffinity", "podAntiAffinity"}) {
    const json::Value& own = affinity[direction];
    for (const json::Value& term : own["requiredDuringSchedulingIgnoredDuringExecution"].items())
      if (crosses(term)) return true;
    for (const json::Value& one : own["preferredDuringSchedulingIgnoredDuringExecution"].items())
      if (crosses(one["podAffinityTerm"])) return true;
  }
  return false;
}

}  // namespace

Amounts AmountsOf(const json::Value& list) {
  Amounts amounts;
  for (const auto& [name, text] : list.members()) {
    if (const Result<Amount> amount = AmountFromJson(text)) amounts[name] = *amount;
  }
  return amounts;
}

void AddAmounts(Amounts& sum, const Amounts& more) {
  for (const auto& [name, amount] : more) AddAmount(sum, name, amount);
}

void TakeAmounts(Amounts& sum, const Amounts& less) {
  for (const auto& [name, amount] : less) sum[name].nano -= amount.nano;
}

Amounts GrowthOf(const Amounts& before, const Amounts& after) {
  Amounts growth;
  for (const auto& [name, amount] : after) {
    const auto old = before.find(name);
    const __int128 nano = amount.nano - (old == before.end() ? 0 : old->second.nano);
    if (nano > 0) growth[name] = {nano, amount.format};
  }
  return growth;
}

std::string ToText(const Amounts& amounts) {
  std::vector<std::string> parts;
  for (const auto& [name, amount] : amounts) parts.push_back(name + "=" + amount.Canonical());
  return Join(parts, ",");
}

json::Value ToJson(const Amounts& amounts) {
  json::Object object;
  for (const auto& [name, amount] : amounts) object.emplace_back(name, amount.Canonical());
  return json::Value(std::move(object));
}

bool IsOutsideQuotas(const GroupResource& resource) {
  return resource.plural == "events" &&
         (resource.group.empty() || resource.group == "events.k8s.io");
}

std::optional<Time> LapseOf(const json::Value& pod) {
  const json::Value& metadata = pod["metadata"];
  if (!metadata.Has("deletionTimestamp") || !metadata.Has("deletionGracePeriodSeconds"))
    return std::nullopt;
  const std::optional<Time> deletion = ParseTime(metadata["deletionTimestamp"].AsString());
  if (!deletion) return std::nullopt;
  return *deletion + BoundedSeconds(metadata["deletionGracePeriodSeconds"].AsInt());
}

// --- Quota

Quota::Quota(const json::Value& object)
    : name_(object["metadata"]["name"].Str()), hard_(AmountsOf(object["spec"]["hard"])) {
  const json::Value& spec = object["spec"];
  for (const json::Value& scope : spec["scopes"].items())
    scopes_.push_back({scope.Str(), "Exists", {}});
  for (const json::Value& one : spec["scopeSelector"]["matchExpressions"].items()) {
    const std::vector<std::string> values = json::ToStrings(one["values"]);
    scopes_.push_back(
        {one["scopeName"].Str(), one["operator"].Str(), {values.begin(), values.end()}});
  }
  for (const auto& [name, amount] : hard_) {
    const std::optional<GroupResource> resource = ResourceOf(name);
    // Scopes are of pods; nothing else is ever in one.
    if (!resource || IsOutsideQuotas(*resource)) continue;
    if (scopes_.empty() || *resource == kPodResource) resources_.insert(*resource);
  }
}

bool Quota::Scope::Holds(const json::Value& pod) const {
  const json::Value& spec = pod["spec"];
  if (name == "Terminating") return !spec["activeDeadlineSeconds"].IsNull();
  if (name == "NotTerminating") return spec["activeDeadlineSeconds"].IsNull();
  if (name == "BestEffort") return QosClassOf(pod) == "BestEffort";
  if (name == "NotBestEffort") return QosClassOf(pod) != "BestEffort";
  if (name == "CrossNamespacePodAffinity") return HasCrossNamespaceTerm(spec["affinity"]);
  if (name != "PriorityClass") return false;
  const std::string priority = spec["priorityClassName"].Str();
  if (op == "In") return !priority.empty() && values.contains(priority);
  if (op == "NotIn") return priority.empty() || !values.contains(priority);
  return (op == "Exists") == !priority.empty();
}

bool Quota::OnlyCounts(const GroupResource& resource) const {
  if (!scopes_.empty()) return false;
  const Amounts presence = UsageOfPresence(resource);
  return std::ranges::all_of(hard_, [&](const auto& bound) {
    return ResourceOf(bound.first) != resource || presence.contains(bound.first);
  });
}

bool Quota::Matches(const GroupResource& resource, const json::Value& object) const {
  return resources_.contains(resource) &&
         std::ranges::all_of(scopes_, [&](const Scope& scope) { return scope.Holds(object); });
}

Amounts Quota::UsageOfPresence(const GroupResource& resource) const {
  Amounts usage;
  if (!resources_.contains(resource)) return usage;
  if (const std::string name = CountName(resource); hard_.contains(name)) usage[name] = Whole(1);
  if (resource.group.empty() && IsIn(kCountedByName, resource.plural) &&
      hard_.contains(resource.plural)) {
    usage[resource.plural] = Whole(1);
  }
  return usage;
}

Amounts Quota::UsageOf(const GroupResource& resource, const json::Value& object,
                       bool lapsed) const {
  if (object.IsNull() || !Matches(resource, object)) return {};
  Amounts usage = UsageOfPresence(resource);
  Amounts more;
  if (resource == kPodResource && !lapsed && !IsFinalPhase(object["status"]["phase"].AsString()))
    more = UsageOfPod(object);
  if (resource == kServiceResource) more = UsageOfService(object);
  if (resource == kClaimResource) more = UsageOfClaim(object);
  for (const auto& [name, amount] : more) {
    if (hard_.contains(name)) usage[name] = amount;
  }
  return usage;
}

std::string Quota::MissingIn(const GroupResource& resource, const json::Value& object) const {
  if (resource != kPodResource) return "";
  std::map<std::string_view, std::set<std::string>> missing;  // containers by what they lack
  for (const char* list : {"containers", "initContainers"}) {
    for (const json::Value& container : object["spec"][list].items()) {
      const json::Value& resources = container["resources"];
      const Amounts stated =
          ComputeUsage(AmountsOf(resources["requests"]), AmountsOf(resources["limits"]));
      for (std::string_view name : kMustBeStated) {
        if (hard_.contains(name) && !stated.contains(name))
          missing[name].insert(container["name"].Str());
      }
    }
  }
  std::vector<std::string> parts;
  for (const auto& [name, containers] : missing) {
    parts.push_back(
        fmt::format("{} for: {}", name,
                    Join(std::vector<std::string>(containers.begin(), containers.end()), ",")));
  }
  return Join(parts, "; ");
}

// --- QuotaTally

QuotaTally::QuotaTally(Quota quota, Time now) : quota_(std::move(quota)), now_(now) {
  for (const auto& [name, bound] : quota_.hard()) {
    const std::optional<GroupResource> resource = ResourceOf(name);
    if (resource && quota_.resources().contains(*resource)) used_[name] = Amount();
  }
}

std::optional<Time> QuotaTally::ComingLapse(const GroupResource& resource,
                                            const json::Value& object) const {
  if (resource != kPodResource || object.IsNull()) return std::nullopt;
  const std::optional<Time> lapse = LapseOf(object);
  return lapse && *lapse >= now_ ? lapse : std::nullopt;
}

Amounts QuotaTally::UsageNow(const GroupResource& resource, const json::Value& object) const {
  const std::optional<Time> lapse =
      resource == kPodResource && !object.IsNull() ? LapseOf(object) : std::nullopt;
  return quota_.UsageOf(resource, object, lapse && *lapse < now_);
}

bool QuotaTally::Change(const GroupResource& resource, const json::Value& before,
                        const json::Value& after) {
  if (!quota_.resources().contains(resource)) return false;
  const Amounts less = UsageNow(resource, before), more = UsageNow(resource, after);
  if (const auto lapse = ComingLapse(resource, before))
    lapsing_.erase({*lapse, before["metadata"]["uid"].Str()});
  if (const auto lapse = ComingLapse(resource, after); lapse && !more.empty())
    lapsing_[{*lapse, after["metadata"]["uid"].Str()}] = after;
  if (less == more) return false;
  TakeAmounts(used_, less);
  AddAmounts(used_, more);
  return true;
}

void QuotaTally::AddPresent(const GroupResource& resource, size_t count) {
  for (const auto& [name, one] : quota_.UsageOfPresence(resource))
    AddAmount(used_, name, Whole(static_cast<int64_t>(count)));
}

Amounts QuotaTally::Growth(const GroupResource& resource, const json::Value& before,
                           const json::Value& after) const {
  if (!quota_.resources().contains(resource)) return {};
  return GrowthOf(UsageNow(resource, before), UsageNow(resource, after));
}

bool QuotaTally::Advance(Time now) {
  now_ = std::max(now_, now);
  bool changed = false;
  while (!lapsing_.empty() && lapsing_.begin()->first.first < now_) {
    const json::Value pod = std::move(lapsing_.begin()->second);
    lapsing_.erase(lapsing_.begin());
    const Amounts whole = quota_.UsageOf(kPodResource, pod, false);
    const Amounts left = quota_.UsageOf(kPodResource, pod, true);
    TakeAmounts(used_, whole);
    AddAmounts(used_, left);
    changed = changed || whole != left;
  }
  return changed;
}

std::optional<Time> QuotaTally::NextLapse() const {
  return lapsing_.empty() ? std::nullopt : std::optional(lapsing_.begin()->first.first);
}

}  // namespace muster::schema
