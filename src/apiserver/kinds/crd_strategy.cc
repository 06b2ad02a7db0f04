#include "apiserver/kinds/crd_strategy.h"

#include <algorithm>

#include "apiserver/errors.h"
#include "apiserver/table/json_path.h"
#include "schema/conditions.h"
#include "schema/crd.h"
#include "schema/defaulting.h"

namespace muster::apiserver {
namespace {

json::Value Condition(std::string_view type, bool holds, std::string_view reason,
                      std::string_view message, const json::Value& old_conditions, Time now) {
  const std::string_view status = holds ? "True" : "False";
  const json::Value& old = schema::FindCondition(old_conditions, type);
  return json::Obj({{"type", type},
                    {"status", status},
                    {"lastTransitionTime", schema::TransitionTime(old, status, now)},
                    {"reason", reason},
                    {"message", message}});
}

json::Value StoredVersions(const json::Value& crd, const json::Value& old_status) {
  std::vector<std::string> versions = json::ToStrings(old_status["storedVersions"]);
  for (const json::Value& version : crd["spec"]["versions"].items()) {
    const std::string name = version["name"].Str();
    if (version["storage"].AsBool() && std::ranges::find(versions, name) == versions.end())
      versions.push_back(name);
  }
  return json::Strings(versions);
}

}  // namespace

CrdStrategy::CrdStrategy(Served served, OnCommit on_commit)
    : served_(std::move(served)), on_commit_(std::move(on_commit)) {}

std::pair<std::string, std::string> CrdStrategy::FindNameConflict(const json::Value& crd) const {
  const json::Value& names = crd["spec"]["names"];
  for (const ResourcePtr& resource : served_()) {
    const schema::Kind& taken = *resource->kind;
    if (taken.group != crd["spec"]["group"].AsString()) continue;
    if (resource->crd == crd["metadata"]["name"].AsString()) continue;
    // Of several conflicts the one that upstream checks last is told.
    const auto used = [](const json::Value& name) {
      return fmt::format("\"{}\" is already in use", name.AsString());
    };
    const auto is_kind = [&](const json::Value& name) {
      return name.AsString() == taken.kind || name.AsString() == taken.list_kind;
    };
    const auto is_resource = [&](const json::Value& name) {
      return name.AsString() == taken.plural || name.AsString() == taken.singular ||
             std::ranges::find(taken.short_names, name.AsString()) != taken.short_names.end();
    };
    if (is_kind(names["listKind"])) return {"ListKindConflict", used(names["listKind"])};
    if (is_kind(names["kind"])) return {"KindConflict", used(names["kind"])};
    for (const json::Value& name : names["shortNames"].items()) {
      if (is_resource(name)) return {"ShortNamesConflict", used(name)};
    }
    if (is_resource(names["singular"])) return {"SingularConflict", used(names["singular"])};
    if (is_resource(names["plural"])) return {"PluralConflict", used(names["plural"])};
  }
  return {};
}

json::Value CrdStrategy::StatusFor(const json::Value& crd, const json::Value& old_status,
                                   Time now) const {
  const auto [reason, message] = FindNameConflict(crd);
  const json::Value& old = old_status["conditions"];
  const bool accepted = reason.empty();
  json::Array conditions;
  conditions.push_back(
      accepted ? Condition("NamesAccepted", true, "NoConflicts", "no conflicts found", old, now)
               : Condition("NamesAccepted", false, reason, message, old, now));
  conditions.push_back(accepted ? Condition("Established", true, "InitialNamesAccepted",
                                            "the initial names have been accepted", old, now)
                                : Condition("Established", false, "NotAccepted",
                                            "not all names are accepted", old, now));
  for (const json::Value& condition : old.items()) {
    const std::string_view type = condition["type"].AsString();
    if (type != "NamesAccepted" && type != "Established") conditions.push_back(condition);
  }
  const json::Value no_names = json::Obj({{"plural", ""}, {"kind", ""}});
  return json::Obj({{"conditions", json::Value(std::move(conditions))},
                    {"acceptedNames", accepted ? crd["spec"]["names"] : no_names},
                    {"storedVersions", StoredVersions(crd, old_status)}});
}

Status CrdStrategy::PrepareCreate(WriteContext& context, json::Value& crd) {
  crd = schema::ApplyDefaults(context.kind, std::move(crd));  // names that depend on names
  const json::Value& finalizers = crd["metadata"]["finalizers"];
  crd = crd.SetPath({"metadata", "finalizers"}, finalizers.Append(kCrdCleanupFinalizer));
  crd = crd.Set("status", StatusFor(crd, json::Value(), context.now));
  return Status::Ok();
}

Status CrdStrategy::PrepareUpdate(WriteContext& context, const json::Value& before,
                                  json::Value& after) {
  after = schema::ApplyDefaults(context.kind, std::move(after));
  after = after.Set("status", StatusFor(after, before["status"], context.now));
  return Status::Ok();
}

void CrdStrategy::Validate(const WriteContext& context, const json::Value*,
                           const json::Value& after, std::vector<StatusCause>& causes) {
  const std::string expected = fmt::format("{}.{}", after["spec"]["names"]["plural"].AsString(),
                                           after["spec"]["group"].AsString());
  const auto about_name = [](const StatusCause& cause) { return cause.field == "metadata.name"; };
  if (context.name != expected && std::ranges::none_of(causes, about_name)) {
    causes.push_back(InvalidField("metadata.name", json::Value(context.name),
                                  "must be spec.names.plural+\".\"+spec.group"));
  }
  if (!causes.empty()) return;
  const json::Array& versions = after["spec"]["versions"].items();
  for (size_t i = 0; i < versions.size(); ++i) {
    const json::Array& columns = versions[i]["additionalPrinterColumns"].items();
    for (size_t j = 0; j < columns.size(); ++j) {
      if (const Result<JsonPath> path = JsonPath::Parse(columns[j]["jsonPath"].AsString()); !path) {
        causes.push_back(InvalidField(
            fmt::format("spec.versions[{}].additionalPrinterColumns[{}].jsonPath", i, j),
            columns[j]["jsonPath"], path.error().message()));
      }
    }
  }
  if (!causes.empty()) return;
  if (const Result<std::vector<schema::KindPtr>> kinds = schema::KindsFromCrd(after); !kinds) {
    causes = kinds.error().details().causes;
    if (causes.empty())
      causes.push_back({"FieldValueInvalid", "spec.versions", kinds.error().message()});
  }
}

void CrdStrategy::MarkDeleted(json::Value& crd) {
  // As long as objects are left; the finalizer goes when the last one has.
  const json::Value condition =
      json::Obj({{"type", "Terminating"},
                 {"status", "True"},
                 {"lastTransitionTime", crd["metadata"]["deletionTimestamp"]},
                 {"reason", "InstanceDeletionPending"},
                 {"message",
                  "CustomResourceDefinition marked for deletion; "
                  "CustomResource deletion will begin soon"}});
  json::Value conditions = crd["status"]["conditions"];
  if (!schema::FindCondition(conditions, "Terminating").IsNull()) return;
  crd = crd.SetPath({"status", "conditions"}, conditions.Append(condition));
}

void CrdStrategy::Committed(const json::Value* before, const json::Value* after) {
  on_commit_(before, after);
}

bool IsEstablished(const json::Value& crd) {
  return schema::ConditionHolds(crd["status"]["conditions"], "Established");
}

}  // namespace muster::apiserver
