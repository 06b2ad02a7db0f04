#include "ray/service_pass.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "base/strings.h"
#include "controllers/pods/ownership.h"
#include "controllers/pods/pod_facts.h"
#include "controllers/pods/pod_template.h"
#include "controllers/pods/template_hash.h"
#include "json/parse.h"
#include "ray/cluster.h"
#include "ray/cluster_status.h"
#include "ray/dashboard.h"
#include "schema/conditions.h"

namespace muster::ray {
namespace {

using client::EventType;
using client::Reconciled;
namespace core = client::resources;

constexpr std::string_view kApplicationsPath = "api/serve/applications/";

std::string NameOf(const json::Value& object) { return object["metadata"]["name"].Str(); }
bool IsTerminating(const json::Value& object) {
  return object["metadata"].Has("deletionTimestamp");
}

// Of what makes another cluster necessary: not how many workers a group has.
std::string HashOf(const json::Value& cluster_spec) {
  json::Array groups;
  for (json::Value group : cluster_spec["workerGroupSpecs"].items()) {
    for (const char* size : {"replicas", "minReplicas", "maxReplicas", "scaleStrategy"})
      group = group.Remove(size);
    groups.push_back(std::move(group));
  }
  return controllers::TemplateHash(
      json::SortKeys(cluster_spec.Set("workerGroupSpecs", json::Value(std::move(groups)))), 0);
}

// What Ray Serve says of one cluster.
struct Serving {
  bool known = false;  // it could be asked
  json::Value applications;
  bool all_running = false;
  std::vector<std::string> proxies;  // addresses of the healthy ones
};

Serving ParseServing(const json::Value& answer, const json::Value& config) {
  Serving serving;
  if (client::IsFailure(answer) || answer.IsNull()) return serving;
  serving.known = true;
  serving.applications = answer["applications"];
  const auto& wanted = config["applications"].items();
  serving.all_running =
      std::all_of(wanted.begin(), wanted.end(), [&serving](const json::Value& application) {
        const std::string_view name = application["name"].AsString("default");
        return serving.applications[name]["status"].AsString() == "RUNNING";
      });
  for (const auto& [node, proxy] : answer["proxies"].members()) {
    if (proxy["status"].AsString() == "HEALTHY") serving.proxies.push_back(proxy["node_ip"].Str());
  }
  return serving;
}

json::Value ApplicationStatuses(const json::Value& applications) {
  json::Object statuses;
  for (const auto& [name, application] : applications.members()) {
    json::Object deployments;
    for (const auto& [deployment, state] : application["deployments"].members()) {
      deployments.emplace_back(deployment, json::Obj({{"status", state["status"]},
                                                      {"message", state["message"].AsString()}}));
    }
    statuses.emplace_back(name, json::Obj({{"status", application["status"]},
                                           {"message", application["message"].AsString()},
                                           {"serveDeploymentStatuses", std::move(deployments)}}));
  }
  return json::Value(std::move(statuses));
}

class Pass {
 public:
  Pass(const json::Value& ray_service, const ServiceChildren& children,
       const client::Observations& observations, Time now, uint64_t seed)
      : service_(ray_service),
        spec_(ray_service["spec"]),
        children_(children),
        observations_(observations),
        now_(now),
        seed_(seed),
        status_(ray_service["status"]) {}

  Reconciled Run() {
    out_.subject = service_;
    if (!ReadConfig()) return std::move(out_);
    ChooseClusters();
    Serving serving;
    if (pending_ != nullptr && Serve(*pending_, serving) && serving.all_running &&
        TakesRequests(*pending_)) {
      Switch();
    } else if (active_ != nullptr) {
      Serving present;
      Serve(*active_, present);
    }
    KeepServices();
    RemoveReplaced();
    ReportConditions();
    WriteStatus();
    return std::move(out_);
  }

 private:
  std::string Ns() const { return service_["metadata"]["namespace"].Str(); }
  std::string Name() const { return NameOf(service_); }

  void Set(std::string_view name, json::Value value) {
    status_ = std::move(status_).Set(name, std::move(value));
  }

  bool ReadConfig() {
    const Result<std::vector<json::Value>> documents =
        json::ParseYaml(spec_["serveConfigV2"].AsString());
    if (documents && documents->size() == 1 && (*documents)[0].IsObject()) {
      config_ = (*documents)[0];
      return true;
    }
    out_.Event(service_, EventType::kWarning, "InvalidServeConfig",
               "serveConfigV2 is not one YAML object");
    return false;
  }

  const json::Value* Find(const json::Value& name) const {
    for (const json::Value& cluster : children_.clusters) {
      if (cluster["metadata"]["name"] == name && !IsTerminating(cluster)) return &cluster;
    }
    return nullptr;
  }

  // ---- which clusters ----

  void ChooseClusters() {
    active_ = Find(status_["activeServiceStatus"]["rayClusterName"]);
    pending_ = Find(status_["pendingServiceStatus"]["rayClusterName"]);
    const std::string hash = HashOf(spec_["rayClusterConfig"]);
    const auto has_hash = [&hash](const json::Value& cluster) {
      return cluster["metadata"]["annotations"][kClusterHashAnnotation].AsString() == hash;
    };
    const bool keeps = spec_["upgradeStrategy"]["type"].AsString() == "None";
    if (active_ == nullptr) status_ = status_.Remove("activeServiceStatus");
    if (active_ != nullptr && (keeps || has_hash(*active_))) {
      if (has_hash(*active_)) Resize(*active_);
      pending_ = nullptr;
    } else if (pending_ == nullptr || !has_hash(*pending_)) {
      pending_ = nullptr;
      return MakeCluster(hash);
    } else {
      Resize(*pending_);
    }
    if (pending_ == nullptr) status_ = status_.Remove("pendingServiceStatus");
  }

  void MakeCluster(const std::string& hash) {
    const auto is_taken = [this](const std::string& name) {
      return std::ranges::any_of(children_.clusters, [&name](const json::Value& cluster) {
        return NameOf(cluster) == name;
      });
    };
    // One that is there already of this hash was made by a pass whose status was not written.
    for (const json::Value& cluster : children_.clusters) {
      const json::Value& annotations = cluster["metadata"]["annotations"];
      if (annotations[kClusterHashAnnotation].AsString() != hash || IsTerminating(cluster) ||
          &cluster == active_ || annotations.Has(kReplacedAtAnnotation))
        continue;
      return Set("pendingServiceStatus", json::Obj({{"rayClusterName", NameOf(cluster)}}));
    }
    const std::string name = controllers::PodNames(Name(), Hash64(hash, seed_)).Next(is_taken);
    const json::Value labels = json::Obj(
        {{std::string(kOriginNameLabel), Name()}, {std::string(kOriginKindLabel), "RayService"}});
    out_.Create(
        {resources::kRayClusters, Ns(), name, ""},
        json::Obj(
            {{"apiVersion", "ray.io/v1"},
             {"kind", "RayCluster"},
             {"metadata",
              json::Obj({{"name", name},
                         {"namespace", Ns()},
                         {"labels", labels},
                         {"annotations", json::Obj({{std::string(kClusterHashAnnotation), hash}})},
                         {"ownerReferences", controllers::ControlledByOnly(service_)}})},
             {"spec", spec_["rayClusterConfig"]}}));
    out_.Event(service_, EventType::kNormal, "CreatedRayCluster",
               fmt::format("Created RayCluster {}/{}", Ns(), name));
    Set("pendingServiceStatus", json::Obj({{"rayClusterName", name}}));
  }

  // The autoscaler, where it runs, says how many workers there are.
  void Resize(const json::Value& cluster) {
    const json::Value& wanted = spec_["rayClusterConfig"];
    if (wanted["enableInTreeAutoscaling"].AsBool() ||
        cluster["spec"]["workerGroupSpecs"] == wanted["workerGroupSpecs"])
      return;
    out_.PatchMerge(
        {resources::kRayClusters, Ns(), NameOf(cluster), ""},
        json::Obj({{"spec", json::Obj({{"workerGroupSpecs", wanted["workerGroupSpecs"]}})}}));
  }

  // ---- what they serve ----

  // Whether what Ray Serve says of the cluster is known, into `serving`.
  bool Serve(const json::Value& cluster, Serving& serving) {
    const json::Value& conditions = cluster["status"]["conditions"];
    const char* role = &cluster == pending_ ? "pendingServiceStatus" : "activeServiceStatus";
    json::Value status = json::Obj({{"rayClusterName", NameOf(cluster)}});
    if (cluster.Has("status"))
      status = std::move(status).Set("rayClusterStatus", cluster["status"]);
    if (schema::ConditionHolds(conditions, kHeadPodReady)) {
      const auto answer = observations_.find(NameOf(cluster));
      if (answer == observations_.end()) {
        out_.Ask(AskDashboard(NameOf(cluster), Ns(), NameOf(cluster), kApplicationsPath));
        asked_ = true;
        return false;
      }
      serving = ParseServing(answer->second, config_);
      out_.LookAgainAt(now_ +
                       (serving.all_running && pending_ == nullptr ? kCalmPeriod : kServicePeriod));
    }
    if (serving.known) {
      PutApplications(cluster, serving);
      LabelPods(cluster, serving);
      status =
          std::move(status).Set("applicationStatuses", ApplicationStatuses(serving.applications));
    }
    Set(role, std::move(status));
    return serving.known;
  }

  void PutApplications(const json::Value& cluster, Serving& serving) {
    const std::string hash = controllers::TemplateHash(config_, 0);
    const bool put = cluster["metadata"]["annotations"][kServeConfigAnnotation].AsString() == hash;
    if (put && !serving.applications.empty()) return;
    serving.all_running = false;  // of what was put before
    out_.Update(DashboardTarget(Ns(), NameOf(cluster), kApplicationsPath), config_);
    if (!put) {
      out_.PatchMerge(
          {resources::kRayClusters, Ns(), NameOf(cluster), ""},
          json::Obj({{"metadata",
                      json::Obj({{"annotations",
                                  json::Obj({{std::string(kServeConfigAnnotation), hash}})}})}}));
    }
    out_.Event(service_, EventType::kNormal, "UpdatedServeApplications",
               fmt::format("Put serveConfigV2 to RayCluster {}/{}", Ns(), NameOf(cluster)));
  }

  void LabelPods(const json::Value& cluster, const Serving& serving) {
    const bool without_head = spec_["excludeHeadPodFromServeSvc"].AsBool();
    for (const json::Value& pod : children_.pods) {
      if (pod["metadata"]["labels"][kClusterLabel].AsString() != NameOf(cluster)) continue;
      if (!controllers::IsActive(pod)) continue;
      const std::string address = pod["status"]["podIP"].Str();
      const bool serves = std::ranges::find(serving.proxies, address) != serving.proxies.end() &&
                          !(without_head && IsHead(pod));
      const std::string_view wanted = serves ? "true" : "false";
      if (pod["metadata"]["labels"][kServeLabel].AsString() == wanted) continue;
      out_.PatchMerge(
          {core::kPods, Ns(), NameOf(pod), ""},
          json::Obj({{"metadata",
                      json::Obj({{"labels", json::Obj({{std::string(kServeLabel), wanted}})}})}}));
    }
  }

  // Pods of the cluster that the serving Service leads to.
  int64_t EndpointsOf(const json::Value& cluster) const {
    return std::ranges::count_if(children_.pods, [&cluster](const json::Value& pod) {
      const json::Value& labels = pod["metadata"]["labels"];
      return labels[kClusterLabel].AsString() == NameOf(cluster) &&
             labels[kServeLabel].AsString() == "true" && controllers::IsReady(pod) &&
             !IsTerminating(pod);
    });
  }
  bool TakesRequests(const json::Value& cluster) const { return EndpointsOf(cluster) > 0; }

  void Switch() {
    out_.Event(service_, EventType::kNormal, "SwitchedRayCluster",
               fmt::format("Requests go to RayCluster {}/{} from now on", Ns(), NameOf(*pending_)));
    Set("activeServiceStatus", status_["pendingServiceStatus"]);
    status_ = status_.Remove("pendingServiceStatus");
    active_ = std::exchange(pending_, nullptr);
  }

  // ---- Services ----

  void KeepServices() {
    const json::Value* cluster = active_;
    if (cluster == nullptr) return;
    KeepService(HeadServiceOf(service_), children_.head_service,
                json::Obj({{std::string(kClusterLabel), NameOf(*cluster)},
                           {std::string(kNodeTypeLabel), "head"}}),
                {{"gcs-server", kGcsPort},
                 {"dashboard", kDashboardPort},
                 {"client", kClientPort},
                 {"metrics", kMetricsPort},
                 {"serve", kServePort}});
    KeepService(ServeServiceOf(service_), children_.serve_service,
                json::Obj({{std::string(kClusterLabel), NameOf(*cluster)},
                           {std::string(kServeLabel), "true"}}),
                {{"serve", kServePort}});
  }

  void KeepService(const std::string& name, const json::Value& present, json::Value selector,
                   std::initializer_list<std::pair<std::string_view, int64_t>> ports) {
    const client::Target target{core::kServices, Ns(), name, ""};
    if (!present.IsNull()) {
      const bool ours = client::ControllerOf(present)["uid"] == service_["metadata"]["uid"];
      if (!ours || present["spec"]["selector"] == selector) return;
      // As one: a merge would leave labels of the old selector.
      return out_.Update(target, present.SetPath({"spec", "selector"}, std::move(selector)));
    }
    json::Array list;
    for (const auto& [port, number] : ports) {
      list.push_back(json::Obj(
          {{"name", port}, {"port", number}, {"targetPort", number}, {"protocol", "TCP"}}));
    }
    const json::Value labels = json::Obj(
        {{std::string(kOriginNameLabel), Name()}, {std::string(kOriginKindLabel), "RayService"}});
    out_.Create(
        target,
        json::Obj({{"apiVersion", "v1"},
                   {"kind", "Service"},
                   {"metadata",
                    json::Obj({{"name", name},
                               {"namespace", Ns()},
                               {"labels", labels},
                               {"ownerReferences", controllers::ControlledByOnly(service_)}})},
                   {"spec", json::Obj({{"selector", std::move(selector)},
                                       {"ports", json::Value(std::move(list))}})}}));
  }

  // ---- clusters that were replaced ----

  void RemoveReplaced() {
    const Duration delay =
        seconds(spec_["rayClusterDeletionDelaySeconds"].AsInt(kDefaultDeletionDelaySeconds));
    for (const json::Value& cluster : children_.clusters) {
      const std::string name = NameOf(cluster);
      const bool wanted = &cluster == active_ || &cluster == pending_ ||
                          status_["pendingServiceStatus"]["rayClusterName"].AsString() == name;
      if (wanted || IsTerminating(cluster)) continue;
      const std::optional<Time> since =
          ParseTime(cluster["metadata"]["annotations"][kReplacedAtAnnotation].AsString());
      const client::Target target{resources::kRayClusters, Ns(), name, ""};
      if (!since) {
        out_.PatchMerge(
            target,
            json::Obj({{"metadata",
                        json::Obj({{"annotations", json::Obj({{std::string(kReplacedAtAnnotation),
                                                               FormatTime(now_)}})}})}}));
        continue;
      }
      if (now_ < *since + delay) {
        out_.LookAgainAt(*since + delay);
        continue;
      }
      client::DeleteOptions options;
      options.precondition_uid = cluster["metadata"]["uid"].Str();
      options.propagation_policy = "Background";
      out_.Delete(target, std::move(options));
      out_.Event(service_, EventType::kNormal, "DeletedRayCluster",
                 fmt::format("Deleted RayCluster {}/{}, which was replaced", Ns(), name));
    }
  }

  // ---- status ----

  void ReportConditions() {
    const int64_t generation = service_["metadata"]["generation"].AsInt();
    const int64_t endpoints = active_ == nullptr ? 0 : EndpointsOf(*active_);
    json::Value conditions = status_["conditions"];
    conditions = WithCondition(conditions, "Ready", endpoints > 0,
                               endpoints > 0        ? "NonZeroServeEndpoints"
                               : active_ == nullptr ? "Initializing"
                                                    : "ZeroServeEndpoints",
                               endpoints > 0 ? "Number of serve endpoints is greater than 0" : "",
                               generation, now_);
    const bool upgrades = active_ != nullptr && status_.Has("pendingServiceStatus");
    conditions = WithCondition(conditions, "UpgradeInProgress", upgrades,
                               upgrades ? "BothActivePendingClustersExist" : "NoPendingCluster", "",
                               generation, now_);
    Set("conditions", std::move(conditions));
    status_ = endpoints == 0 ? status_.Remove("numServeEndpoints")
                             : std::move(status_).Set("numServeEndpoints", endpoints);
    status_ = endpoints == 0 ? status_.Remove("serviceStatus")
                             : std::move(status_).Set("serviceStatus", "Running");
  }

  // Not in a pass that only asks: the next one, with the answers, follows at once.
  void WriteStatus() {
    Set("observedGeneration", service_["metadata"]["generation"]);
    if (asked_ || status_ == service_["status"]) return;
    Set("lastUpdateTime", FormatTime(now_));
    client::Target target{resources::kRayServices, Ns(), Name(), "status"};
    out_.writes.insert(
        out_.writes.begin(),
        {client::Write::Verb::kUpdate, std::move(target), service_.Set("status", status_), {}});
  }

  const json::Value& service_;
  const json::Value& spec_;
  const ServiceChildren& children_;
  const client::Observations& observations_;
  const Time now_;
  const uint64_t seed_;
  json::Value status_;
  json::Value config_;
  const json::Value* active_ = nullptr;
  const json::Value* pending_ = nullptr;
  bool asked_ = false;
  Reconciled out_;
};

}  // namespace

std::string HeadServiceOf(const json::Value& ray_service) {
  return NameOf(ray_service) + "-head-svc";
}
std::string ServeServiceOf(const json::Value& ray_service) {
  return NameOf(ray_service) + "-serve-svc";
}

Reconciled ReconcileService(const json::Value& ray_service, const ServiceChildren& children,
                            const client::Observations& observations, Time now, uint64_t seed) {
  return Pass(ray_service, children, observations, now, seed).Run();
}

}  // namespace muster::ray
