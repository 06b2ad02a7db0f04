#include "apiserver/discovery/discovery.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "apiserver/discovery/subresources.h"
#include "apiserver/errors.h"
#include "base/strings.h"
#include "json/write.h"

namespace muster::apiserver {
namespace {

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

std::vector<std::string> VersionsOf(const ResourceRegistry& registry, std::string_view group) {
  std::vector<std::string> versions;
  for (const ResourcePtr& resource : registry.All()) {
    const schema::Kind& kind = *resource->kind;
    if (kind.group == group && std::ranges::find(versions, kind.version) == versions.end()) {
      versions.push_back(kind.version);
    }
  }
  std::ranges::sort(versions, VersionBefore);
  return versions;
}

std::vector<std::string> GroupsOf(const ResourceRegistry& registry) {
  std::set<std::string> groups;
  for (const ResourcePtr& resource : registry.All()) {
    if (!resource->kind->group.empty()) groups.insert(resource->kind->group);
  }
  return {groups.begin(), groups.end()};
}

json::Value GroupObject(const ResourceRegistry& registry, const std::string& group,
                        bool with_type) {
  json::Array versions;
  for (const std::string& version : VersionsOf(registry, group))
    versions.push_back(VersionEntry(group, version));
  json::Object object;
  if (with_type) object = {{"kind", "APIGroup"}, {"apiVersion", "v1"}};
  const json::Value preferred = versions.empty() ? json::Value() : versions.front();
  object.emplace_back("name", group);
  object.emplace_back("versions", json::Value(std::move(versions)));
  object.emplace_back("preferredVersion", preferred);
  return json::Value(std::move(object));
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
std::string AggregatedVersion(std::string_view accept) {
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

Discovery::Discovery(const ResourceRegistry& registry, std::string server_address)
    : registry_(registry), server_address_(std::move(server_address)) {}

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
    if (VersionsOf(registry_, info.parts[1]).empty()) return false;
    Reply(call, "group " + info.parts[1], &Discovery::Group, info.parts[1]);
    return true;
  }
  const std::string version = AggregatedVersion(call.request().headers.Get("Accept"));
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
  if (revision_ != registry_.revision()) documents_.clear();
  revision_ = registry_.revision();
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
  for (const std::string& group : GroupsOf(registry_))
    groups.push_back(GroupObject(registry_, group, false));
  return json::Obj(
      {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", json::Value(std::move(groups))}});
}

json::Value Discovery::Group(std::string_view group) const {
  return GroupObject(registry_, std::string(group), true);
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

json::Value Discovery::Aggregated(std::string_view which) const {
  const bool core = which.starts_with("api/");
  const std::string_view discovery_version = which.substr(which.find('/') + 1);
  const std::vector<std::string> groups = core ? std::vector<std::string>{""} : GroupsOf(registry_);
  json::Array items;
  for (const std::string& group : groups) {
    json::Array versions;
    for (const std::string& version : VersionsOf(registry_, group)) {
      json::Array resources;
      if (core) resources.push_back(BindingsEntry(true));
      for (const ResourcePtr& resource : registry_.All()) {
        const schema::Kind& kind = *resource->kind;
        if (kind.group == group && kind.version == version)
          resources.push_back(AggregatedResource(kind));
      }
      versions.push_back(json::Obj({{"version", version},
                                    {"resources", json::Value(std::move(resources))},
                                    {"freshness", "Current"}}));
    }
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
