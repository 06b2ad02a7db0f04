#include "apiserver/kinds/core_strategies.h"

#include <algorithm>
#include <array>

#include "apiserver/errors.h"
#include "apiserver/kinds/pod_strategy.h"
#include "apiserver/kinds/service_strategy.h"
#include "apiserver/kinds/storage_strategies.h"
#include "apiserver/kinds/workload_strategies.h"

namespace muster::apiserver {
namespace {

class GenerationStrategy : public Strategy {
 public:
  bool has_generation() const override { return true; }
};

class DisruptionBudgetStrategy : public GenerationStrategy {
 public:
  bool allows_unconditional_update() const override { return false; }
};

class NodeStrategy : public Strategy {
 public:
  bool keeps_status_on_create() const override { return true; }  // an agent registers itself whole
};

class ReturningStrategy : public Strategy {
 public:
  bool returns_deleted_object() const override { return true; }
};

class LeaseStrategy : public Strategy {
 public:
  store::Durability durability() const override { return store::Durability::kRelaxed; }
  bool allows_unconditional_update() const override { return false; }
};

class EventStrategy : public Strategy {
 public:
  store::Durability durability() const override { return store::Durability::kRelaxed; }
};

class NamespaceStrategy : public Strategy {
 public:
  Status PrepareUpdate(WriteContext&, const json::Value& before, json::Value& after) override {
    const json::Value* spec = before.Find("spec");  // only /finalize changes it
    after = spec != nullptr ? after.Set("spec", *spec) : after.Remove("spec");
    return Status::Ok();
  }

  Status CheckDeletable(const schema::Kind& kind, const json::Value& ns) override {
    constexpr std::array<std::string_view, 3> kKept = {"default", "kube-system", "kube-public"};
    const std::string_view name = ns["metadata"]["name"].AsString();
    if (std::ranges::find(kKept, name) == kKept.end()) return Status::Ok();
    return ForbiddenError(kind, name, "this namespace may not be deleted");
  }

  void MarkDeleted(json::Value& ns) override {
    ns = ns.SetPath({"status", "phase"}, "Terminating");
  }

  bool HasFurtherFinalizers(const json::Value& ns) override {
    return !ns["spec"]["finalizers"].empty();
  }
};

class SecretStrategy : public Strategy {
 public:
  Status PrepareUpdate(WriteContext&, const json::Value& before, json::Value& after) override {
    if (after["type"].AsString().empty()) after = after.Set("type", before["type"]);
    return Status::Ok();
  }
};

// Of several defaults none would be: pods that name no class get the one default.
class PriorityClassStrategy : public GenerationStrategy {
 public:
  explicit PriorityClassStrategy(const store::Store& store) : store_(store) {}

  Status PrepareCreate(WriteContext& context, json::Value& object) override {
    return CheckOnlyDefault(context, object);
  }
  Status PrepareUpdate(WriteContext& context, const json::Value&, json::Value& after) override {
    return CheckOnlyDefault(context, after);
  }

 private:
  Status CheckOnlyDefault(const WriteContext& context, const json::Value& object) const {
    if (!object["globalDefault"].AsBool()) return Status::Ok();
    const std::string other = DefaultPriorityClass(store_)["metadata"]["name"].Str();
    if (other.empty() || other == context.name) return Status::Ok();
    return ForbiddenError(
        context.kind, context.name,
        fmt::format("PriorityClass {} is already marked as default. Only one default can exist",
                    other));
  }

  const store::Store& store_;
};

}  // namespace

std::map<std::string, std::unique_ptr<Strategy>> MakeStrategies(store::Store& store,
                                                                IpAllocator addresses,
                                                                std::unique_ptr<Strategy> crds) {
  std::map<std::string, std::unique_ptr<Strategy>> strategies;
  strategies["pods"] = std::make_unique<PodStrategy>(store);
  strategies["services"] = std::make_unique<ServiceStrategy>(std::move(addresses), store);
  strategies["namespaces"] = std::make_unique<NamespaceStrategy>();
  strategies["nodes"] = std::make_unique<NodeStrategy>();
  strategies["secrets"] = std::make_unique<SecretStrategy>();
  strategies["events"] = std::make_unique<EventStrategy>();
  strategies["serviceaccounts"] = std::make_unique<ReturningStrategy>();
  strategies["leases.coordination.k8s.io"] = std::make_unique<LeaseStrategy>();
  strategies["endpointslices.discovery.k8s.io"] = std::make_unique<GenerationStrategy>();
  strategies["priorityclasses.scheduling.k8s.io"] = std::make_unique<PriorityClassStrategy>(store);
  strategies["customresourcedefinitions.apiextensions.k8s.io"] = std::move(crds);
  AddWorkloadStrategies(strategies);
  strategies["poddisruptionbudgets.policy"] = std::make_unique<DisruptionBudgetStrategy>();
  AddStorageStrategies(store, strategies);
  strategies["resourcequotas"] = std::make_unique<ReturningStrategy>();
  strategies["ingresses.networking.k8s.io"] = std::make_unique<GenerationStrategy>();
  strategies["ingressclasses.networking.k8s.io"] = std::make_unique<GenerationStrategy>();
  for (const char* plural : {"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}) {
    strategies[fmt::format("{}.admissionregistration.k8s.io", plural)] =
        std::make_unique<GenerationStrategy>();
  }
  strategies["networkpolicies.networking.k8s.io"] = std::make_unique<GenerationStrategy>();
  return strategies;
}

}  // namespace muster::apiserver
