#include "controllers/podautoscaler/autoscaler_pass.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "controllers/podautoscaler/metric_wish.h"
#include "schema/conditions.h"

namespace muster::controllers {
namespace {

constexpr char kScale[] = "scale";
constexpr char kAbleToScale[] = "AbleToScale";
constexpr char kScalingActive[] = "ScalingActive";
constexpr char kScalingLimited[] = "ScalingLimited";
constexpr Duration kDiscoveryWait = seconds(1);

// What all metrics together ask for.
struct Verdict {
  bool valid = false;
  int64_t replicas = 0;
  std::string metric;    // the one that decides
  json::Value measured;  // status.currentMetrics
};

class Pass {
 public:
  Pass(const AutoscalerInput& input, AutoscalerMemory& memory, Time now, client::Reconciled& out)
      : input_(input),
        autoscaler_(input.autoscaler),
        spec_(autoscaler_["spec"]),
        reference_(spec_["scaleTargetRef"]),
        key_(client::KeyOf(autoscaler_)),
        memory_(memory),
        now_(now),
        out_(out),
        conditions_(autoscaler_["status"]["conditions"].items()) {}

  void Run() {
    out_.LookAgainAt(NextTick(now_, input_.period, input_.seed));
    if (LearnsOfRefusal() || !FindTarget()) return;
    const auto answer = input_.observations.find(kScale);
    if (answer == input_.observations.end()) return AskScale();
    if (client::IsFailure(answer->second)) return FailTarget(answer->second["message"].Str());
    scale_ = answer->second;
    fleet_.wanted = scale_["spec"]["replicas"].AsInt();
    fleet_.counted = scale_["status"]["replicas"].AsInt();
    fleet_.tolerance = ToleranceOf(spec_["behavior"]);
    fleet_.now = now_;
    Find(kAbleToScale, true, "SucceededGetScale",
         "the HPA controller was able to get the target's current scale");
    if (NeedsMetrics()) {
      if (ReadsSelector() && !AsksForMetrics()) ScaleByMetrics();
      return;
    }
    if (fleet_.wanted == 0) {
      Find(kScalingActive, false, "ScalingDisabled",
           "scaling is disabled since the replica count of the target is zero");
      return WriteStatus(0, {}, 0);
    }
    const bool above = fleet_.wanted > Most();
    Rescale(above ? Most() : Least(),
            fmt::format("Current number of replicas {} Spec.{}", above ? "above" : "below",
                        above ? "MaxReplicas" : "MinReplicas"),
            {});
  }

 private:
  int64_t Least() const { return spec_["minReplicas"].AsInt(1); }
  int64_t Most() const { return spec_["maxReplicas"].AsInt(); }
  bool NeedsMetrics() const {
    if (fleet_.wanted == 0 && Least() != 0) return false;
    return fleet_.wanted <= Most() && fleet_.wanted >= Least();
  }

  void Tell(client::EventType type, std::string reason, std::string message) {
    out_.Event(autoscaler_, type, std::move(reason), std::move(message));
  }
  void Warn(std::string reason, std::string message) {
    Tell(client::EventType::kWarning, std::move(reason), std::move(message));
  }

  void Find(std::string_view type, bool holds, std::string_view reason, std::string message) {
    auto found = std::find_if(
        conditions_.begin(), conditions_.end(),
        [type](const json::Value& condition) { return condition["type"].AsString() == type; });
    const std::string_view status = holds ? "True" : "False";
    const json::Value before = found == conditions_.end() ? json::Value() : *found;
    json::Value condition =
        json::Obj({{"type", type},
                   {"status", status},
                   {"lastTransitionTime", schema::TransitionTime(before, status, now_)},
                   {"reason", reason},
                   {"message", std::move(message)}});
    if (found == conditions_.end()) {
      conditions_.push_back(std::move(condition));
    } else {
      *found = std::move(condition);
    }
  }
  void Find(std::string_view type, const Finding& finding) {
    Find(type, finding.holds, finding.reason, finding.message);
  }

  // What became of the last pass's writes. True if one was refused: the next tick tries again.
  bool LearnsOfRefusal() {
    const auto refused = input_.observations.find(client::kRefusedWrite);
    const bool is_refused = refused != input_.observations.end();
    const std::optional<AutoscalerMemory::Attempt> attempt = std::exchange(memory_.attempt, {});
    if (!attempt.has_value()) return is_refused;
    const std::string size = fmt::format("New size: {}; reason: {}", attempt->to, attempt->reason);
    if (is_refused && refused->second["kind"].AsString() == "Scale") {
      const std::string error = refused->second["message"].Str();
      Warn("FailedRescale", fmt::format("{}; error: {}", size, error));
      Find(kAbleToScale, false, "FailedUpdateScale",
           fmt::format("the HPA controller was unable to update the target scale: {}", error));
      WriteStatus(attempt->from, autoscaler_["status"]["currentMetrics"]);
      return true;
    }
    memory_.scaled_at = attempt->at;
    RememberChange(spec_["behavior"], attempt->from, attempt->to, attempt->at, memory_.history);
    if (is_refused) Tell(client::EventType::kNormal, "SuccessfulRescale", size);
    return is_refused;
  }

  bool FindTarget() {
    const std::string_view version = reference_["apiVersion"].AsString();
    if (std::count(version.begin(), version.end(), '/') > 1) {
      FailTarget(fmt::format("unexpected GroupVersion string: {}", version));
      return false;
    }
    const std::string group = GroupOf(version);
    const std::string_view kind_name = reference_["kind"].AsString();
    const client::ServedKind* kind = input_.find_kind(group, kind_name);
    if (kind == nullptr && !input_.kinds_known) {
      out_.LookAgainAt(now_ + kDiscoveryWait);
      return false;
    }
    if (kind == nullptr) {
      FailTarget(NoSuchKind(group, kind_name));
      return false;
    }
    target_ = {kind->resource, kind->namespaced ? key_.ns : "", reference_["name"].Str(), kScale};
    return true;
  }

  void FailTarget(std::string error) {
    Find(kAbleToScale, false, "FailedGetScale",
         fmt::format("the HPA controller was unable to get the target's current scale: {}", error));
    Warn("FailedGetScale", std::move(error));
    const json::Value& status = autoscaler_["status"];
    WriteStatus(status["currentReplicas"].AsInt(), status["currentMetrics"]);
  }

  // Everything that does not depend on the scale is asked with it.
  void AskScale() {
    client::Probe probe;
    probe.name = kScale;
    probe.target = target_;
    probe.failures_too = true;
    out_.Ask(std::move(probe));
    const auto& metrics = spec_["metrics"].items();
    if (std::none_of(metrics.begin(), metrics.end(), IsCustomMetric)) return;
    client::Probe group;
    group.name = group.path = kCustomMetricsGroup;
    group.failures_too = true;
    out_.Ask(std::move(group));
  }

  // Metrics cannot be had: nothing is changed.
  void FailMetrics(std::string error, json::Value measured) {
    Warn("FailedComputeMetricsReplicas", std::move(error));
    WriteStatus(fleet_.wanted, std::move(measured));
  }

  void FailSelector(const char* reason, std::string error) {
    Warn(reason, error);
    FailMetrics(std::move(error), {});
  }

  // The pods that the target means. False if there is none to go by, which is told.
  bool ReadsSelector() {
    const std::string text = scale_["status"]["selector"].Str();
    if (text.empty()) {
      Find(kScalingActive, false, "InvalidSelector",
           "the HPA target's scale is missing a selector");
      FailSelector("SelectorRequired", "selector is required");
      return false;
    }
    const Result<schema::LabelSelector> selector = schema::LabelSelector::Parse(text);
    if (!selector) {
      std::string error =
          fmt::format("couldn't convert selector into a corresponding internal selector object: {}",
                      selector.error().message());
      Find(kScalingActive, false, "InvalidSelector", error);
      FailSelector("InvalidSelector", std::move(error));
      return false;
    }
    selector_ = selector->ToString();
    memory_.selector = *selector;
    fleet_.pods = input_.pods_of(*selector);
    return !SharesPods();
  }

  bool SharesPods() {
    std::vector<std::string> names;
    for (const auto& [key, memory] : input_.all) {
      if (key.ns != key_.ns || !memory.selector.has_value()) continue;
      const bool selects =
          std::any_of(fleet_.pods.begin(), fleet_.pods.end(), [&](const json::Value& pod) {
            return memory.selector->Matches(pod["metadata"]["labels"]);
          });
      if (selects) names.push_back(key.ToString());
    }
    if (names.size() < 2) return false;
    std::string error = fmt::format("pods by selector {} are controlled by multiple HPAs: [{}]",
                                    selector_, Join(names, " "));
    Find(kScalingActive, false, "AmbiguousSelector", error);
    FailSelector("AmbiguousSelector", std::move(error));
    return true;
  }

  MetricScope Scope() const { return {key_.ns, selector_, input_.observations, input_.find_kind}; }

  // True if an answer is missing: all are asked for at once, and the scale with them.
  bool AsksForMetrics() {
    const MetricScope scope = Scope();
    std::map<std::string, client::Probe> probes;
    bool missing = false;
    for (const json::Value& metric : spec_["metrics"].items()) {
      if (IsCustomMetric(metric)) missing |= !input_.observations.contains(kCustomMetricsGroup);
      std::optional<client::Probe> probe = QuestionFor(metric, scope);
      if (!probe.has_value()) continue;
      missing |= !input_.observations.contains(probe->name);
      const std::string name = probe->name;
      probes.emplace(name, *std::move(probe));
    }
    if (!missing) return false;
    out_.events.clear();  // the pass that has the answers tells all of it
    AskScale();
    for (auto& [name, probe] : probes) out_.Ask(std::move(probe));
    return true;
  }

  Verdict Judge() {
    Verdict verdict;
    json::Array measured;
    std::optional<MetricWish> first_invalid;
    size_t invalid = 0;
    const auto& metrics = spec_["metrics"].items();
    for (const json::Value& metric : metrics) {
      MetricWish wish = WishOf(metric, fleet_, Scope());
      if (wish.valid) {
        measured.push_back(std::move(wish.status));
        if (verdict.replicas == 0 || wish.replicas > verdict.replicas) {
          verdict.replicas = wish.replicas;
          verdict.metric = std::move(wish.name);
        }
        continue;
      }
      measured.push_back(json::Obj({{"type", ""}}));
      Warn(wish.reason, wish.problem);
      ++invalid;
      if (!first_invalid.has_value()) first_invalid = std::move(wish);
    }
    verdict.measured = json::Value(std::move(measured));
    // Those that are missing might want more than there are.
    verdict.valid = invalid < metrics.size() && (invalid == 0 || verdict.replicas >= fleet_.wanted);
    if (verdict.valid) {
      Find(kScalingActive, true, "ValidMetricFound",
           fmt::format("the HPA was able to successfully calculate a replica count from {}",
                       verdict.metric));
    } else if (first_invalid.has_value()) {
      Find(kScalingActive, false, first_invalid->reason,
           fmt::format("the HPA was unable to compute the replica count: {}",
                       first_invalid->problem));
      FailMetrics(fmt::format("invalid metrics ({} invalid out of {}), first error is: {}", invalid,
                              metrics.size(), first_invalid->error),
                  verdict.measured);
    }
    return verdict;
  }

  void ScaleByMetrics() {
    ScalingHistory& history = memory_.history;
    if (history.recommendations.empty()) history.recommendations.push_back({fleet_.wanted, now_});
    const Verdict verdict = Judge();
    if (!verdict.valid) return;
    const int64_t wanted = std::max<int64_t>(verdict.replicas, 0);
    const std::string reason = wanted > fleet_.wanted
                                   ? fmt::format("{} above target", verdict.metric)
                                   : "All metrics below target";
    const Decision decision =
        Decide(spec_["behavior"], {fleet_.wanted, wanted, Least(), Most()}, history, now_);
    Find(kAbleToScale, decision.able_to_scale);
    Find(kScalingLimited, decision.limited);
    if (decision.replicas != fleet_.wanted)
      return Rescale(decision.replicas, reason, verdict.measured);
    WriteStatus(fleet_.wanted, verdict.measured, fleet_.wanted);
  }

  void Rescale(int64_t replicas, std::string reason, const json::Value& measured) {
    out_.Update(target_, json::Obj({{"kind", "Scale"},
                                    {"apiVersion", "autoscaling/v1"},
                                    {"metadata", scale_["metadata"]},
                                    {"spec", json::Obj({{"replicas", replicas}})}}));
    Find(kAbleToScale, true, "SucceededRescale",
         fmt::format("the HPA controller was able to update the target scale to {}", replicas));
    Tell(client::EventType::kNormal, "SuccessfulRescale",
         fmt::format("New size: {}; reason: {}", replicas, reason));
    memory_.attempt = AutoscalerMemory::Attempt{fleet_.wanted, replicas, std::move(reason), now_};
    memory_.scaled_at = now_;
    WriteStatus(fleet_.wanted, measured, replicas);
  }

  // Zeros and empty lists are absent.
  static json::Value Normal(json::Value status) {
    if (status["currentReplicas"].AsInt() == 0) status = status.Remove("currentReplicas");
    if (status["currentMetrics"].empty()) status = status.Remove("currentMetrics");
    return status;
  }

  // `desired`: nullopt leaves what was said before.
  void WriteStatus(int64_t current, json::Value measured, std::optional<int64_t> desired = {}) {
    const json::Value& before = autoscaler_["status"];
    json::Value status =
        before.Set("currentReplicas", current)
            .Set("currentMetrics", std::move(measured))
            .Set("conditions", json::Value(conditions_))
            .Set("desiredReplicas", desired.value_or(before["desiredReplicas"].AsInt()));
    const std::optional<Time> last = ParseTime(before["lastScaleTime"].AsString());
    if (memory_.scaled_at.has_value() && (!last.has_value() || *last < *memory_.scaled_at))
      status = std::move(status).Set("lastScaleTime", FormatTime(*memory_.scaled_at));
    if (const std::optional<int64_t> generation = autoscaler_["metadata"]["generation"].Int())
      status = std::move(status).Set("observedGeneration", *generation);
    status = Normal(std::move(status));
    if (status == Normal(before)) return;
    out_.UpdateStatus({client::resources::kHorizontalPodAutoscalers, key_.ns, key_.name, ""},
                      autoscaler_.Set("status", std::move(status)));
  }

  const AutoscalerInput& input_;
  const json::Value& autoscaler_;
  const json::Value& spec_;
  const json::Value& reference_;
  const client::ObjectKey key_;
  AutoscalerMemory& memory_;
  const Time now_;
  client::Reconciled& out_;
  json::Array conditions_;
  client::Target target_;
  json::Value scale_;
  std::string selector_;
  Fleet fleet_;
};

}  // namespace

Time NextTick(Time now, Duration period, uint64_t seed) {
  const Duration phase(static_cast<int64_t>(seed % static_cast<uint64_t>(period.count())));
  const Duration since = (now.time_since_epoch() - phase) % period;
  return now - since + period;
}

void ReconcileAutoscaler(const AutoscalerInput& input, AutoscalerMemory& memory, Time now,
                         client::Reconciled& out) {
  Pass(input, memory, now, out).Run();
}

}  // namespace muster::controllers
