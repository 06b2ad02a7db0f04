#include "apiserver/update.h"

#include <set>

#include "apiserver/errors.h"
#include "base/strings.h"
#include "json/write.h"
#include "schema/defaulting.h"
#include "schema/unsupported_fields.h"
#include "schema/validation.h"

namespace muster::apiserver {
namespace {

Status CheckIdentity(const Resource& resource, const WriteContext& context,
                     const json::Value& before, const json::Value& wanted) {
  const json::Value& metadata = wanted["metadata"];
  const std::string_view name = metadata["name"].AsString();
  if (name.empty()) {
    return Error(Reason::kBadRequest,
                 "the name of the object ({} based on URL) was undeterminable: name must be "
                 "provided",
                 context.name);
  }
  if (name != context.name) {
    return Error(Reason::kBadRequest,
                 "the name of the object ({}) does not match the name on the URL ({})", name,
                 context.name);
  }
  if (const std::string_view ns = metadata["namespace"].AsString();
      resource.kind->namespaced && !ns.empty()) {
    if (ns != context.ns) {
      return Error(Reason::kBadRequest,
                   "the namespace of the object ({}) does not match the namespace on the URL ({})",
                   ns, context.ns);
    }
  }
  const std::string_view uid = metadata["uid"].AsString();
  const std::string_view current_uid = before["metadata"]["uid"].AsString();
  if (!uid.empty() && uid != current_uid) {
    return ConflictError(
        *resource.kind, context.name,
        fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}", uid,
                    current_uid));
  }
  return Status::Ok();
}

Status CheckRevision(const Resource& resource, const WriteContext& context,
                     const json::Value& before, const json::Value& wanted) {
  const std::string_view revision = wanted["metadata"]["resourceVersion"].AsString();
  if (revision.empty() || revision == "0") {
    if (resource.strategy->allows_unconditional_update()) return Status::Ok();
    return schema::InvalidError(*resource.kind, context.name,
                                {{"FieldValueInvalid", "metadata.resourceVersion",
                                  "Invalid value: 0x0: must be specified for an update"}});
  }
  if (!ParseInt(revision)) {
    return schema::InvalidError(*resource.kind, context.name,
                                {InvalidField("metadata.resourceVersion", json::Value(revision),
                                              "must be a decimal number")});
  }
  if (revision != before["metadata"]["resourceVersion"].AsString())
    return ConflictError(*resource.kind, context.name);
  return Status::Ok();
}

// What a client may not change stays as it was.
json::Value KeepSystemMetadata(const json::Value& before, json::Value metadata) {
  for (std::string_view field :
       {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
        "deletionTimestamp", "deletionGracePeriodSeconds", "generateName"}) {
    const json::Value* value = before.Find(field);
    metadata = value != nullptr ? metadata.Set(field, *value) : metadata.Remove(field);
  }
  return metadata.Remove("managedFields").Remove("selfLink");
}

json::Value Replace(json::Value object, std::string_view field, const json::Value& from) {
  const json::Value* value = from.Find(field);
  return value != nullptr ? object.Set(field, *value) : object.Remove(field);
}

json::Value MergeStatus(const Resource& resource, const json::Value& before,
                        const json::Value& wanted) {
  json::Value after = Replace(before, "status", wanted);
  if (resource.kind->custom) return after;
  json::Value metadata = before["metadata"];
  for (std::string_view field : {"labels", "annotations", "finalizers"}) {
    metadata = Replace(std::move(metadata), field, wanted["metadata"]);
  }
  return after.Set("metadata", metadata);
}

bool SpecChanged(const json::Value& before, const json::Value& after) {
  const auto spec = [](const json::Value& object) {
    return object.Remove("metadata").Remove("status");
  };
  return !(spec(before) == spec(after));
}

bool CountsAsNewGeneration(const Strategy& strategy, const json::Value& before,
                           const json::Value& after) {
  if (SpecChanged(before, after)) return true;
  return strategy.annotations_count_for_generation() &&
         !(before["metadata"]["annotations"] == after["metadata"]["annotations"]);
}

}  // namespace

void Warn(WriteContext& context, std::string_view what) {
  context.warnings.push_back(fmt::format("{} {}: {}", context.kind.kind, context.name, what));
}

void WarnOfNewFields(const json::Value& before, const json::Value& after, WriteContext& context) {
  const schema::Kind& kind = context.kind;
  const std::vector<schema::UnsupportedField> fields = schema::FindUnsupported(*kind.schema, after);
  if (fields.empty()) return;
  std::set<std::string> old;
  for (const schema::UnsupportedField& field : schema::FindUnsupported(*kind.schema, before))
    old.insert(field.ToString());
  for (const schema::UnsupportedField& field : fields) {
    if (const std::string text = field.ToString(); !old.contains(text)) Warn(context, text);
  }
}

Status CheckUpdatable(const Resource& resource, const WriteContext& context,
                      const json::Value& before, const json::Value& wanted) {
  RETURN_IF_ERROR(CheckIdentity(resource, context, before, wanted));
  return CheckRevision(resource, context, before, wanted);
}

json::Value KeepSystemFields(const schema::Kind& kind, const json::Value& before,
                             const json::Value& wanted) {
  return wanted.Set("metadata", KeepSystemMetadata(before["metadata"], wanted["metadata"]))
      .Set("kind", kind.kind)
      .Set("apiVersion", kind.GroupVersion());
}

Result<json::Value> PrepareUpdate(const Resource& resource, WriteContext& context,
                                  const json::Value& before, json::Value wanted,
                                  UpdateScope scope) {
  const schema::Kind& kind = *resource.kind;
  Strategy& strategy = *resource.strategy;
  RETURN_IF_ERROR(CheckUpdatable(resource, context, before, wanted));
  json::Value after = KeepSystemFields(kind, before, wanted);
  std::vector<StatusCause> causes;
  if (scope == UpdateScope::kStatus) {
    after = MergeStatus(resource, before, after);
    RETURN_IF_ERROR(strategy.PrepareStatusUpdate(context, before, after));
    after = schema::ApplyDefaults(kind, std::move(after));
    causes = schema::ValidateStatusUpdate(kind, before, after);
  } else {
    if (kind.status_subresource) after = Replace(std::move(after), "status", before);
    RETURN_IF_ERROR(strategy.PrepareUpdate(context, before, after));
    after = schema::ApplyDefaults(kind, std::move(after));
    causes = schema::ValidateUpdate(kind, before, after);
    strategy.Validate(context, &before, after, causes);
    WarnOfNewFields(before, after, context);
    if (strategy.has_generation() && CountsAsNewGeneration(strategy, before, after)) {
      after =
          after.SetPath({"metadata", "generation"}, before["metadata"]["generation"].AsInt() + 1);
    }
  }
  if (!causes.empty()) return Error(schema::InvalidError(kind, context.name, std::move(causes)));
  return after;
}

}  // namespace muster::apiserver
