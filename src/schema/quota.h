// src/schema/quota.h
//
// ResourceQuotas: which objects count against one, and how much of it each of them takes. Shared by
// the API server, which refuses what is too much, and the controller that reports what is taken.
// Source: k8s.io/kubernetes pkg/quota/v1.
//
// Thread: any (values and pure functions).

#pragma once

#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "json/value.h"
#include "schema/quantity_syntax.h"

namespace muster::schema {

// How much of each resource, by the names that quotas have for them.
using Amounts = std::map<std::string, Amount, std::less<>>;

// Of a list of quantities; what is none is left out.
Amounts AmountsOf(const json::Value& list);
void AddAmounts(Amounts& sum, const Amounts& more);
void TakeAmounts(Amounts& sum, const Amounts& less);
// What `after` has more of than `before`; never zero, never negative.
Amounts GrowthOf(const Amounts& before, const Amounts& after);
// "cpu=2,pods=1"
std::string ToText(const Amounts& amounts);
json::Value ToJson(const Amounts& amounts);

// A kind of object in all its versions.
struct GroupResource {
  std::string group, plural;
  auto operator<=>(const GroupResource&) const = default;
};

// Never counted: what is not stored, and events.
bool IsOutsideQuotas(const GroupResource& resource);

// When a pod that is being deleted stops to count although it is still there: its node may be lost.
// nullopt: it is not being deleted.
std::optional<Time> LapseOf(const json::Value& pod);

class Quota {
 public:
  // `object`: a ResourceQuota.
  explicit Quota(const json::Value& object);

  const std::string& name() const { return name_; }
  const Amounts& hard() const { return hard_; }
  // Whose objects it limits. Names that nothing counts (nvidia.com/gpu) lead to none.
  const std::set<GroupResource>& resources() const { return resources_; }
  // How many objects there are is all that it asks of this resource.
  bool OnlyCounts(const GroupResource& resource) const;

  // It limits objects of this resource, and this one is in its scopes.
  bool Matches(const GroupResource& resource, const json::Value& object) const;
  // What the object takes of it; nothing if it does not match. `lapsed` is of pods: LapseOf() is
  // over.
  Amounts UsageOf(const GroupResource& resource, const json::Value& object, bool lapsed) const;
  // What every object of the resource takes by being there.
  Amounts UsageOfPresence(const GroupResource& resource) const;
  // What the containers of a new pod must say and do not: "limits.cpu for: c1; limits.memory for:
  // c1". "" if nothing is missing.
  std::string MissingIn(const GroupResource& resource, const json::Value& object) const;

 private:
  struct Scope {
    std::string name, op;
    std::set<std::string> values;
    bool Holds(const json::Value& pod) const;
  };

  std::string name_;
  Amounts hard_;
  std::vector<Scope> scopes_;
  std::set<GroupResource> resources_;
};

// How much of one quota the objects take that it was told of, as of a time.
//
// Invariants: used() has the names of the quota that something counts, zeros included.
class QuotaTally {
 public:
  QuotaTally(Quota quota, Time now);

  const Quota& quota() const { return quota_; }
  const Amounts& used() const { return used_; }

  // `before` and `after`: null if the object is not there. False if nothing changed by it.
  // REQUIRES: `before` is what `after` was at the last call for this object.
  bool Change(const GroupResource& resource, const json::Value& before, const json::Value& after);
  // `count` objects of a resource of which the quota OnlyCounts().
  void AddPresent(const GroupResource& resource, size_t count);
  // What Change() would add, without what it would take.
  Amounts Growth(const GroupResource& resource, const json::Value& before,
                 const json::Value& after) const;
  // Later: pods lapse. False if nothing changed by it.
  bool Advance(Time now);
  std::optional<Time> NextLapse() const;

 private:
  Amounts UsageNow(const GroupResource& resource, const json::Value& object) const;
  std::optional<Time> ComingLapse(const GroupResource& resource, const json::Value& object) const;

  Quota quota_;
  Time now_;
  Amounts used_;
  std::map<std::pair<Time, std::string>, json::Value> lapsing_;  // pods by lapse and uid
};

}  // namespace muster::schema
