#include "simulation/quota_chapter.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "simulation/fake_node.h"

namespace muster::simulation {
namespace {

namespace resources = client::resources;

constexpr char kNamespace[] = "tight";
constexpr char kPrefix[] = "/registry/core/";
constexpr std::string_view kPlurals[] = {"pods", "configmaps", "persistentvolumeclaims"};
constexpr std::string_view kQuotaNames[] = {"one", "other"};
const client::Resource kQuotas{"", "v1", "resourcequotas"};
// What had been accepted before a quota changed has committed after so long.
constexpr Duration kCommitTime = seconds(1);
constexpr int64_t kCpuOfPod = 100;  // milli

std::string_view PluralOf(std::string_view key) { return Split(key, '/').at(3); }

}  // namespace

QuotaChapter::QuotaChapter(const Tale& tale) : Chapter(tale) {
  Oracles& oracles = world_.oracles();
  oracles.Listen(fmt::format("{}resourcequotas/{}/", kPrefix, kNamespace),
                 [this](const std::string&, const json::Value& object, bool deleted) {
                   OnQuota(object, deleted);
                 });
  for (const std::string_view plural : kPlurals) {
    oracles.Listen(fmt::format("{}{}/{}/", kPrefix, plural, kNamespace),
                   [this](const std::string& key, const json::Value& object, bool deleted) {
                     OnCounted(key, object, deleted);
                   });
  }
}

// ---- what is told ----

void QuotaChapter::Plan() {
  CreateUntilTaken(
      world_, resources::kNamespaces,
      Yaml(fmt::format("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {}}}", kNamespace)));
  world_.At(trouble_.UpTo(5'000), [this] { MakeQuota("one"); });
  if (rng_.Chance(0.4)) world_.At(trouble_.UpTo(60'000), [this] { MakeQuota("other"); });
  world_.At(trouble_.UpTo(40'000), [this] {
    Tell("make a ReplicaSet under a quota", "");
    CreateUntilTaken(world_, resources::kReplicaSets,
                     Yaml(fmt::format(R"(
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: many, namespace: {}}}
spec:
  replicas: {}
  selector: {{matchLabels: {{app: many}}}}
  template:
    metadata: {{labels: {{app: many}}, annotations: {{{}: "{}"}}}}
    spec:
      containers: [{{name: main, image: v1, resources: {{requests: {{cpu: {}m}}}}}}]
)",
                                      kNamespace, rng_.Between(1, 6), kRunsForAnnotation,
                                      kForEverMs, kCpuOfPod)));
  });
  trouble_.Sometimes(3, 8, [this] { Burst(); });
  trouble_.Sometimes(1, 4, [this] { ChangeQuota(); });
  trouble_.Sometimes(1, 5, [this] { DeleteSome(); });
}

json::Value QuotaChapter::RandomHard() {
  json::Value hard = json::Obj();
  const auto perhaps = [&](double probability, const char* name, const std::string& amount) {
    if (rng_.Chance(probability)) hard = std::move(hard).Set(name, amount);
  };
  perhaps(0.8, "pods", std::to_string(rng_.Between(2, 8)));
  perhaps(0.6, "requests.cpu", fmt::format("{}m", kCpuOfPod * rng_.Between(2, 8) + 50));
  perhaps(0.6, "count/configmaps", std::to_string(rng_.Between(2, 6)));
  perhaps(0.5, "persistentvolumeclaims", std::to_string(rng_.Between(1, 5)));
  perhaps(0.5, "requests.storage", fmt::format("{}Gi", rng_.Between(1, 8)));
  return hard.empty() ? json::Obj({{"pods", "3"}}) : hard;
}

void QuotaChapter::MakeQuota(const std::string& name) {
  Tell("make a quota", name);
  CreateUntilTaken(world_, kQuotas,
                   json::Obj({{"apiVersion", "v1"},
                              {"kind", "ResourceQuota"},
                              {"metadata", json::Obj({{"name", name}, {"namespace", kNamespace}})},
                              {"spec", json::Obj({{"hard", RandomHard()}})}}));
}

void QuotaChapter::ChangeQuota() {
  const std::string name(OneOf(kQuotaNames));
  const client::Target target{kQuotas, kNamespace, name, ""};
  if (rng_.Chance(0.2)) {
    Tell("delete a quota", name);
    Delete(target);
    if (rng_.Chance(0.7))
      world_.At(trouble_.UpTo(10'000), [this, name] {
        if (!ends_) MakeQuota(name);
      });
    return;
  }
  Tell("change a quota", name);
  EditUntilTaken(world_, target, [hard = RandomHard()](json::Value object) {
    return object.SetPath({"spec", "hard"}, hard);
  });
}

// More than fits, and all at once.
void QuotaChapter::Burst() {
  const uint64_t what = rng_.Below(3);
  Tell("a burst under a quota", std::string(kPlurals[what]));
  for (int64_t i = rng_.Between(2, 6); i > 0; --i) {
    const std::string name = fmt::format("b{}", ++made_);
    if (what == 0) {
      const std::string runs_for = rng_.Chance(0.5) ? std::string(kForEverMs) : "8000";
      Make(resources::kPods,
           Yaml(fmt::format(R"(
apiVersion: v1
kind: Pod
metadata: {{name: {}, namespace: {}, annotations: {{{}: "{}"}}}}
spec:
  restartPolicy: Never
  containers: [{{name: main, image: v1, resources: {{requests: {{cpu: {}m}}}}}}]
)",
                            name, kNamespace, kRunsForAnnotation, runs_for, kCpuOfPod)));
    } else if (what == 1) {
      Make(
          resources::kConfigMaps,
          Yaml(fmt::format("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}, namespace: {}}}",
                           name, kNamespace)));
    } else {
      Make(resources::kPersistentVolumeClaims,
           Yaml(fmt::format(R"(
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {}, namespace: {}}}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  resources: {{requests: {{storage: {}Gi}}}}
)",
                            name, kNamespace, rng_.Between(1, 2))));
    }
  }
}

void QuotaChapter::Make(const client::Resource& resource, const json::Value& object) {
  const client::ObjectKey key = client::KeyOf(object);
  world_.user().Create({resource, key.ns, key.name, ""}, object, [this](Result<json::Value> reply) {
    if (!reply && reply.error().message().find("exceeded quota") != std::string::npos)
      counts_.Add("branch: refused by a quota");
  });
}

void QuotaChapter::DeleteSome() {
  Tell("delete under a quota", "");
  for (const auto& [key, object] : counted_) {
    if (!rng_.Chance(0.4)) continue;
    const std::string plural(PluralOf(key));
    world_.oracles().workloads().Excuse(object["metadata"]["uid"].Str());
    Delete({{"", "v1", plural}, kNamespace, object["metadata"]["name"].Str(), ""});
  }
}

// ---- the end ----

// Whoever is refused would try again for ever.
void QuotaChapter::End() {
  ends_ = true;
  // What was on its way has come by then.
  world_.At(seconds(2), [this] { RaiseQuotas(); });
  world_.At(seconds(5), [this] {
    EditUntilTaken(world_, {resources::kReplicaSets, kNamespace, "many", ""},
                   [](json::Value object) { return object.SetPath({"spec", "replicas"}, 3); });
  });
  rests_from_ = world_.loop().Steady() + seconds(6);
}

void QuotaChapter::RaiseQuotas() {
  for (const auto& [name, quota] : quotas_) {
    EditUntilTaken(world_, {kQuotas, kNamespace, name, ""}, [](json::Value object) {
      for (const char* resource : {"pods", "requests.cpu", "count/configmaps"}) {
        if (object["spec"]["hard"].Has(resource))
          object = object.SetPath({"spec", "hard", resource}, "100");
      }
      return object;
    });
  }
}

std::vector<std::string> QuotaChapter::Restless() const {
  std::vector<std::string> restless;
  if (world_.loop().Steady() < rests_from_) restless.push_back("quotas are raised");
  for (const json::Value& object :
       world_.FindAll(fmt::format("/registry/apps/replicasets/{}/", kNamespace))) {
    if (object["status"]["readyReplicas"].AsInt() != object["spec"]["replicas"].AsInt())
      restless.push_back("ReplicaSet under a quota");
  }
  for (const auto& [key, object] : counted_) {
    const std::string_view phase = object["status"]["phase"].AsString();
    const json::Value& length = object["metadata"]["annotations"][kRunsForAnnotation];
    const bool ends = !length.IsNull() && length.AsString() != kForEverMs;
    const bool is_pod = PluralOf(key) == "pods";
    if (IsGoing(object) || (is_pod && phase == "Pending") || (ends && phase == "Running"))
      restless.push_back(key);
  }
  return restless;
}

// ---- after every change ----

void QuotaChapter::OnQuota(const json::Value& object, bool deleted) {
  const std::string name = object["metadata"]["name"].Str();
  Quota& quota = quotas_[name];
  if (quota.object["spec"] != object["spec"]) quota.changed = world_.loop().Steady();
  quota.object = object;
  if (deleted) quotas_.erase(name);
}

void QuotaChapter::OnCounted(const std::string& key, const json::Value& object, bool deleted) {
  if (deleted) {
    counted_.erase(key);
    return;
  }
  const auto lapse = PluralOf(key) == "pods" ? schema::LapseOf(object) : std::nullopt;
  const bool is_new = counted_.insert_or_assign(key, object).second;
  if (lapse && *lapse <= world_.loop().Now()) lapsed_.insert(object["metadata"]["uid"].Str());
  if (is_new) CheckQuotas(key);
}

schema::Amounts QuotaChapter::Count() const {
  int64_t pods = 0, config_maps = 0, claims = 0, gibibytes = 0;
  for (const auto& [key, object] : counted_) {
    const std::string_view plural = PluralOf(key);
    const std::string_view phase = object["status"]["phase"].AsString();
    const auto lapse = schema::LapseOf(object);
    if (plural == "configmaps") {
      ++config_maps;
    } else if (plural == "persistentvolumeclaims") {
      ++claims;
      gibibytes +=
          ParseInt(
              Split(object["spec"]["resources"]["requests"]["storage"].AsString(), 'G').front())
              .value_or(0);
    } else if (phase != "Succeeded" && phase != "Failed" &&
               !(lapse && *lapse <= world_.loop().Now()) &&
               !lapsed_.contains(object["metadata"]["uid"].Str())) {
      ++pods;
    }
  }
  return schema::AmountsOf(json::Obj({{"pods", std::to_string(pods)},
                                      {"requests.cpu", fmt::format("{}m", pods * kCpuOfPod)},
                                      {"count/configmaps", std::to_string(config_maps)},
                                      {"persistentvolumeclaims", std::to_string(claims)},
                                      {"requests.storage", fmt::format("{}Gi", gibibytes)}}));
}

// Another kind may be above what a quota was lowered to.
void QuotaChapter::CheckQuotas(const std::string& key) {
  const std::string_view plural = PluralOf(key);
  const std::vector<std::string_view> concerned =
      plural == "pods" ? std::vector<std::string_view>{"pods", "requests.cpu"}
      : plural == "configmaps"
          ? std::vector<std::string_view>{"count/configmaps"}
          : std::vector<std::string_view>{"persistentvolumeclaims", "requests.storage"};
  const schema::Amounts used = Count();
  for (const auto& [name, quota] : quotas_) {
    if (world_.loop().Steady() - quota.changed < kCommitTime) continue;
    for (const auto& [resource, hard] : schema::AmountsOf(quota.object["spec"]["hard"])) {
      if (std::find(concerned.begin(), concerned.end(), resource) == concerned.end()) continue;
      counts_.Add("oracle: object made under a quota");
      if (used.at(resource).nano > hard.nano)
        world_.Violation(fmt::format("{} was made: {} of {} are used, quota {} allows {}", key,
                                     used.at(resource).Canonical(), resource, name,
                                     hard.Canonical()));
      if (used.at(resource).nano == hard.nano) counts_.Add("branch: a quota was used up");
    }
  }
}

// ---- at rest ----

void QuotaChapter::Judge() {
  const schema::Amounts used = Count();
  for (const auto& [name, quota] : quotas_) {
    const json::Value& status = quota.object["status"];
    const schema::Amounts hard = schema::AmountsOf(quota.object["spec"]["hard"]);
    const schema::Amounts says = schema::AmountsOf(status["used"]);
    if (schema::AmountsOf(status["hard"]) != hard)
      world_.Violation(fmt::format("quota {} says another hard than its spec", name));
    for (const auto& [resource, amount] : hard) {
      counts_.Add("oracle: use counted from scratch");
      const auto said = says.find(resource);
      if (said == says.end() || said->second.nano != used.at(resource).nano)
        world_.Violation(fmt::format("quota {} says that {} of {} are used, {} are", name,
                                     said == says.end() ? "none" : said->second.Canonical(),
                                     resource, used.at(resource).Canonical()));
    }
  }
}

}  // namespace muster::simulation
