#include "apiserver/aggregation/availability_checker.h"

#include <utility>

#include "apiserver/aggregation/extension_request.h"
#include "apiserver/core.h"
#include "apiserver/object_writer.h"
#include "apiserver/services/service_resolver.h"
#include "apiserver/stored_object.h"
#include "apiserver/update.h"
#include "base/log.h"
#include "json/parse.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kServiceNameLabel = "kubernetes.io/service-name";

// How upstream's checker calls itself.
User Checker() { return {"system:kube-aggregator", {std::string(kMastersGroup)}}; }

// A request about itself.
net::Request DiscoveryRequest(const ApiService& service) {
  net::Request request;
  request.method = "GET";
  request.target = service.DiscoveryPath();
  request.headers.Set("Host", service.Host());
  request.headers.Set("Accept", "application/json");
  request.headers.Set("User-Agent", "muster-aggregator");
  SayWhoAsks(Checker(), request.headers);
  return request;
}

json::Value WithCondition(const json::Value& object, json::Value condition) {
  json::Array conditions;
  for (const json::Value& one : object["status"]["conditions"].items())
    if (one["type"] != condition["type"]) conditions.push_back(one);
  conditions.push_back(std::move(condition));
  return object.SetPath({"status", "conditions"}, json::Value(std::move(conditions)));
}

}  // namespace

AvailabilityChecker::AvailabilityChecker(Core& core, const ApiServiceIndex& services)
    : core_(core),
      services_(services),
      unavailable_(core.metrics.Gauge("aggregator_unavailable_apiservice",
                                      "1 for each APIService that is not available.")),
      became_unavailable_(core.metrics.Counter(
          "aggregator_unavailable_apiservice_total",
          "How often an APIService was found not to be available, by reason.")) {}

AvailabilityChecker::~AvailabilityChecker() {
  for (const store::Store::WatchId watch : watches_) core_.store.CancelWatch(watch);
  core_.loop.Cancel(period_);
  for (auto& [name, look] : looks_) core_.loop.Cancel(look.deadline);
}

void AvailabilityChecker::Start() { FollowServices(); }

void AvailabilityChecker::FollowServices() {
  const schema::Registry& registry = schema::Registry::BuiltIn();
  const auto follow = [this](const schema::Kind& kind, bool by_label) {
    const auto watch = core_.store.Watch(
        KeyPrefix(kind), core_.store.CommittedRevision(),
        [this, by_label](const std::vector<store::WatchEvent>& events) {
          if (services_.empty()) return;
          for (const store::WatchEvent& event : events) {
            const KeyParts key = ParseKey(event.entry->key);
            CheckBehind(key.ns, by_label
                                    ? MetaOf(*event.entry).Label(kServiceNameLabel).value_or("")
                                    : key.name);
          }
        });
    if (watch) watches_.push_back(*watch);
  };
  follow(*registry.Find("", "v1", "services"), false);
  follow(*registry.Find("discovery.k8s.io", "v1", "endpointslices"), true);
}

void AvailabilityChecker::CheckBehind(std::string_view ns, std::string_view service) {
  for (const auto& [name, one] : services_.all())
    if (one->service_ns == ns && one->service_name == service) Check(name);
}

void AvailabilityChecker::ArmPeriod() {
  if (period_ != 0 || services_.empty()) return;
  period_ = core_.loop.After(kAvailabilityPeriod, core_.Guarded([this] {
    period_ = 0;
    for (const auto& [name, service] : services_.all()) Check(name);
    ArmPeriod();
  }));
}

// Later: this may run inside a commit.
void AvailabilityChecker::Check(const std::string& name) {
  ArmPeriod();
  Look& look = looks_[name];
  if (look.under_way) {
    look.again = true;
    return;
  }
  if (std::exchange(look.queued, true)) return;
  queue_.push_back(name);
  core_.loop.Post(core_.Guarded([this] { Pump(); }));
}

void AvailabilityChecker::Forget(const std::string& name) {
  unavailable_.Set({{"name", name}}, 0);
  const auto look = looks_.find(name);
  if (look == looks_.end()) return;
  core_.loop.Cancel(look->second.deadline);
  if (look->second.under_way) --under_way_;
  looks_.erase(look);
  ++revision_;
  core_.loop.Post(core_.Guarded([this] { Pump(); }));
}

json::Value AvailabilityChecker::ResourcesOf(const std::string& name) const {
  const auto look = looks_.find(name);
  return look == looks_.end() ? json::Value() : look->second.resources;
}

void AvailabilityChecker::Pump() {
  while (under_way_ < kMaxAvailabilityChecks && !queue_.empty()) {
    const std::string name = std::move(queue_.front());
    queue_.pop_front();
    if (const auto look = looks_.find(name); look != looks_.end() && look->second.queued)
      Begin(name);
  }
}

void AvailabilityChecker::Begin(const std::string& name) {
  Look& look = looks_[name];
  look.queued = look.again = false;
  look.service = services_.FindName(name);
  if (look.service == nullptr) return;
  look.under_way = true;
  ++under_way_;
  const Condition wrong = LookAtService(*look.service);
  if (!wrong.status.empty()) return End(name, wrong);
  look.attempts = 0;
  look.refusal.clear();
  look.deadline = core_.loop.After(kDiscoveryPatience, core_.Guarded([this, name] {
    Look& late = looks_[name];
    late.deadline = 0;
    if (late.refusal.empty()) late.refusal = "timed out waiting for " + late.url;
    EndRefused(name);
  }));
  Ask(name);
}

AvailabilityChecker::Condition AvailabilityChecker::LookAtService(const ApiService& service) {
  const ServiceLookup found =
      LookUpService(core_, service.service_ns, service.service_name, service.port);
  const std::string where =
      fmt::format("service/{} in \"{}\"", service.service_name, service.service_ns);
  switch (found.problem) {
    case ServiceProblem::kNone:
      break;
    case ServiceProblem::kNoService:
      return {"False", "ServiceNotFound", where + " is not present"};
    case ServiceProblem::kNoPort:
      return {"False", "ServicePortError",
              fmt::format("{} is not listening on port {}", where, service.port)};
    case ServiceProblem::kNoSlices:
      return {"False", "EndpointsNotFound", "cannot find endpoints for " + where};
    case ServiceProblem::kNoEndpoints:
      return {"False", "MissingEndpoints",
              fmt::format("endpoints for {} have no addresses with port name \"{}\"", where,
                          found.port_name)};
  }
  if (core_.options.extension_client != nullptr) return {};
  return {"False", "FailedDiscoveryCheck", "this server does not call API services"};
}

void AvailabilityChecker::Ask(const std::string& name) {
  Look& look = looks_[name];
  ++look.attempts;
  look.body.clear();
  look.status = 0;
  const Result<ExtensionTarget> target = TargetOf(core_, *look.service);
  if (!target) return OnAnswer(name, target.error());
  look.url = fmt::format("https://{}:{}{}", target->endpoint.host, target->endpoint.port,
                         look.service->DiscoveryPath());
  net::ClientStreamCallbacks callbacks;
  callbacks.on_head = [this, name](int status, const net::Headers&) {
    looks_[name].status = status;
  };
  callbacks.on_data = [this, name](std::string_view bytes) {
    std::string& body = looks_[name].body;
    if (body.size() <= kMaxDiscoveryBytes) body += bytes;
  };
  look.question = ++questions_;
  // Later: the stream may not be destroyed inside its own callback.
  callbacks.on_end = [this, name, question = look.question](Status status) {
    core_.loop.Post(core_.Guarded([this, name, question, status = std::move(status)] {
      const auto asked = looks_.find(name);
      if (asked == looks_.end() || asked->second.question != question) return;
      if (asked->second.stream != nullptr) OnAnswer(name, status);
    }));
  };
  look.stream = core_.options.extension_client->Stream(*target, DiscoveryRequest(*look.service),
                                                       std::move(callbacks));
}

void AvailabilityChecker::OnAnswer(const std::string& name, const Status& status) {
  Look& look = looks_[name];
  look.stream.reset();
  if (!status.ok()) {
    look.refusal = status.message();
  } else if (look.status < 200 || look.status >= 300) {
    look.refusal = fmt::format("bad status from {}: {}", look.url, look.status);
  } else {
    Keep(look);
    return End(name, {"True", "Passed", "all checks passed"});
  }
  if (look.attempts < kDiscoveryAttempts) return Ask(name);
  EndRefused(name);
}

void AvailabilityChecker::EndRefused(const std::string& name) {
  const Look& look = looks_[name];
  End(name, {"False", "FailedDiscoveryCheck",
             fmt::format("failing or missing response from {}: {}", look.url, look.refusal)});
}

// What it serves, for discovery; a document that is none, or too large, leaves what was known.
void AvailabilityChecker::Keep(Look& look) {
  if (look.body.size() > kMaxDiscoveryBytes) return;
  const Result<json::Value> list = json::Parse(look.body);
  if (!list || (*list)["kind"].AsString() != "APIResourceList" || *list == look.resources) return;
  look.resources = *list;
  ++revision_;
}

void AvailabilityChecker::End(const std::string& name, const Condition& condition) {
  Look& look = looks_[name];
  core_.loop.Cancel(std::exchange(look.deadline, 0));
  look.stream.reset();
  look.body = {};
  look.under_way = false;
  --under_way_;
  // Of a spec that was replaced meanwhile nothing is said.
  const ApiServicePtr now = services_.FindName(name);
  if (now != nullptr && now->SameSpec(*look.service)) Report(name, condition);
  if (std::exchange(look.again, false)) Check(name);
  core_.loop.Post(core_.Guarded([this] { Pump(); }));
}

void AvailabilityChecker::Report(const std::string& name, const Condition& condition) {
  const bool available = condition.status == "True";
  unavailable_.Set({{"name", name}}, available ? 0 : 1);
  if (!available) became_unavailable_.Add({{"name", name}, {"reason", condition.reason}});
  Write(name, condition);
}

void AvailabilityChecker::Write(const std::string& name, const Condition& condition) {
  const ResourcePtr resource = core_.registry.Find("apiregistration.k8s.io", "v1", "apiservices");
  const Result<Found> found = FindObject(core_, *resource->kind, "", name);
  if (!found) return;
  const json::Value before = ConditionOf(found->object, kAvailable);
  const bool same_status = before["status"].AsString() == condition.status;
  if (same_status && before["reason"].AsString() == condition.reason &&
      before["message"].AsString() == condition.message)
    return;
  const std::string since =
      same_status ? before["lastTransitionTime"].Str() : FormatTime(core_.loop.Now());
  json::Value wanted = WithCondition(found->object, json::Obj({{"type", kAvailable},
                                                               {"status", condition.status},
                                                               {"lastTransitionTime", since},
                                                               {"reason", condition.reason},
                                                               {"message", condition.message}}));
  WriteContext context{*resource->kind, "", name, core_.loop.Now(), false, {}};
  Result<json::Value> after =
      PrepareUpdate(*resource, context, found->object, std::move(wanted), UpdateScope::kStatus);
  const auto complain = [name](const Status& why) {
    LOG_WARN("apiserver: cannot write the condition apiservice={} error={:?}", name, why.message());
  };
  if (!after) return complain(after.error());
  LOG_INFO("apiserver: api service name={} available={} reason={} message={:?}", name,
           condition.status, condition.reason, condition.message);
  ReplaceObject(core_, resource, context, *found, *std::move(after),
                [complain](const Result<store::EntryPtr>& entry) {
                  if (!entry) complain(entry.error());
                });
}

}  // namespace muster::apiserver
