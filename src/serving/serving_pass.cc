#include "serving/serving_pass.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/strings.h"
#include "json/write.h"
#include "schema/conditions.h"
#include "serving/builtin_runtime.h"
#include "serving/children.h"
#include "serving/hosts.h"
#include "serving/model_storage.h"
#include "serving/predictor_pod.h"
#include "serving/predictor_status.h"

namespace muster::serving {
namespace {

using client::Reconciled;
using client::Target;
using json::Value;
namespace resources = client::resources;

constexpr int64_t kWhole = 100;  // percent

bool IsOurs(const Value& object, const InferenceService& service) {
  return !object.IsNull() && client::ControllerOf(object)["uid"].AsString() == service.uid;
}

bool IsTerminating(const Value& object) { return object["metadata"].Has("deletionTimestamp"); }

// "iris-predictor-00007" -> 7
int64_t NumberOf(std::string_view revision) {
  return ParseInt(revision.substr(revision.rfind('-') + 1)).value_or(0);
}

class Pass {
 public:
  Pass(const InferenceService& service, const ServingChildren& children,
       const GatewayAddress& gateway, Time now)
      : service_(service),
        children_(children),
        gateway_(gateway),
        now_(now),
        stable_(children.stable),
        canary_(children.canary),
        status_(service.object["status"]),
        component_(status_["components"]["predictor"]) {}

  Reconciled Run() {
    out_.subject = service_.object;
    if (service_.stopped) {
      Stop();
    } else if (!service_.model().IsNull() && children_.choice.runtime.IsNull()) {
      Refuse(children_.choice.reason, children_.choice.message);
    } else {
      Result<Value> made = PredictorPodTemplate(service_, children_.choice.runtime);
      if (made) {
        Proceed(std::move(*made));
      } else {
        Refuse(kInvalidPredictorSpec, made.error().message());
      }
    }
    WriteStatus();
    return std::move(out_);
  }

 private:
  Target Of(const client::Resource& resource, std::string name) const {
    return {resource, service_.ns, std::move(name), ""};
  }

  void Delete(const client::Resource& resource, const Value& object) {
    if (!IsOurs(object, service_) || IsTerminating(object)) return;
    client::DeleteOptions options;
    options.precondition_uid = object["metadata"]["uid"].Str();
    options.propagation_policy = "Background";
    out_.Delete(Of(resource, object["metadata"]["name"].Str()), std::move(options));
  }

  void Event(client::EventType type, std::string reason, std::string message) {
    out_.Event(service_.object, type, std::move(reason), std::move(message));
  }

  // ---- stopped, refused ----

  void Stop() {
    for (const Value* deployment : {&children_.stable, &children_.canary})
      Delete(resources::kDeployments, *deployment);
    for (const Value* one :
         {&children_.service, &children_.predictor_service, &children_.canary_service})
      Delete(resources::kServices, *one);
    Delete(resources::kEndpointSlices, children_.gateway_slice);
    Delete(resources::kHorizontalPodAutoscalers, children_.autoscaler);
    component_ = component_.Remove("traffic");
    SetConditions({{"PredictorReady", "False", "Stopped", "", true},
                   {"IngressReady", "False", "Stopped", "", true},
                   {"Stopped", "True", "Stopped", "", false}});
    status_ = status_.Remove("modelStatus").Remove("url").Remove("address");
  }

  // What is served goes on being served.
  void Refuse(const std::string& reason, const std::string& message) {
    if (status_["modelStatus"]["lastFailureInfo"]["message"].AsString() != message)
      Event(client::EventType::kWarning, reason, message);
    const Value info = json::Obj({{"reason", reason}, {"message", message}});
    Value model = json::Obj({{"transitionStatus", "InvalidSpec"}, {"lastFailureInfo", info}});
    if (status_["modelStatus"].Has("states"))
      model = model.Set("states", status_["modelStatus"]["states"]);
    status_ = status_.Set("modelStatus", model);
    SetConditions({{"PredictorReady", "False", reason, message, true},
                   {"IngressReady", Reachable() ? "True" : "False", "", "", true}});
  }

  // ---- what there should be ----

  void Proceed(Value pod_template) {
    spec_.strategy = service_.predictor()["deploymentStrategy"];
    spec_.pod_template = std::move(pod_template);
    const std::string text = json::Write(spec_.pod_template) +
                             (spec_.strategy.IsNull() ? "" : json::Write(spec_.strategy));
    spec_.hash = fmt::format("{:016x}", Hash64(text));
    spec_.revision = RevisionNow();
    for (const std::string& name : children_.taken) {
      Event(client::EventType::kWarning, "NameTaken",
            fmt::format("{} exists already and does not belong to InferenceService {}; delete it "
                        "or rename the InferenceService",
                        name, service_.name));
    }
    KeepProgram();
    KeepDeployments();
    KeepServices();
    KeepAutoscaler();
    ReportRevisions();
    ReportModel();
    ReportConditions();
  }

  // The revision that has this spec, or a new one.
  std::string RevisionNow() const {
    if (stable_.exists && stable_.hash == spec_.hash) return stable_.revision;
    if (canary_.exists && canary_.hash == spec_.hash) return canary_.revision;
    const int64_t last = std::max({NumberOf(stable_.revision), NumberOf(canary_.revision),
                                   NumberOf(component_["latestCreatedRevision"].AsString())});
    return fmt::format("{}-{:05}", PredictorName(service_.name), last + 1);
  }

  // A part of the traffic is for the new spec, and there is an older one that was ready.
  bool CanaryWanted() const {
    return service_.canary_percent && *service_.canary_percent < kWhole && stable_.exists &&
           stable_.hash != spec_.hash && !component_["latestReadyRevision"].AsString().empty();
  }

  void KeepProgram() {
    if (!UsesSklearnConfigMap(spec_.pod_template["spec"])) return;
    if (children_.program == SklearnProgram()) return;
    const Target target = Of(resources::kConfigMaps, kSklearnConfigMap);
    const Value wanted = MakeSklearnConfigMap(service_.ns);
    if (children_.program.empty()) return out_.Create(target, wanted);
    out_.PatchMerge(target, json::Obj({{"data", wanted["data"]}}));
  }

  void KeepDeployments() {
    const std::string stable = PredictorName(service_.name);
    const std::string canary = CanaryName(service_.name);
    if (CanaryWanted()) {
      KeepDeployment(canary, children_.canary, canary_, CanaryReplicas());
      ScaleDeployment(stable, children_.stable, stable_);
      return;
    }
    KeepDeployment(stable, children_.stable, stable_, std::max<int64_t>(service_.scale.least, 1));
    if (!canary_.exists) return;
    // It serves until the other has taken over, and the gateway has been told.
    if (StableHasTakenOver() && component_["traffic"].size() < 2)
      Delete(resources::kDeployments, children_.canary);
  }

  bool StableHasTakenOver() const { return stable_.hash == spec_.hash && stable_.rolled_out; }

  // As many of the least as its part of the traffic says; none while it gets nothing.
  int64_t CanaryReplicas() const {
    const int64_t percent = *service_.canary_percent;
    if (percent == 0) return 0;
    return std::max<int64_t>((service_.scale.least * percent + kWhole - 1) / kWhole, 1);
  }

  void KeepDeployment(const std::string& name, const Value& object, const RevisionState& state,
                      int64_t replicas) {
    const Target target = Of(resources::kDeployments, name);
    if (object.IsNull())
      return out_.Create(target, MakeDeployment(service_, name, spec_, replicas));
    if (!IsOurs(object, service_) || IsTerminating(object)) return;
    if (state.hash != spec_.hash) {
      out_.writes.push_back(
          {client::Write::Verb::kPatchJson, target, DeploymentPatch(name, spec_), {}});
    }
    if (name == CanaryName(service_.name)) {
      if (state.wanted != replicas && (replicas == 0 || !service_.scale.ByTraffic()))
        Scale(target, replicas);
    } else {
      ScaleDeployment(name, object, state);
    }
  }

  // Whose number nobody else decides.
  void ScaleDeployment(const std::string& name, const Value& object, const RevisionState& state) {
    const ScalePolicy& scale = service_.scale;
    if (scale.external || !IsOurs(object, service_) || IsTerminating(object)) return;
    const int64_t most = scale.ByTraffic() || scale.ByPods() ? scale.most : scale.least;
    const int64_t wanted = std::clamp(state.wanted, scale.least, most);
    if (wanted != state.wanted) Scale(Of(resources::kDeployments, name), wanted);
  }

  void Scale(const Target& target, int64_t replicas) {
    out_.PatchMerge(target, json::Obj({{"spec", json::Obj({{"replicas", replicas}})}}));
  }

  void KeepServices() {
    const int port = ServerPortOf(spec_.pod_template);
    KeepPodService(PredictorName(service_.name), children_.predictor_service, port);
    if (CanaryWanted() || canary_.exists) {
      KeepPodService(CanaryName(service_.name), children_.canary_service, port);
    } else {
      Delete(resources::kServices, children_.canary_service);
    }
    const Target target = Of(resources::kServices, service_.name);
    if (LosesNameToGraph()) {
      Delete(resources::kServices, children_.service);
      Delete(resources::kEndpointSlices, children_.gateway_slice);
      return;
    }
    if (gateway_.port == 0) {
      Value direct = MakePodService(service_, PredictorName(service_.name), port);
      direct = direct.SetPath({"metadata", "name"}, service_.name);
      return KeepService(target, children_.service, direct);
    }
    KeepService(target, children_.service, MakeGatewayService(service_.object));
    KeepSlice();
  }

  // Without a gateway there are no graphs.
  bool LosesNameToGraph() const { return children_.named_as_a_graph && gateway_.port != 0; }

  void KeepPodService(const std::string& name, const Value& object, int port) {
    KeepService(Of(resources::kServices, name), object, MakePodService(service_, name, port));
  }

  void KeepService(const Target& target, const Value& object, const Value& wanted) {
    if (object.IsNull()) return out_.Create(target, wanted);
    if (!IsOurs(object, service_) || IsTerminating(object)) return;
    const Value& is = object["spec"]["ports"].At(0);
    const Value& port = wanted["spec"]["ports"].At(0);
    // A target that is not said is the port itself.
    const bool same_port = is["port"] == port["port"] &&
                           (port["targetPort"].IsNull() || is["targetPort"] == port["targetPort"]);
    if (same_port && object["spec"]["selector"] == wanted["spec"]["selector"]) return;
    out_.PatchMerge(target, json::Obj({{"spec", wanted["spec"]}}));
  }

  void KeepSlice() {
    const Target target = Of(resources::kEndpointSlices, GatewaySliceName(service_.name));
    const Value wanted = MakeGatewaySlice(service_.object, gateway_);
    const Value& is = children_.gateway_slice;
    if (is.IsNull()) return out_.Create(target, wanted);
    if (!IsOurs(is, service_) || IsTerminating(is)) return;
    const Value& address = is["endpoints"].At(0)["addresses"].At(0);
    if (address.AsString() == gateway_.address && is["ports"].At(0)["port"] == Value(gateway_.port))
      return;
    out_.PatchMerge(target,
                    json::Obj({{"endpoints", wanted["endpoints"]}, {"ports", wanted["ports"]}}));
  }

  void KeepAutoscaler() {
    if (!service_.scale.ByPods())
      return Delete(resources::kHorizontalPodAutoscalers, children_.autoscaler);
    const std::string name = PredictorName(service_.name);
    const Target target = Of(resources::kHorizontalPodAutoscalers, name);
    const Value spec = AutoscalerSpec(service_);
    const Value& is = children_.autoscaler;
    if (is.IsNull()) {
      return out_.Create(
          target, MakeChild("autoscaling/v2", "HorizontalPodAutoscaler", name, service_.object)
                      .Set("spec", spec));
    }
    if (!IsOurs(is, service_) || IsTerminating(is)) return;
    for (const auto& [key, value] : spec.members()) {
      if (is["spec"][key] != value) return out_.PatchMerge(target, json::Obj({{"spec", spec}}));
    }
  }

  // ---- what is said about it ----

  // What the spec says now.
  const RevisionState& Newest() const { return CanaryWanted() ? canary_ : stable_; }
  bool NewestIsThere() const { return Newest().exists && Newest().hash == spec_.hash; }

  // No pod of it is wanted at times, and a request brings one.
  bool MaySleep() const { return service_.scale.ByTraffic() && service_.scale.least == 0; }

  // First when all of its pods are; from then on as long as one is, so that more pods, fewer, or
  // none in its sleep change nothing.
  bool NewestIsReady() const {
    if (!NewestIsThere()) return false;
    const bool was_ready =
        service_.object["status"]["components"]["predictor"]["latestReadyRevision"].AsString() ==
        spec_.revision;
    if (!was_ready) return Newest().rolled_out && Newest().ready > 0;
    if (Newest().ready > 0 || Newest().wanted == 0) return true;
    return MaySleep() && FailureOfNewest().IsNull();
  }

  void ReportRevisions() {
    component_ = component_.Set("latestCreatedRevision", spec_.revision);
    if (NewestIsReady()) {
      component_ = component_.Set("latestReadyRevision", spec_.revision);
      const std::string before = component_["latestRolledoutRevision"].Str();
      if (!CanaryWanted() && before != spec_.revision) {
        if (!before.empty()) component_ = component_.Set("previousRolledoutRevision", before);
        component_ = component_.Set("latestRolledoutRevision", spec_.revision);
      }
    }
    component_ =
        component_.Set("traffic", Traffic())
            .Set("url", "http://" + SharedHostOf(PredictorName(service_.name), service_.ns))
            .Set("address",
                 json::Obj({{"url", ClusterUrlOf(PredictorName(service_.name), service_.ns)}}));
    if (component_["traffic"].IsNull()) component_ = component_.Remove("traffic");
  }

  static Value Share(const std::string& revision, bool latest, int64_t percent) {
    return json::Obj(
        {{"revisionName", revision}, {"latestRevision", latest}, {"percent", percent}});
  }

  // The gateway reads this: two entries are the canary (the latest) and the Deployment beside it.
  Value Traffic() const {
    if (CanaryWanted()) {
      const int64_t percent = NewestIsReady() ? *service_.canary_percent : 0;
      return json::List({Share(spec_.revision, true, percent),
                         Share(stable_.revision, false, kWhole - percent).Set("tag", "prev")});
    }
    // Being promoted: the canary's pods are of the same spec and take what they took, or more.
    const bool promoted = canary_.exists && canary_.hash == spec_.hash && canary_.ready > 0;
    if (promoted && !StableHasTakenOver()) {
      const int64_t before = component_["traffic"].At(0)["percent"].AsInt();
      const int64_t percent = std::clamp<int64_t>(before, 0, kWhole);
      return json::List({Share(spec_.revision, true, percent),
                         Share(spec_.revision, false, kWhole - percent).Set("tag", "prev")});
    }
    if (component_["latestReadyRevision"].AsString().empty()) return {};
    return json::List({Share(component_["latestReadyRevision"].Str(), true, kWhole)});
  }

  std::string NewestName() const {
    return CanaryWanted() ? CanaryName(service_.name) : PredictorName(service_.name);
  }

  Value FailureOfNewest() const {
    const Value failure = FailureOf(children_.pods, AppLabel(NewestName()), spec_.revision);
    const std::string_view uri = service_.model()["storageUri"].AsString();
    const std::string_view message = failure["message"].AsString();
    // The server knows it by the folder where it is mounted.
    if (uri.empty() || !message.contains(kModelDir)) return failure;
    return failure.Set("message", fmt::format("{} ({} is {})", message, kModelDir, uri));
  }

  Value FailureNow() const {
    return !NewestIsThere() || NewestIsReady() ? Value() : FailureOfNewest();
  }

  void ReportModel() {
    const Value failure = FailureNow();
    const bool served = !component_["latestReadyRevision"].AsString().empty();
    std::string_view active = served ? "Loaded" : "Pending";
    if (served && Newest().wanted == 0 && !CanaryWanted()) active = "Standby";
    std::string_view target = active, transition = "UpToDate";
    if (!failure.IsNull()) {
      target = "FailedToLoad", transition = "BlockedByFailedLoad";
    } else if (!NewestIsReady()) {
      target = Newest().total > 0 && NewestIsThere() ? "Loading" : "Pending";
      transition = "InProgress";
    }
    Value model = json::Obj(
        {{"transitionStatus", transition},
         {"states", json::Obj({{"activeModelState", active}, {"targetModelState", target}})},
         {"copies", json::Obj({{"failedCopies", failure.IsNull() ? 0 : 1},
                               {"totalCopies", Newest().ready}})}});
    if (!failure.IsNull()) model = model.Set("lastFailureInfo", failure);
    status_ = status_.Set("modelStatus", model);
  }

  ServingCondition PredictorCondition() const {
    ServingCondition condition{"PredictorReady", "Unknown", "", "", true};
    const Value& refused = children_.refused_write;
    if (NewestIsReady()) {
      condition.status = "True";
    } else if (!refused.IsNull()) {
      condition = {"PredictorReady", "False", refused["reason"].Str("WriteRefused"),
                   fmt::format("{} {}: {}", refused["verb"].AsString(), refused["kind"].AsString(),
                               refused["message"].AsString()),
                   true};
    } else if (const Value failure = FailureNow(); !failure.IsNull()) {
      condition = {
          "PredictorReady", "False", failure["reason"].Str(),
          fmt::format("pod {}: {}", failure["location"].AsString(), failure["message"].AsString()),
          true};
    } else if (NewestIsThere()) {
      condition.reason = Newest().reason;
      condition.message = Newest().message;
      if (Newest().failed) condition.status = "False";
      if (const std::string why = WhyNoNode(children_.pods, AppLabel(NewestName())); !why.empty()) {
        condition.reason = "Unschedulable";
        condition.message = why;
      }
    }
    return condition;
  }

  // A request to NAME would be answered.
  bool Reachable() const {
    const bool routed = IsOurs(children_.service, service_) &&
                        (gateway_.port == 0 || IsOurs(children_.gateway_slice, service_));
    const bool can_wait = MaySleep() && !component_["latestReadyRevision"].AsString().empty();
    return routed && (children_.stable_reachable || can_wait);
  }

  void ReportConditions() {
    ServingCondition ingress{"IngressReady", Reachable() ? "True" : "Unknown", "", "", true};
    if (LosesNameToGraph()) {
      ingress = {"IngressReady", "False", "NameTaken",
                 fmt::format("InferenceGraph {} is older and has the name; rename one of them",
                             service_.name),
                 true};
    } else if (!children_.taken.empty()) {
      ingress = {"IngressReady", "False", "NameTaken",
                 fmt::format("{} exists already and belongs to somebody else", children_.taken[0]),
                 true};
    } else if (const std::string fault = gateway_.Fault(); !fault.empty()) {
      ingress = {"IngressReady", "False", "GatewayNotListening", fault, true};
      out_.LookAgainAt(now_ + kGatewayLookPeriod);
    } else if (ingress.status != "True") {
      ingress.reason = "NoEndpoints";
      ingress.message = "no pod of it is ready";
    }
    std::vector<ServingCondition> conditions = {PredictorCondition(), ingress};
    if (!children_.host_owner.empty()) {
      conditions.push_back(HostTaken(service_.name, service_.ns, children_.host_owner));
      if (!schema::ConditionHolds(service_.object["status"]["conditions"], "HostTaken"))
        Event(client::EventType::kWarning, "HostTaken", conditions.back().message);
    }
    SetConditions(std::move(conditions));
    const std::string host = children_.host_owner.empty() ? SharedHostOf(service_.name, service_.ns)
                                                          : OwnHostOf(service_.name, service_.ns);
    status_ = status_.Set("url", "http://" + host)
                  .Set("address", json::Obj({{"url", ClusterUrlOf(service_.name, service_.ns)}}));
    NameRuntime();
  }

  void NameRuntime() {
    status_ = status_.Remove("servingRuntimeName").Remove("clusterServingRuntimeName");
    const Value& name = children_.choice.runtime["metadata"]["name"];
    if (name.IsNull()) return;
    status_ = status_.Set(
        children_.choice.of_cluster ? "clusterServingRuntimeName" : "servingRuntimeName", name);
  }

  void SetConditions(std::vector<ServingCondition> list) {
    const Value& before = service_.object["status"]["conditions"];
    status_ = status_.Set("conditions", ConditionsOf(before, std::move(list), now_));
    const bool was = schema::ConditionHolds(before, "Ready");
    const bool is = schema::ConditionHolds(status_["conditions"], "Ready");
    if (is && !was) {
      Event(client::EventType::kNormal, "InferenceServiceReady",
            fmt::format("InferenceService [{}] is Ready", service_.name));
    } else if (was && !is) {
      Event(client::EventType::kWarning, "InferenceServiceNotReady",
            fmt::format("InferenceService [{}] is no longer Ready", service_.name));
    }
  }

  void WriteStatus() {
    status_ = status_.Set("observedGeneration", service_.object["metadata"]["generation"])
                  .Set("deploymentMode", "Standard");
    if (!component_.empty()) status_ = status_.SetPath({"components", "predictor"}, component_);
    if (status_ == service_.object["status"]) return;
    Target target = Of(kInferenceServices, service_.name);
    target.subresource = "status";
    out_.writes.insert(
        out_.writes.begin(),
        {client::Write::Verb::kUpdate, target, service_.object.Set("status", status_), {}});
  }

  const InferenceService& service_;
  const ServingChildren& children_;
  const GatewayAddress& gateway_;
  const Time now_;
  const RevisionState stable_, canary_;
  Value status_;
  Value component_;  // status.components.predictor
  RevisionSpec spec_;
  Reconciled out_;
};

}  // namespace

Reconciled ReconcileService(const InferenceService& service, const ServingChildren& children,
                            const GatewayAddress& gateway, Time now) {
  return Pass(service, children, gateway, now).Run();
}

}  // namespace muster::serving
