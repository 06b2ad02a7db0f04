#include "controllers/namespaces/namespace_conditions.h"

#include <string_view>
#include <vector>

#include "base/strings.h"
#include "schema/conditions.h"

namespace muster::controllers {
namespace {

struct Said {
  std::string_view type;
  bool holds = false;
  std::string reason, message;
};

std::string Listed(const std::map<std::string, size_t>& counts, std::string_view between) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts)
    parts.push_back(fmt::format("{} {} {} resource instances", name, between, count));
  return Join(parts, ", ");
}

std::vector<Said> SayAll(const NamespaceRemains& remains) {
  std::vector<Said> out = {
      {"NamespaceDeletionDiscoveryFailure", false, "ResourcesDiscovered",
       "All resources successfully discovered"},
      {"NamespaceDeletionGroupVersionParsingFailure", false, "ParsedGroupVersions",
       "All legacy kube types successfully parsed"},
      {"NamespaceDeletionContentFailure", false, "ContentDeleted",
       "All content successfully deleted, may be waiting on finalization"},
      {"NamespaceContentRemaining", false, "ContentRemoved", "All content successfully removed"},
      {"NamespaceFinalizersRemaining", false, "ContentHasNoFinalizers",
       "All content-preserving finalizers finished"},
  };
  if (!remains.refused.empty()) {
    size_t count = 0;
    for (const auto& [resource, refused] : remains.refused) count += refused;
    out[2] = {"NamespaceDeletionContentFailure", true, "ContentDeletionFailed",
              fmt::format("Failed to delete all resource types, {} remaining: {}", count,
                          remains.refusal.empty() ? "not deleted: " + Listed(remains.refused, "has")
                                                  : remains.refusal)};
  }
  if (!remains.resources.empty()) {
    out[3] = {"NamespaceContentRemaining", true, "SomeResourcesRemain",
              "Some resources are remaining: " + Listed(remains.resources, "has")};
  }
  if (!remains.finalizers.empty()) {
    out[4] = {"NamespaceFinalizersRemaining", true, "SomeFinalizersRemain",
              "Some content in the namespace has finalizers remaining: " +
                  Listed(remains.finalizers, "in")};
  }
  return out;
}

}  // namespace

void NamespaceRemains::Add(const client::Resource& resource, const json::Value& object,
                           bool asked) {
  const std::string name = resource.plural + "." + resource.group;
  ++resources[name];
  if (asked && !object["metadata"].Has("deletionTimestamp")) ++refused[name];
  for (const json::Value& finalizer : object["metadata"]["finalizers"].items())
    ++finalizers[finalizer.Str()];
}

json::Value ConditionsOf(const NamespaceRemains& remains, const json::Value& before, Time now) {
  json::Array out;
  bool same = true;
  for (const Said& said : SayAll(remains)) {
    const json::Value& old = schema::FindCondition(before, said.type);
    const std::string_view status = said.holds ? "True" : "False";
    if (old["status"].AsString() == status && old["reason"].AsString() == said.reason &&
        old["message"].AsString() == said.message) {
      out.push_back(old);
      continue;
    }
    same = false;
    // As upstream: of the last change of any kind.
    out.push_back(json::Obj({{"type", said.type},
                             {"status", status},
                             {"lastTransitionTime", FormatTime(now)},
                             {"reason", said.reason},
                             {"message", said.message}}));
  }
  return same ? before : json::Value(std::move(out));
}

}  // namespace muster::controllers
