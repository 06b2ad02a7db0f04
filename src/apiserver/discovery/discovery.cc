#include "apiserver/discovery/discovery.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "apiserver/aggregation/aggregated_discovery.h"
#include "apiserver/discovery/subresources.h"
#include "apiserver/errors.h"
#include "base/strings.h"
#include "json/write.h"

namespace muster::apiserver {
namespace {

// Of a version that this server serves itself, among those that others serve.
constexpr int64_t kOwnVersionPriority = 100;

// (stability, major, minor) of "v1beta2": a greater tuple is preferred.
std::optional<std::tuple<int, int64_t, int64_t>> ParseVersion(std::string_view text) {
  if (!text.starts_with('v')) return std::nullopt;
  text.remove_prefix(1);
  int stability = 2;
  int64_t minor = 0;
  for (const auto& [word, rank] : {std::pair<std::string_view, int>{"alpha", 0}, {"beta", 1}}) {
    const size_t found = text.find(word);
    if (found == std::string_view::npos) continue;
    stability = rank;
    const std::optional<int64_t> number = ParseInt(text.substr(found + word.size()));
    if (!number) return std::nullopt;
    minor = *number;
    text = text.substr(0, found);
    break;
  }
  const std::optional<int64_t> major = ParseInt(text);
  if (!major) return std::nullopt;
  return std::tuple(stability, *major, minor);
}

json::Value VersionEntry(const std::string& group, const std::string& version) {
  return json::Obj({{"groupVersion", group + "/" + version}, {"version", version}});
}

json::Value ApiResource(const schema::Kind& kind) {
  json::Object object = {{"name", kind.plural},
                         {"singularName", kind.singular},
                         {"namespaced", kind.namespaced},
                         {"kind", kind.kind},
                         {"verbs", json::Strings(ResourceVerbs(kind))}};
  if (!kind.short_names.empty()) object.emplace_back("shortNames", json::Strings(kind.short_names));
  if (!kind.categories.empty()) object.emplace_back("categories", json::Strings(kind.categories));
  return json::Value(std::move(object));
}

std::vector<schema::Subresource> AllSubresources(const schema::Kind& kind) {
  std::vector<schema::Subresource> all = SubresourcesOf(kind);
  if (kind.status_subresource) {
    all.push_back({"status", {"get", "patch", "put"}, kind.group, kind.version, kind.kind});
  }
  return all;
}

json::Value SubresourceEntry(const schema::Kind& kind, const schema::Subresource& sub) {
  json::Object object = {{"name", kind.plural + "/" + sub.name},
                         {"singularName", ""},
                         {"namespaced", kind.namespaced}};
  if (sub.group != kind.group) {
    object.emplace_back("group", sub.group);
    object.emplace_back("version", sub.version);
  }
  object.emplace_back("kind", sub.kind);
  object.emplace_back("verbs", json::Strings(VerbsOfMethods(sub.verbs)));
  return json::Value(std::move(object));
}

json::Value ResponseKind(std::string_view group, std::string_view version, std::string_view kind) {
  return json::Obj({{"group", group}, {"version", version}, {"kind", kind}});
}

json::Value AggregatedResource(const schema::Kind& kind) {
  json::Object object = {{"resource", kind.plural},
                         {"responseKind", ResponseKind(kind.group, kind.version, kind.kind)},
                         {"scope", kind.namespaced ? "Namespaced" : "Cluster"},
                         {"singularResource", kind.singular},
                         {"verbs", json::Strings(ResourceVerbs(kind))}};
  if (!kind.short_names.empty()) object.emplace_back("shortNames", json::Strings(kind.short_names));
  if (!kind.categories.empty()) object.emplace_back("categories", json::Strings(kind.categories));
  json::Array subresources;
  for (const schema::Subresource& sub : AllSubresources(kind)) {
    subresources.push_back(
        json::Obj({{"subresource", sub.name},
                   {"responseKind", ResponseKind(sub.group, sub.version, sub.kind)},
                   {"verbs", json::Strings(VerbsOfMethods(sub.verbs))}}));
  }
  if (!subresources.empty())
    object.emplace_back("subresources", json::Value(std::move(subresources)));
  return json::Value(std::move(object));
}

// POST /api/v1/namespaces/NS/bindings is a resource without objects.
json::Value BindingsEntry(bool aggregated) {
  if (!aggregated) {
    return json::Obj({{"name", "bindings"},
                      {"singularName", "binding"},
                      {"namespaced", true},
                      {"kind", "Binding"},
                      {"verbs", json::List({"create"})}});
  }
  return json::Obj({{"resource", "bindings"},
                    {"responseKind", ResponseKind("", "v1", "Binding")},
                    {"scope", "Namespaced"},
                    {"singularResource", "binding"},
                    {"verbs", json::List({"create"})}});
}

// "v2" or "v2beta1" when the client prefers aggregated discovery in a version that we write; ""
// otherwise.
std::string WantedAggregation(std::string_view accept) {
  for (const MediaType& type : ParseAccept(accept)) {
    if (type.type != "application/json") continue;
    if (type.Parameter("as").empty()) return {};
    if (type.Parameter("as") != "APIGroupDiscoveryList" ||
        type.Parameter("g") != "apidiscovery.k8s.io")
      continue;
    const std::string_view version = type.Parameter("v");
    if (version == "v2" || version == "v2beta1") return std::string(version);
  }
  return {};
}

}  // namespace

bool VersionBefore(std::string_view a, std::string_view b) {
  const auto left = ParseVersion(a), right = ParseVersion(b);
  if (left && right) return *left > *right;
  if (left || right) return left.has_value();
  return a < b;
}

Discovery::Discovery(const ResourceRegistry& registry, const Aggregator& aggregator,
                     std::string server_address)
    : registry_(registry), aggregator_(aggregator), server_address_(std::move(server_address)) {}

std::vector<Discovery::ServedVersion> Discovery::VersionsOf(std::string_view group) const {
  std::vector<ServedVersion> versions;
  for (const auto& [name, service] : aggregator_.services().all()) {
    if (service->group == group)
      versions.push_back({service->version, service->version_priority, service});
  }
  for (const ResourcePtr& resource : registry_.All()) {
    const schema::Kind& kind = *resource->kind;
    const auto same = [&](const ServedVersion& one) { return one.version == kind.version; };
    if (kind.group == group && std::ranges::none_of(versions, same))
      versions.push_back({kind.version, kOwnVersionPriority, nullptr});
  }
  std::ranges::sort(versions, [](const ServedVersion& a, const ServedVersion& b) {
    return a.priority != b.priority ? a.priority > b.priority : VersionBefore(a.version, b.version);
  });
  return versions;
}

// Our own by name, then those of others as they ask for it.
std::vector<std::string> Discovery::Groups() const {
  std::set<std::string> own;
  for (const ResourcePtr& resource : registry_.All()) {
    if (!resource->kind->group.empty()) own.insert(resource->kind->group);
  }
  std::map<std::string, int64_t> others;
  for (const auto& [name, service] : aggregator_.services().all()) {
    if (own.contains(service->group)) continue;
    int64_t& priority = others[service->group];
    priority = std::max(priority, service->group_priority);
  }
  std::vector<std::pair<std::string, int64_t>> sorted(others.begin(), others.end());
  std::ranges::sort(sorted, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<std::string> groups(own.begin(), own.end());
  for (auto& [group, priority] : sorted) groups.push_back(std::move(group));
  return groups;
}

json::Value Discovery::GroupObject(const std::string& group, bool with_type) const {
  json::Array versions;
  for (const ServedVersion& version : VersionsOf(group))
    versions.push_back(VersionEntry(group, version.version));
  json::Object object;
  if (with_type) object = {{"kind", "APIGroup"}, {"apiVersion", "v1"}};
  const json::Value preferred = versions.empty() ? json::Value() : versions.front();
  object.emplace_back("name", group);
  object.emplace_back("versions", json::Value(std::move(versions)));
  object.emplace_back("preferredVersion", preferred);
  return json::Value(std::move(object));
}

bool Discovery::Handle(Call& call) {
  const RequestInfo& info = call.info();
  if (info.parts.empty() || info.is_resource) return false;
  const bool core = info.parts[0] == "api";
  if (!core && info.parts[0] != "apis") return false;
  if (info.method != "GET" && info.method != "HEAD") {
    call.Fail(MethodNotAllowedError());
    return true;
  }
  if (info.HasGroupVersion()) {
    if (!registry_.HasGroupVersion(info.group, info.version)) return false;
    const std::string group_version =
        info.group.empty() ? info.version : info.group + "/" + info.version;
    Reply(call, "list " + group_version, &Discovery::ResourceList, group_version);
    return true;
  }
  if (!core && info.parts.size() == 2) {
    if (VersionsOf(info.parts[1]).empty()) return false;
    Reply(call, "group " + info.parts[1], &Discovery::Group, info.parts[1]);
    return true;
  }
  const std::string version = WantedAggregation(call.request().headers.Get("Accept"));
  if (!version.empty()) {
    const std::string which = info.parts[0] + "/" + version;
    Reply(call, "aggregated " + which, &Discovery::Aggregated, which,
          fmt::format("application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList",
                      version));
  } else {
    Reply(call, info.parts[0], core ? &Discovery::CoreVersions : &Discovery::GroupList, "");
  }
  return true;
}

void Discovery::Reply(Call& call, const std::string& key,
                      json::Value (Discovery::*make)(std::string_view) const,
                      std::string_view argument, std::string_view content_type) {
  if (content_type == "application/json" && call.writer()->TakesValues())
    return call.Reply(200, (this->*make)(argument));
  const Revisions now{registry_.revision(), aggregator_.revision()};
  if (revisions_ != now) documents_.clear();
  revisions_ = now;
  std::string& document = documents_[key];
  if (document.empty()) document = json::Write((this->*make)(argument)) + "\n";
  net::Response response;
  response.headers.Add("Content-Type", std::string(content_type));
  response.headers.Add("Vary", "Accept");
  response.body = document;
  call.Send(std::move(response));
}

json::Value Discovery::CoreVersions(std::string_view) const {
  json::Array addresses;
  if (!server_address_.empty()) {
    addresses.push_back(
        json::Obj({{"clientCIDR", "0.0.0.0/0"}, {"serverAddress", server_address_}}));
  }
  return json::Obj({{"kind", "APIVersions"},
                    {"versions", json::List({"v1"})},
                    {"serverAddressByClientCIDRs", json::Value(std::move(addresses))}});
}

json::Value Discovery::GroupList(std::string_view) const {
  json::Array groups;
  for (const std::string& group : Groups()) groups.push_back(GroupObject(group, false));
  return json::Obj(
      {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", json::Value(std::move(groups))}});
}

json::Value Discovery::Group(std::string_view group) const {
  return GroupObject(std::string(group), true);
}

json::Value Discovery::ResourceList(std::string_view group_version) const {
  json::Array resources;
  if (group_version == "v1") resources.push_back(BindingsEntry(false));
  for (const ResourcePtr& resource : registry_.All()) {
    const schema::Kind& kind = *resource->kind;
    if (kind.GroupVersion() != group_version) continue;
    resources.push_back(ApiResource(kind));
    for (const schema::Subresource& sub : AllSubresources(kind))
      resources.push_back(SubresourceEntry(kind, sub));
  }
  return json::Obj({{"kind", "APIResourceList"},
                    {"apiVersion", "v1"},
                    {"groupVersion", group_version},
                    {"resources", json::Value(std::move(resources))}});
}

json::Value Discovery::AggregatedVersion(const std::string& group,
                                         const ServedVersion& served) const {
  if (served.service != nullptr)
    return DiscoveryOf(*served.service, aggregator_.ResourcesOf(served.service->name));
  json::Array resources;
  if (group.empty()) resources.push_back(BindingsEntry(true));
  for (const ResourcePtr& resource : registry_.All()) {
    const schema::Kind& kind = *resource->kind;
    if (kind.group == group && kind.version == served.version)
      resources.push_back(AggregatedResource(kind));
  }
  return json::Obj({{"version", served.version},
                    {"resources", json::Value(std::move(resources))},
                    {"freshness", "Current"}});
}

json::Value Discovery::Aggregated(std::string_view which) const {
  const bool core = which.starts_with("api/");
  const std::string_view discovery_version = which.substr(which.find('/') + 1);
  const std::vector<std::string> groups = core ? std::vector<std::string>{""} : Groups();
  json::Array items;
  for (const std::string& group : groups) {
    json::Array versions;
    for (const ServedVersion& version : VersionsOf(group))
      versions.push_back(AggregatedVersion(group, version));
    json::Value metadata = json::Obj({{"creationTimestamp", nullptr}});
    if (!core) metadata = json::Obj({{"name", group}, {"creationTimestamp", nullptr}});
    items.push_back(
        json::Obj({{"metadata", metadata}, {"versions", json::Value(std::move(versions))}}));
  }
  return json::Obj({{"kind", "APIGroupDiscoveryList"},
                    {"apiVersion", fmt::format("apidiscovery.k8s.io/{}", discovery_version)},
                    {"metadata", json::Obj()},
                    {"items", json::Value(std::move(items))}});
}

}  // namespace muster::apiserver
