#include "apiserver/kinds/limit_ranger.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/errors.h"
#include "apiserver/stored_object.h"
#include "base/strings.h"
#include "schema/defaulting.h"
#include "schema/quantity_syntax.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

using schema::Amount;

constexpr const char* kAnnotation = "kubernetes.io/limit-ranger";

std::vector<json::Value> RangesOf(const store::Store& store, std::string_view ns) {
  static const schema::KindPtr kind = schema::Registry::BuiltIn().Find("", "v1", "limitranges");
  std::vector<json::Value> ranges;
  const Result<store::RangeResult> found = store.Range(CollectionPrefix(*kind, ns), "", 0, 0);
  if (!found) return ranges;
  for (const store::EntryPtr& entry : found->entries)
    ranges.push_back(DecodeStored(*kind, *entry->value));
  return ranges;
}

// The names that `defaults` adds to one list of a container.
std::string AddMissing(json::Value& container, std::string_view list, const json::Value& defaults) {
  std::vector<std::string> added;
  for (const auto& [name, amount] : defaults.members()) {
    if (container["resources"][list].Has(name)) continue;
    container = std::move(container).SetPath({"resources", std::string(list), name}, amount);
    added.push_back(name);
  }
  std::ranges::sort(added);
  return Join(added, ", ");
}

void FillContainers(json::Value& pod, std::string_view list, std::string_view what,
                    const json::Value& item, std::vector<std::string>& notes) {
  json::Array containers;
  for (json::Value container : pod["spec"][list].items()) {
    const std::string name = container["name"].Str();
    for (const auto& [into, from, word] : {std::tuple("requests", "defaultRequest", "request"),
                                           std::tuple("limits", "default", "limit")}) {
      const std::string added = AddMissing(container, into, item[from]);
      if (!added.empty()) notes.push_back(fmt::format("{} {} for {} {}", added, word, what, name));
    }
    containers.push_back(std::move(container));
  }
  if (!containers.empty())
    pod = std::move(pod).SetPath({"spec", std::string(list)}, json::Value(std::move(containers)));
}

// Requests and limits of a container, a pod or a claim.
struct Asked {
  json::Value requests, limits;
  std::optional<Amount> Request(std::string_view name) const { return Of(requests, name); }
  std::optional<Amount> Limit(std::string_view name) const { return Of(limits, name); }
  static std::optional<Amount> Of(const json::Value& list, std::string_view name) {
    const Result<Amount> amount = schema::AmountFromJson(list[name]);
    return amount ? std::optional(*amount) : std::nullopt;
  }
};

json::Value Combine(const json::Value& a, const json::Value& b, bool add) {
  json::Value sum = a.IsObject() ? a : json::Obj();
  for (const auto& [name, text] : b.members()) {
    const std::optional<Amount> one = Asked::Of(b, name), other = Asked::Of(sum, name);
    if (!one) continue;
    Amount both = other.value_or(Amount{0, one->format});
    both.nano = add ? both.nano + one->nano : std::max(both.nano, one->nano);
    sum = std::move(sum).Set(name, both.Canonical());
  }
  return sum;
}

// Of a whole pod: its containers and sidecars together, or the init container that needs most
// beside the sidecars before it; and the overhead.
json::Value SumOfPod(const json::Value& spec, std::string_view list) {
  json::Value sidecars = json::Obj(), most = json::Obj(), sum = json::Obj();
  for (const json::Value& container : spec["initContainers"].items()) {
    const json::Value& own = container["resources"][list];
    if (container["restartPolicy"].AsString() == "Always") {
      sidecars = Combine(sidecars, own, true);
      most = Combine(most, sidecars, false);
    } else {
      most = Combine(most, Combine(sidecars, own, true), false);
    }
  }
  for (const json::Value& container : spec["containers"].items())
    sum = Combine(sum, container["resources"][list], true);
  sum = Combine(Combine(sum, sidecars, true), most, false);
  return Combine(sum, spec["overhead"], true);
}

// The faults of one object against one item of a range.
class Faults {
 public:
  Faults(const json::Value& item, std::vector<std::string>& texts)
      : type_(item["type"].Str()), item_(item), texts_(texts) {}

  // A claim has no limits that count.
  void Check(const Asked& asked, bool has_limits) {
    for (const auto& [name, bound] : item_["min"].members()) CheckMin(name, bound, asked);
    for (const auto& [name, bound] : item_["max"].members()) {
      if (has_limits) {
        CheckMax(name, bound, asked);
      } else {
        CheckMaxRequest(name, bound, asked.Request(name), true);
      }
    }
    if (!has_limits) return;
    for (const auto& [name, bound] : item_["maxLimitRequestRatio"].members())
      CheckRatio(name, bound, asked);
  }

 private:
  void Add(std::string text) {
    if (std::ranges::find(texts_, text) == texts_.end()) texts_.push_back(std::move(text));
  }
  std::string Usage(std::string_view word, const std::string& name, const Amount& bound) const {
    return fmt::format("{} {} usage per {} is {}", word, name, type_, bound.Canonical());
  }

  void CheckMin(const std::string& name, const json::Value& text, const Asked& asked) {
    const Result<Amount> bound = schema::AmountFromJson(text);
    if (!bound) return;
    const std::optional<Amount> request = asked.Request(name), limit = asked.Limit(name);
    const std::string usage = Usage("minimum", name, *bound);
    if (!request) return Add(usage + ".  No request is specified");
    if (*request < *bound) return Add(usage + ", but request is " + request->Canonical());
    if (limit && *limit < *bound) Add(usage + ", but limit is " + limit->Canonical());
  }

  void CheckMax(const std::string& name, const json::Value& text, const Asked& asked) {
    const Result<Amount> bound = schema::AmountFromJson(text);
    if (!bound) return;
    const std::optional<Amount> limit = asked.Limit(name);
    const std::string usage = Usage("maximum", name, *bound);
    if (!limit) return Add(usage + ".  No limit is specified");
    if (*limit > *bound) return Add(usage + ", but limit is " + limit->Canonical());
    CheckMaxRequest(name, text, asked.Request(name), false);
  }

  void CheckMaxRequest(const std::string& name, const json::Value& text,
                       const std::optional<Amount>& request, bool needed) {
    const Result<Amount> bound = schema::AmountFromJson(text);
    if (!bound) return;
    const std::string usage = Usage("maximum", name, *bound);
    if (!request && needed) Add(usage + ".  No request is specified");
    if (request && *request > *bound) Add(usage + ", but request is " + request->Canonical());
  }

  void CheckRatio(const std::string& name, const json::Value& text, const Asked& asked) {
    const Result<Amount> bound = schema::AmountFromJson(text);
    if (!bound) return;
    const Amount request = asked.Request(name).value_or(Amount{});
    const Amount limit = asked.Limit(name).value_or(Amount{});
    const std::string start = fmt::format("{} max limit to request ratio per {} is {}, but ", name,
                                          type_, bound->Canonical());
    if (request.nano == 0) return Add(start + "no request is specified or request is 0");
    if (limit.nano == 0) return Add(start + "no limit is specified or limit is 0");
    const double ratio = static_cast<double>(limit.nano) / static_cast<double>(request.nano);
    if (ratio > static_cast<double>(bound->nano) / 1e9)
      Add(start + fmt::format("provided ratio is {:f}", ratio));
  }

  const std::string type_;
  const json::Value& item_;
  std::vector<std::string>& texts_;
};

Status Refusal(const WriteContext& context, const std::vector<std::string>& texts) {
  if (texts.empty()) return Status::Ok();
  return ForbiddenError(context.kind, context.name,
                        texts.size() == 1 ? texts[0] : "[" + Join(texts, ", ") + "]");
}

Asked AskedBy(const json::Value& resources) { return {resources["requests"], resources["limits"]}; }

}  // namespace

void ApplyLimitRangeDefaults(const store::Store& store, const WriteContext& context,
                             json::Value& pod) {
  const std::vector<json::Value> ranges = RangesOf(store, context.ns);
  if (ranges.empty()) return;
  // A request that is not said is the limit, and so none that a range fills in.
  pod = schema::ApplyDefaults(context.kind, std::move(pod));
  std::vector<std::string> notes;
  for (const json::Value& range : ranges) {
    for (const json::Value& item : range["spec"]["limits"].items()) {
      if (item["type"].AsString() != "Container") continue;
      FillContainers(pod, "containers", "container", item, notes);
      FillContainers(pod, "initContainers", "init container", item, notes);
    }
  }
  if (!notes.empty()) {
    pod = std::move(pod).SetPath({"metadata", "annotations", kAnnotation},
                                 "LimitRanger plugin set: " + Join(notes, "; "));
  }
}

Status CheckPodInLimitRanges(const store::Store& store, const WriteContext& context,
                             const json::Value& pod) {
  const json::Value& spec = pod["spec"];
  for (const json::Value& range : RangesOf(store, context.ns)) {
    std::vector<std::string> texts;
    for (const json::Value& item : range["spec"]["limits"].items()) {
      Faults faults(item, texts);
      if (item["type"].AsString() == "Pod")
        faults.Check({SumOfPod(spec, "requests"), SumOfPod(spec, "limits")}, true);
      if (item["type"].AsString() != "Container") continue;
      for (std::string_view list : {"containers", "initContainers"}) {
        for (const json::Value& container : spec[list].items())
          faults.Check(AskedBy(container["resources"]), true);
      }
    }
    RETURN_IF_ERROR(Refusal(context, texts));
  }
  return Status::Ok();
}

Status CheckClaimInLimitRanges(const store::Store& store, const WriteContext& context,
                               const json::Value& claim) {
  for (const json::Value& range : RangesOf(store, context.ns)) {
    std::vector<std::string> texts;
    for (const json::Value& item : range["spec"]["limits"].items()) {
      if (item["type"].AsString() == "PersistentVolumeClaim")
        Faults(item, texts).Check(AskedBy(claim["spec"]["resources"]), false);
    }
    RETURN_IF_ERROR(Refusal(context, texts));
  }
  return Status::Ok();
}

}  // namespace muster::apiserver
