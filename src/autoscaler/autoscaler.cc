#include "autoscaler/autoscaler.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "autoscaler/cluster_view.h"
#include "autoscaler/consolidator.h"
#include "autoscaler/node_claim.h"
#include "autoscaler/pool_status.h"
#include "base/log.h"
#include "base/strings.h"
#include "client/event_recorder.h"
#include "client/lifetime.h"
#include "client/storage_resources.h"
#include "scheduler/status_publisher.h"
#include "schema/pod_phase.h"

namespace muster::autoscaler {

using client::ObjectKey;

namespace {

constexpr char kUnboundIndex[] = "autoscaler-unbound";
constexpr char kUnbound[] = "unbound";
constexpr Duration kRetry = seconds(5);
// A claim that is never seen must not stop everything.
constexpr Duration kMaxWaitForClaims = seconds(30);

bool IsUnbound(const json::Value& pod) {
  return pod["spec"]["nodeName"].AsString().empty() && !IsDeleting(pod) &&
         !schema::IsFinalPhase(pod["status"]["phase"].AsString());
}

std::vector<json::Value> Objects(const client::Informer& informer) {
  std::vector<json::Value> out;
  for (const auto& [key, object] : informer.objects()) out.push_back(object);
  return out;
}

json::Value ListOf(const client::Informer& informer) {
  if (!informer.Served()) return {};
  return json::Obj({{"items", json::Value(json::Array(Objects(informer)))}});
}

}  // namespace

struct Autoscaler::Impl {
  Impl(client::ApiClient& api_client, client::InformerSet& informers, Pool& worker_pool,
       AutoscalerConfig settings, Rng seeded)
      : api(api_client),
        pool(worker_pool),
        config(std::move(settings)),
        rng(seeded),
        recorder(api_client, "karpenter", ""),
        pools(informers.Get(kNodePools, json::Fields::Whole())),
        claims(informers.Get(kNodeClaims, json::Fields::Whole())),
        nodes(informers.Get(client::resources::kNodes, json::Fields::Whole())),
        pods(informers.Get(client::resources::kPods, json::Fields(cluster::PodInfoFields())
                                                         .Add(CountedPodFields())
                                                         .Add({{"metadata", "labels"}}))),
        budgets(informers.Get(client::resources::kPodDisruptionBudgets,
                              {{"spec", "selector"}, {"status", "disruptionsAllowed"}})),
        daemon_sets(informers.Get(client::resources::kDaemonSets, {{"spec", "template"}})),
        namespaces(informers.Get(client::resources::kNamespaces, {{"metadata", "labels"}})),
        priorities(informers.Get(client::resources::kPriorityClasses, {{"value"}})),
        volume_claims(
            informers.Get(client::resources::kPersistentVolumeClaims, cluster::ClaimInfoFields())),
        volumes(informers.Get(client::resources::kPersistentVolumes, cluster::VolumeInfoFields())),
        storage_classes(
            informers.Get(client::resources::kStorageClasses, cluster::StorageClassInfoFields())),
        consolidator(api_client, recorder, pools, claims, nodes) {
    for (const client::Resource& resource : scheduler::kGroupResources)
      groups.push_back(&informers.Get(resource, cluster::PodGroupInfoFields()));
    pods.AddIndex(kUnboundIndex, [](const json::Value& pod) {
      return IsUnbound(pod) ? std::vector<std::string>{kUnbound} : std::vector<std::string>();
    });
  }

  ~Impl() {
    api.loop().Cancel(timer);
    api.loop().Cancel(later);
  }

  template <class OnChange>
  void Follow(client::Informer& informer, OnChange on_change) {
    client::InformerEvents events;
    events.on_change =
        lifetime.Guard([on_change](const ObjectKey& key, const json::Value& before,
                                   const json::Value& after) { on_change(key, before, after); });
    events.on_synced = lifetime.Guard([this] { Wake(); });
    informer.Subscribe(std::move(events));
  }

  void Start() {
    const auto always = [this](const ObjectKey&, const json::Value&, const json::Value&) {
      pools_changed = true;
      Wake();
    };
    Follow(pools, [this, always](const ObjectKey& key, const json::Value& before,
                                 const json::Value& after) {
      if (after.IsNull()) judged.erase(before["metadata"]["uid"].Str());
      always(key, before, after);
    });
    Follow(claims,
           [this](const ObjectKey& key, const json::Value& before, const json::Value& after) {
             awaited.erase(key.name);
             pools_changed = true;
             if (after.IsNull()) OnClaimGone(before);
             Wake();
           });
    Follow(pods, [this](const ObjectKey&, const json::Value& before, const json::Value& after) {
      const bool waits = !after.IsNull() && IsUnbound(after);
      const bool waited = !before.IsNull() && IsUnbound(before);
      if (waits && (!waited || before["spec"] != after["spec"])) Wake();
      NotePlaces(before, after);
    });
    // Nodes that go leave pods without a place, which wake us themselves.
    Follow(nodes, [this](const ObjectKey& key, const json::Value&, const json::Value& after) {
      if (after.IsNull()) consolidator.ForgetNode(key.name);
    });
    Follow(budgets, [](const ObjectKey&, const json::Value&, const json::Value&) {});
    Follow(daemon_sets, [](const ObjectKey&, const json::Value&, const json::Value&) {});
  }

  // A pod that came to a node of ours, or went.
  void NotePlaces(const json::Value& before, const json::Value& after) {
    const auto place = [](const json::Value& pod) {
      return pod.IsNull() || !Counts(pod) ? std::string() : pod["spec"]["nodeName"].Str();
    };
    const std::string was = place(before), is = place(after);
    if (was == is) return;
    for (const std::string& node : {was, is}) {
      if (node.empty() || claims.Find({"", node}) == nullptr) continue;
      consolidator.NotePod(node, api.loop().Now());
      Wake();
    }
  }

  // Never became a node: what it was is not tried for a while.
  void OnClaimGone(const json::Value& claim) {
    if (Holds(claim, kInitialized) || !Holds(claim, kLaunched)) return;
    const std::optional<Time> asked = ParseTime(claim["metadata"]["creationTimestamp"].AsString());
    if (!asked || api.loop().Now() - *asked < kAvoidAfter) return;
    avoided[{PoolOf(claim), claim["metadata"]["labels"][kInstanceTypeLabel].Str(),
             CapacityTypeOf(claim)}] = api.loop().Now() + kAvoidedFor;
  }

  bool Synced() const {
    return pods.Synced() && nodes.Synced() && pools.Synced() && claims.Synced() &&
           daemon_sets.Known() && namespaces.Known() && priorities.Known() && budgets.Known() &&
           volume_claims.Known() && volumes.Known() && storage_classes.Known() &&
           std::ranges::all_of(groups, [](const auto* each) { return each->Known(); });
  }

  // A plan some time after the last change, so that pods that come together are planned together.
  void Wake() {
    if (pools.objects().empty()) return;
    const Time now = api.loop().Now();
    if (timer == 0 || now < first_wake) first_wake = now;
    const Time due = std::min(now + kBatchIdle, first_wake + kBatchMost);
    api.loop().Cancel(timer);
    timer = api.loop().After(std::max<Duration>(due - now, Duration(0)), lifetime.Guard([this] {
      timer = 0;
      Look();
    }));
  }

  // At that time, or before if something else comes first.
  void LookAt(Time at) {
    if (later != 0 && later_at <= at) return;
    api.loop().Cancel(later);
    later_at = at;
    const Duration wait = std::max<Duration>(at - api.loop().Now(), Duration(0));
    later = api.loop().After(wait, lifetime.Guard([this] {
      later = 0;
      Look();
    }));
  }

  void Look() {
    if (!Synced() || pools.objects().empty()) return;
    if (planning) {
      again = true;
      return;
    }
    WritePoolStatus();
    const Time now = api.loop().Now();
    if (!awaited.empty() && now < awaited_until) return LookAt(now + kRetry);
    awaited.clear();
    if (!PodsWait()) return Consolidate(now);
    consolidator.OpenAll();
    auto view = std::make_shared<ClusterView>(ViewNow(now));
    auto answer = std::make_shared<ScaleUpAnswer>();
    Run([view, answer, names = config.scheduler_names,
         planner = config.planner] { *answer = AskWhatToAdd(*view, names, planner); },
        [this, answer] { TakeOver(*answer); });
  }

  bool PodsWait() const { return pods.LookupCount(kUnboundIndex, kUnbound) > 0; }

  // Nobody waits: which nodes are not needed?
  void Consolidate(Time now) {
    std::optional<Time> next;
    std::vector<std::string> due = consolidator.Due(now, next);
    if (next) LookAt(*next);
    if (due.empty()) return;
    auto view = std::make_shared<ClusterView>(ViewNow(now));
    auto verdicts = std::make_shared<std::vector<ConsolidationVerdict>>();
    Run([view, verdicts, due = std::move(due),
         names = config.scheduler_names] { *verdicts = PlanConsolidation(*view, due, names); },
        [this, verdicts] {
          if (PodsWait()) return;  // they are planned first
          if (const auto at = consolidator.Act(*verdicts, api.loop().Now())) LookAt(*at);
        });
  }

  // One plan at a time.
  template <class Work, class Done>
  void Run(Work work, Done done) {
    planning = true;
    pool.Run(std::move(work), api.loop(), lifetime.Guard([this, done = std::move(done)] {
      planning = false;
      done();
      if (std::exchange(again, false)) Wake();
    }));
  }

  ClusterView ViewNow(Time now) {
    ClusterView view;
    view.lists.nodes = ListOf(nodes);
    view.lists.pods = ListOf(pods);
    view.lists.namespaces = ListOf(namespaces);
    view.lists.priority_classes = ListOf(priorities);
    for (size_t i = 0; i < groups.size(); ++i) view.lists.pod_groups[i] = ListOf(*groups[i]);
    view.lists.disruption_budgets = ListOf(budgets);
    view.lists.claims = ListOf(volume_claims);
    view.lists.volumes = ListOf(volumes);
    view.lists.storage_classes = ListOf(storage_classes);
    view.pools = Objects(pools);
    view.claims = Objects(claims);
    view.daemon_sets = Objects(daemon_sets);
    view.catalog = config.catalog;
    std::erase_if(avoided, [now](const auto& entry) { return entry.second <= now; });
    for (const auto& [type, until] : avoided) view.avoided.insert(type);
    return view;
  }

  void TakeOver(const ScaleUpAnswer& answer) {
    for (const NewNode& node : answer.plan.nodes) AskFor(answer, node);
    for (const UnitVerdict& verdict : answer.plan.units) {
      if (verdict.why_not.empty()) continue;
      const std::string text = TextFor(answer, verdict.unit);
      for (const auto& [key, pod] : PodsOf(verdict.unit))
        recorder.Record(*pod, client::EventType::kWarning, "NoNodeAdded", text);
    }
  }

  // Of a gang those that are pending.
  std::vector<std::pair<ObjectKey, const json::Value*>> PodsOf(
      const scheduler::UnitKey& unit) const {
    std::vector<std::pair<ObjectKey, const json::Value*>> out;
    if (!unit.is_gang) {
      const ObjectKey key{unit.key.ns, unit.key.name};
      if (const json::Value* pod = pods.Find(key)) out.emplace_back(key, pod);
      return out;
    }
    for (const ObjectKey& key : pods.Lookup(kUnboundIndex, kUnbound)) {
      const json::Value* pod = pods.Find(key);
      if (key.ns == unit.key.ns && cluster::GroupOf((*pod)["metadata"]) == unit.key.name)
        out.emplace_back(key, pod);
    }
    return out;
  }

  std::string NewName(const std::string& pool_name) {
    constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
    std::string name = pool_name.substr(0, 50) + "-";
    for (int i = 0; i < 5; ++i) name += kLetters[rng.Below(kLetters.size())];
    return name;
  }

  void AskFor(const ScaleUpAnswer& answer, const NewNode& node) {
    const Offering& offering = answer.offerings[node.offering];
    const NodePool& of = answer.pools[offering.pool];
    cluster::ResourceList requests;
    for (const cluster::PodKey& key : node.pods) {
      if (const json::Value* pod = pods.Find({key.ns, key.name}))
        cluster::AddTo(requests, cluster::PodRequests(*pod));
    }
    const std::string name = NewName(of.name);
    const std::string text =
        fmt::format("NodePool {} adds {}: nodeclaim/{}", of.name, TextOf(offering), name);
    awaited.insert(name);
    awaited_until = api.loop().Now() + kMaxWaitForClaims;
    LOG_INFO("autoscaler: asked for a node pool={} claim={} type={} capacity={} price={}", of.name,
             name, offering.type.name, ToString(offering.capacity),
             cluster::UsdText(offering.price));
    api.Create({kNodeClaims, "", "", ""}, MakeNodeClaim(of, offering, name, requests),
               lifetime.Guard([this, name, text, node](const Result<json::Value>& created) {
                 if (!created) {
                   awaited.erase(name);
                   LOG_WARN("autoscaler: create nodeclaim {}: {}", name, created.error().message());
                   return LookAt(api.loop().Now() + kRetry);
                 }
                 for (const cluster::PodKey& key : node.pods) {
                   if (const json::Value* pod = pods.Find({key.ns, key.name}))
                     recorder.Record(*pod, client::EventType::kNormal, "Nominated", text);
                 }
               }));
  }

  // What there is of each pool, once something of it changed.
  void WritePoolStatus() {
    if (!std::exchange(pools_changed, false)) return;
    std::map<std::string, cluster::ResourceList> sums;
    for (const auto& [key, claim] : claims.objects()) {
      cluster::ResourceList& sum = sums[PoolOf(claim)];
      cluster::AddTo(sum, cluster::ToResourceList(claim["status"]["capacity"]));
      cluster::AddTo(sum, {{std::string(kNodesResource), 1}});
    }
    for (const auto& [key, object] : pools.objects()) {
      TellIfNothingIsOffered(object);
      const json::Value status = PoolStatus(object, sums[key.name], api.loop().Now());
      if (status == object["status"]) continue;
      api.Patch({kNodePools, "", key.name, "status"}, client::PatchType::kMerge,
                json::Obj({{"status", status}}),
                lifetime.Guard([this](const Result<json::Value>& answer) {
                  if (answer || answer.error().reason() == Reason::kNotFound) return;
                  pools_changed = true;
                  LookAt(api.loop().Now() + kRetry);
                }));
    }
  }

  // Once of each version of its spec.
  void TellIfNothingIsOffered(const json::Value& object) {
    const json::Value& metadata = object["metadata"];
    if (std::exchange(judged[metadata["uid"].Str()], object["spec"]) == object["spec"]) return;
    const std::string why = WhyNothingIsOffered(ToNodePool(object), config.catalog);
    if (!why.empty()) recorder.Record(object, client::EventType::kWarning, kNoCompatibleTypes, why);
  }

  static constexpr Duration kAvoidAfter = minutes(5);

  client::ApiClient& api;
  Pool& pool;
  const AutoscalerConfig config;
  Rng rng;
  client::EventRecorder recorder;
  client::Informer& pools;
  client::Informer& claims;
  client::Informer& nodes;
  client::Informer& pods;
  client::Informer& budgets;
  client::Informer& daemon_sets;
  client::Informer& namespaces;
  client::Informer& priorities;
  client::Informer& volume_claims;
  client::Informer& volumes;
  client::Informer& storage_classes;
  Consolidator consolidator;
  std::vector<client::Informer*> groups;
  std::set<std::string> awaited;  // names of claims that were asked for and not seen yet
  Time awaited_until{};
  std::map<AvoidedType, Time> avoided;
  std::map<std::string, json::Value> judged;  // specs of pools, by uid
  TimerId timer = 0;                          // of the batch
  Time first_wake{};
  TimerId later = 0;
  Time later_at{};
  bool pools_changed = true;  // or their claims
  bool planning = false;
  bool again = false;
  client::Lifetime lifetime;
};

Autoscaler::Autoscaler(client::ApiClient& api, client::InformerSet& informers, Pool& pool,
                       AutoscalerConfig config, Rng rng)
    : impl_(std::make_unique<Impl>(api, informers, pool, std::move(config), rng)) {}

Autoscaler::~Autoscaler() = default;

void Autoscaler::Start() { impl_->Start(); }

}  // namespace muster::autoscaler
