#include "gateway/route_table.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "serving/hosts.h"

namespace muster::gateway {
const PodGroup* Route::Find(std::string_view deployment) const {
  for (const PodGroup& group : groups) {
    if (group.deployment == deployment) return &group;
  }
  return nullptr;
}

void RouteTable::AddHosts(const client::ObjectKey& key, std::string_view cluster_ip) {
  for (const std::string& host :
       {serving::SharedHostOf(key.name, key.ns), serving::OwnHostOf(key.name, key.ns),
        fmt::format("{}.{}", key.name, key.ns)})
    hosts_.emplace(host, key);
  if (!cluster_ip.empty()) hosts_.emplace(cluster_ip, key);
  names_[key.name].push_back(key);
}

void RouteTable::Add(Route route, std::string_view cluster_ip) {
  const client::ObjectKey key = route.key;
  AddHosts(key, cluster_ip);
  routes_.emplace(key, std::make_shared<const Route>(std::move(route)));
}

void RouteTable::Add(GraphRoute graph, std::string_view cluster_ip) {
  const client::ObjectKey key = graph.key;
  if (routes_.contains(key)) return;  // the Service of this name is the InferenceService's
  AddHosts(key, cluster_ip);
  graphs_.emplace(key, std::make_shared<const GraphRoute>(std::move(graph)));
}

bool RouteTable::HasAmbiguousNames() const {
  return std::ranges::any_of(names_, [](const auto& entry) { return entry.second.size() > 1; });
}

const client::ObjectKey* RouteTable::Resolve(std::string_view host, std::string_view peer) const {
  const auto pod = pods_.find(peer.substr(0, peer.rfind(':')));
  return ResolveIn(pod == pods_.end() ? "" : pod->second, host);
}

const client::ObjectKey* RouteTable::ResolveIn(std::string_view ns, std::string_view host) const {
  const std::string whole = serving::HostName(host);
  const std::string_view name = serving::WithoutClusterSuffix(whole);
  // "iris.svc" is first of all that of a namespace svc.
  for (const std::string_view one : {std::string_view(whole), name}) {
    if (const auto found = hosts_.find(one); found != hosts_.end()) return &found->second;
  }
  const auto bare = names_.find(name);
  if (bare == names_.end()) return nullptr;
  const auto own = std::ranges::find(bare->second, ns, &client::ObjectKey::ns);
  if (own != bare->second.end()) return &*own;
  return bare->second.size() == 1 ? &bare->second.front() : nullptr;
}

std::shared_ptr<const Route> RouteTable::FindRoute(const client::ObjectKey& key) const {
  const auto found = routes_.find(key);
  return found == routes_.end() ? nullptr : found->second;
}

std::shared_ptr<const GraphRoute> RouteTable::FindGraph(const client::ObjectKey& key) const {
  const auto found = graphs_.find(key);
  return found == graphs_.end() ? nullptr : found->second;
}

}  // namespace muster::gateway
