// src/gateway/route_table.h
//
// RouteTable: where a request goes, by its host. An immutable snapshot that the control-plane loop
// makes of InferenceServices, Deployments, Services and EndpointSlices, and the gateway's thread
// reads; a stalled control plane leaves the last one in force.
//
// Hosts of InferenceService iris in namespace ml:
//   iris-ml.example.com   iris.ml.example.com   iris.ml[.svc[.cluster.local]]
//   the ClusterIP of its Service   iris (from pods of ml, or where no other namespace has one)
//
// A host is compared with those that are there, as a whole. The first of them may be that of
// several (serving/hosts.h): it belongs to who is added first.
//
// Thread: any (immutable once made).

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "client/informer.h"
#include "gateway/traffic_counters.h"
#include "json/value.h"

namespace muster::gateway {

struct Backend {
  std::string host;
  uint16_t port = 0;
  auto operator<=>(const Backend&) const = default;
};

// The pods of one Deployment.
struct PodGroup {
  std::string deployment;  // "iris-predictor"
  int64_t weight = 0;      // of 100
  bool asleep = false;     // no pod is wanted; a request wakes one
  std::vector<Backend> ready;
  std::shared_ptr<TrafficCounters> counters;
};

struct Route {
  client::ObjectKey key;
  std::vector<PodGroup> groups;
  Duration timeout{};
  int64_t most_at_once = 0;  // requests at one pod; 0: no limit
  bool v2 = false;           // speaks the Open Inference Protocol
  std::string why_not;       // why no pod is ready, as its condition says

  const PodGroup* Find(std::string_view deployment) const;
};

struct GraphRoute {
  client::ObjectKey key;
  json::Value nodes;
  Duration timeout{};
};

class RouteTable {
 public:
  // REQUIRES, of both: in the order of serving::HasHostBefore.
  void Add(Route route, std::string_view cluster_ip);
  void Add(GraphRoute graph, std::string_view cluster_ip);
  // Of pods, for names that several namespaces have.
  void AddPod(std::string_view ip, std::string_view ns) { pods_.emplace(ip, ns); }

  // `peer` is the address of who asks, "10.42.0.7:4711".
  const client::ObjectKey* Resolve(std::string_view host, std::string_view peer) const;
  // For who asks from a namespace; "": unknown.
  const client::ObjectKey* ResolveIn(std::string_view ns, std::string_view host) const;
  std::shared_ptr<const Route> FindRoute(const client::ObjectKey& key) const;
  std::shared_ptr<const GraphRoute> FindGraph(const client::ObjectKey& key) const;
  const std::map<client::ObjectKey, std::shared_ptr<const Route>>& routes() const {
    return routes_;
  }
  bool empty() const { return routes_.empty() && graphs_.empty(); }
  // A name without its namespace would not do.
  bool HasAmbiguousNames() const;

 private:
  void AddHosts(const client::ObjectKey& key, std::string_view cluster_ip);

  std::map<client::ObjectKey, std::shared_ptr<const Route>> routes_;
  std::map<client::ObjectKey, std::shared_ptr<const GraphRoute>> graphs_;
  std::map<std::string, client::ObjectKey, std::less<>> hosts_;  // whole ones
  std::map<std::string, std::vector<client::ObjectKey>, std::less<>> names_;
  std::map<std::string, std::string, std::less<>> pods_;  // address -> namespace
};

}  // namespace muster::gateway
