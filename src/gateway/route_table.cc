#include "gateway/route_table.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/strings.h"
#include "serving/inference_service.h"

namespace muster::gateway {
namespace {

constexpr std::string_view kClusterSuffixes[] = {".svc.cluster.local", ".svc"};

// "Iris.ML.svc:80" -> "iris.ml.svc"
std::string HostName(std::string_view host) {
  const size_t colon = host.rfind(':');
  if (colon != host.npos && host.find(']', colon) == host.npos) host = host.substr(0, colon);
  while (host.ends_with('.')) host.remove_suffix(1);
  return ToLower(host);
}

}  // namespace

const PodGroup* Route::Find(std::string_view deployment) const {
  for (const PodGroup& group : groups) {
    if (group.deployment == deployment) return &group;
  }
  return nullptr;
}

void RouteTable::AddHosts(const client::ObjectKey& key, std::string_view cluster_ip) {
  for (const std::string& host :
       {fmt::format("{}-{}.{}", key.name, key.ns, serving::kIngressDomain),
        fmt::format("{}.{}.{}", key.name, key.ns, serving::kIngressDomain),
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
  const std::string whole = HostName(host);
  std::string_view name = whole;
  for (const std::string_view suffix : kClusterSuffixes) {
    if (!name.ends_with(suffix)) continue;
    name.remove_suffix(suffix.size());
    break;
  }
  if (const auto found = hosts_.find(name); found != hosts_.end()) return &found->second;
  const auto bare = names_.find(name);
  if (bare == names_.end()) return nullptr;
  if (bare->second.size() == 1) return &bare->second.front();
  const auto pod = pods_.find(peer.substr(0, peer.rfind(':')));
  if (pod == pods_.end()) return nullptr;
  const auto own = std::ranges::find(bare->second, pod->second, &client::ObjectKey::ns);
  return own == bare->second.end() ? nullptr : &*own;
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
