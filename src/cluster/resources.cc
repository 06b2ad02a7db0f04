#include "cluster/resources.h"

#include <algorithm>

#include "cluster/quantity.h"

namespace muster::cluster {

namespace {

ResourceList::const_iterator LowerBound(const ResourceList& list, std::string_view name) {
  return std::lower_bound(
      list.begin(), list.end(), name,
      [](const auto& entry, std::string_view wanted) { return entry.first < wanted; });
}

template <class Combine>
void Merge(ResourceList& list, const ResourceList& other, Combine combine) {
  for (const auto& [name, amount] : other) {
    const auto at = list.begin() + (LowerBound(list, name) - list.cbegin());
    if (at != list.end() && at->first == name) {
      at->second = combine(at->second, amount);
    } else {
      list.insert(at, {name, amount});
    }
  }
}

// Both are at most kMaxAmount, so the sum cannot overflow.
int64_t BoundedSum(int64_t a, int64_t b) { return std::min(a + b, kMaxAmount); }

ResourceList ContainerRequests(const json::Value& container) {
  ResourceList requests = ToResourceList(container.Path({"resources", "requests"}));
  const json::Value& asked = container.Path({"resources", "requests"});
  for (const auto& [name, amount] : ToResourceList(container.Path({"resources", "limits"}))) {
    if (!asked.Has(name)) AddTo(requests, {{name, amount}});
  }
  return requests;
}

}  // namespace

std::string AmountText(std::string_view resource, int64_t amount) {
  if (resource == resource::kCpu) return Quantity::FromMilli(amount).ToString();
  if (resource == resource::kMemory || resource == resource::kEphemeralStorage)
    return Quantity::FromUnits(amount, Quantity::Format::kBinarySi).ToString();
  return std::to_string(amount);
}

int64_t AmountOf(const ResourceList& list, std::string_view name) {
  const auto at = LowerBound(list, name);
  return at != list.end() && at->first == name ? at->second : 0;
}

void AddTo(ResourceList& list, const ResourceList& other) { Merge(list, other, BoundedSum); }

void RaiseTo(ResourceList& list, const ResourceList& other) {
  Merge(list, other, [](int64_t a, int64_t b) { return std::max(a, b); });
}

ResourceList ToResourceList(const json::Value& amounts) {
  ResourceList list;
  for (const auto& [name, value] : amounts.members()) {
    const Result<Quantity> quantity = Quantity::FromJson(value);
    if (!quantity.has_value() || quantity->IsZero() || quantity->IsNegative()) continue;
    const int64_t amount = name == resource::kCpu ? quantity->Milli() : quantity->Units();
    list.emplace_back(name, std::min(amount, kMaxAmount));
  }
  std::sort(list.begin(), list.end());
  return list;
}

ResourceList PodRequests(const json::Value& pod) {
  const json::Value& spec = pod["spec"];
  ResourceList total;
  for (const json::Value& container : spec["containers"].items())
    AddTo(total, ContainerRequests(container));

  ResourceList sidecars;   // started so far, in the order of the list
  ResourceList init_peak;  // the most that is needed at any moment of initialisation
  for (const json::Value& container : spec["initContainers"].items()) {
    ResourceList now = ContainerRequests(container);
    if (container["restartPolicy"].AsString() == "Always") {
      AddTo(total, now);
      AddTo(sidecars, now);
      now = sidecars;
    } else {
      AddTo(now, sidecars);
    }
    RaiseTo(init_peak, now);
  }
  RaiseTo(total, init_peak);
  AddTo(total, ToResourceList(spec["overhead"]));
  AddTo(total, {{std::string(resource::kPods), 1}});
  return total;
}

ResourceList NodeAllocatable(const json::Value& node) {
  const json::Value& allocatable = node.Path({"status", "allocatable"});
  return ToResourceList(allocatable.empty() ? node.Path({"status", "capacity"}) : allocatable);
}

}  // namespace muster::cluster
