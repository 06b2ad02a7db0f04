#include "apiserver/aggregation/aggregated_discovery.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::apiserver {
namespace {

json::Value ResponseKind(const ApiService& service, const json::Value& resource) {
  return json::Obj({{"group", resource["group"].Str(service.group)},
                    {"version", resource["version"].Str(service.version)},
                    {"kind", resource["kind"].Str()}});
}

// Only texts: clients read the whole document or nothing of it.
json::Value Texts(const json::Value& list) {
  json::Array texts;
  for (const json::Value& one : list.items())
    if (one.IsString()) texts.push_back(one);
  return json::Value(std::move(texts));
}

std::string_view ScopeOf(const json::Value& resource) {
  return resource["namespaced"].AsBool() ? "Namespaced" : "Cluster";
}

json::Value MainEntry(const ApiService& service, const json::Value& resource) {
  json::Value entry = json::Obj({{"resource", resource["name"].Str()},
                                 {"responseKind", ResponseKind(service, resource)},
                                 {"scope", ScopeOf(resource)},
                                 {"singularResource", resource["singularName"].Str()},
                                 {"verbs", Texts(resource["verbs"])}});
  for (const char* list : {"shortNames", "categories"})
    if (!resource[list].empty()) entry = std::move(entry).Set(list, Texts(resource[list]));
  return entry;
}

// Stands for a resource of which only subresources are served, as of custom metrics.
json::Value ParentEntry(std::string_view name, const json::Value& resource) {
  return json::Obj({{"resource", name},
                    {"responseKind", json::Obj({{"group", ""}, {"version", ""}, {"kind", ""}})},
                    {"scope", ScopeOf(resource)},
                    {"singularResource", ""},
                    {"verbs", json::Value(json::Array())}});
}

}  // namespace

json::Value DiscoveryOf(const ApiService& service, const json::Value& list) {
  std::vector<json::Value> entries;
  std::map<std::string, size_t, std::less<>> places;
  std::map<std::string, json::Array, std::less<>> subresources;
  for (const json::Value& resource : list["resources"].items()) {
    const std::string_view name = resource["name"].AsString();
    const size_t slash = name.find('/');
    if (name.empty()) continue;
    const std::string parent(name.substr(0, slash));
    const auto [place, added] = places.try_emplace(parent, entries.size());
    if (slash == std::string_view::npos) {
      json::Value entry = MainEntry(service, resource);
      if (added) {
        entries.push_back(std::move(entry));
      } else {
        entries[place->second] = std::move(entry);
      }
      continue;
    }
    if (added) entries.push_back(ParentEntry(parent, resource));
    subresources[parent].push_back(json::Obj({{"subresource", name.substr(slash + 1)},
                                              {"responseKind", ResponseKind(service, resource)},
                                              {"verbs", Texts(resource["verbs"])}}));
  }
  for (auto& [parent, subs] : subresources) {
    json::Value& entry = entries[places.find(parent)->second];
    entry = entry.Set("subresources", json::Value(std::move(subs)));
  }
  const bool current = service.available && !list.IsNull();
  json::Array resources(std::make_move_iterator(entries.begin()),
                        std::make_move_iterator(entries.end()));
  return json::Obj({{"version", service.version},
                    {"resources", json::Value(std::move(resources))},
                    {"freshness", current ? "Current" : "Stale"}});
}

}  // namespace muster::apiserver
