#include "client/resource_discovery.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "client/lifetime.h"

namespace muster::client {
namespace {

constexpr Duration kMinDiscoveryBackoff = milliseconds(100);
constexpr Duration kMaxDiscoveryBackoff = seconds(30);
const Resource kApiServiceResource{"apiregistration.k8s.io", "v1", "apiservices"};
constexpr char kApiServices[] = "/apis/apiregistration.k8s.io/v1/apiservices/";
// A second view of the core events.
constexpr std::string_view kEventsGroup = "events.k8s.io";

bool HasVerbs(const json::Value& resource) {
  constexpr std::string_view kNeeded[] = {"list", "watch", "delete"};
  const std::vector<std::string> verbs = json::ToStrings(resource["verbs"]);
  return std::all_of(std::begin(kNeeded), std::end(kNeeded), [&verbs](std::string_view verb) {
    return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
  });
}

// By a Service that is available.
bool IsServedElsewhere(const json::Value& api_service) {
  if (api_service["spec"]["service"].IsNull()) return false;
  const json::Array& conditions = api_service["status"]["conditions"].items();
  return std::ranges::any_of(conditions, [](const json::Value& condition) {
    return condition["type"].AsString() == "Available" && condition["status"].AsString() == "True";
  });
}

// "v1.g" of "/apis/g/v1"; "" of other paths.
std::string ApiServiceOf(const std::string& path) {
  const std::vector<std::string_view> parts = SplitNonEmpty(path, '/');
  return parts.size() == 3 ? fmt::format("{}.{}", parts[2], parts[1]) : "";
}

// The version that a CustomResourceDefinition's objects are best read in: stored if served, else
// the first served one.
std::string VersionOf(const json::Value& crd) {
  std::string first;
  for (const json::Value& version : crd["spec"]["versions"].items()) {
    if (!version["served"].AsBool()) continue;
    if (version["storage"].AsBool()) return version["name"].Str();
    if (first.empty()) first = version["name"].Str();
  }
  return first;
}

}  // namespace

struct ResourceDiscovery::Impl {
  Impl(ApiClient& api_client, InformerSet& informer_set)
      : client(api_client), informers(informer_set) {}

  void Start() {
    const json::Fields of_crds{{"spec", "group"},
                               {"spec", "names"},
                               {"spec", "scope"},
                               {"spec", "versions", "name"},
                               {"spec", "versions", "served"},
                               {"spec", "versions", "storage"}};
    informers.Get(resources::kCustomResourceDefinitions, of_crds)
        .Subscribe({.on_change =
                        lifetime.Guard([this](const ObjectKey&, const json::Value& before,
                                              const json::Value& after) { OnCrd(before, after); }),
                    .on_synced = {}});
    informers
        .Get(kApiServiceResource, json::Fields{{"spec", "group"},
                                               {"spec", "version"},
                                               {"spec", "service", "name"},
                                               {"status", "conditions"}})
        .Subscribe({.on_change = lifetime.Guard(
                        [this](const ObjectKey&, const json::Value& before,
                               const json::Value& after) { OnApiService(before, after); }),
                    .on_synced = {}});
    AskGroups();
  }

  // Another server answers from now on: its kinds join the others.
  void OnApiService(const json::Value& before, const json::Value& after) {
    if (after.IsNull() || !IsServedElsewhere(after) || IsServedElsewhere(before)) return;
    const std::string path = fmt::format("/apis/{}/{}", after["spec"]["group"].AsString(),
                                         after["spec"]["version"].AsString());
    client.GetPath(path, lifetime.Guard([this, path](const Result<json::Value>& list) {
      if (list) return AddAll(*list);
      LOG_WARN("discovery: cannot read {} error={}", path, list.error().ToString());
    }));
  }

  // The chain of questions: /apis, then one group version after the other. A failure begins it
  // again.
  void AskGroups() {
    waiting = {"/api/v1"};
    Ask("/apis", [this](const json::Value& groups) {
      for (const json::Value& group : groups["groups"].items()) {
        if (group["name"].AsString() == kEventsGroup) continue;
        waiting.push_back("/apis/" + group["preferredVersion"]["groupVersion"].Str());
      }
      AskNext();
    });
  }

  void AskNext() {
    if (waiting.empty()) {
      synced = true;
      failures = 0;
      return;
    }
    const std::string path = waiting.front();
    waiting.pop_front();
    AskVersion(path);
  }

  // A group version that another server serves, and does not serve now, is left out: the rest must
  // go on without it.
  void AskVersion(const std::string& path) {
    client.GetPath(path, lifetime.Guard([this, path](Result<json::Value> list) {
      if (list) {
        AddAll(*list);
        return AskNext();
      }
      const std::string name = ApiServiceOf(path);
      if (name.empty()) return Retry(path, list.error());
      client.GetPath(kApiServices + name,
                     lifetime.Guard([this, path, why = list.error()](Result<json::Value> service) {
                       if (!service || (*service)["spec"]["service"].IsNull())
                         return Retry(path, why);
                       LOG_WARN("discovery: goes on without {} error={}", path, why.ToString());
                       AskNext();
                     }));
    }));
  }

  void AddAll(const json::Value& list) {
    const std::string group_version = list["groupVersion"].Str();
    const size_t slash = group_version.find('/');
    const std::string group = slash == std::string::npos ? "" : group_version.substr(0, slash);
    const std::string version =
        slash == std::string::npos ? group_version : group_version.substr(slash + 1);
    for (const json::Value& resource : list["resources"].items()) {
      if (resource["name"].AsString().find('/') != std::string_view::npos || !HasVerbs(resource))
        continue;
      Add({{group, version, resource["name"].Str()},
           resource["kind"].Str(),
           resource["namespaced"].AsBool()});
    }
  }

  void Ask(const std::string& path, Function<void(const json::Value&)> then) {
    client.GetPath(path, lifetime.Guard([this, path,
                                         then = std::move(then)](Result<json::Value> body) mutable {
      if (body) return then(*body);
      Retry(path, body.error());
    }));
  }

  void Retry(const std::string& path, const Status& why) {
    LOG_WARN("discovery: cannot read {} error={}", path, why.ToString());
    Duration delay = kMinDiscoveryBackoff * (int64_t{1} << std::min(failures++, 20));
    delay = std::min<Duration>(delay, kMaxDiscoveryBackoff);
    client.loop().After(delay, lifetime.Guard([this] { AskGroups(); }));
  }

  void OnCrd(const json::Value& before, const json::Value& after) {
    const json::Value& crd = after.IsNull() ? before : after;
    const json::Value& spec = crd["spec"];
    const std::string version = VersionOf(crd);
    if (after.IsNull() || version.empty()) {
      std::erase_if(kinds, [&spec](const ServedKind& kind) {
        return kind.resource.group == spec["group"].AsString() &&
               kind.kind == spec["names"]["kind"].AsString();
      });
      return;
    }
    Add({{spec["group"].Str(), version, spec["names"]["plural"].Str()},
         spec["names"]["kind"].Str(),
         spec["scope"].AsString() == "Namespaced"});
  }

  void Add(ServedKind kind) {
    if (Find(kind.resource.group, kind.kind) != nullptr) return;
    kinds.push_back(kind);
    for (size_t i = 0; i < subscribers.size(); ++i) subscribers[i](kind);
  }

  const ServedKind* Find(std::string_view group, std::string_view kind) const {
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const ServedKind& known) {
      return known.resource.group == group && known.kind == kind;
    });
    return found == kinds.end() ? nullptr : &*found;
  }

  ApiClient& client;
  InformerSet& informers;
  std::vector<ServedKind> kinds;
  std::deque<std::function<void(const ServedKind&)>> subscribers;
  std::deque<std::string> waiting;
  int failures = 0;
  bool synced = false;
  Lifetime lifetime;
};

ResourceDiscovery::ResourceDiscovery(ApiClient& client, InformerSet& informers)
    : impl_(std::make_unique<Impl>(client, informers)) {}
ResourceDiscovery::~ResourceDiscovery() = default;

void ResourceDiscovery::Start() { impl_->Start(); }
bool ResourceDiscovery::Synced() const { return impl_->synced; }
const std::vector<ServedKind>& ResourceDiscovery::kinds() const { return impl_->kinds; }

const ServedKind* ResourceDiscovery::Find(std::string_view group, std::string_view kind) const {
  return impl_->Find(group, kind);
}

void ResourceDiscovery::Subscribe(std::function<void(const ServedKind&)> on_kind) {
  for (const ServedKind& kind : std::vector<ServedKind>(impl_->kinds)) on_kind(kind);
  impl_->subscribers.push_back(std::move(on_kind));
}

}  // namespace muster::client
