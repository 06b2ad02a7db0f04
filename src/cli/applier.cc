#include "cli/applier.h"

#include <utility>

#include "cli/three_way.h"
#include "json/parse.h"
#include "json/patch.h"
#include "json/write.h"
#include "schema/registry.h"

namespace muster::cli {
namespace {

constexpr int kMaxConflictRetries = 5;
constexpr int kMaxKindRetries =
    50;  // a kind appears some moments after its CustomResourceDefinition
constexpr Duration kKindRetryDelay = milliseconds(100);

const schema::Schema* SchemaOf(const ApiResource& resource) {
  const schema::KindPtr kind = schema::Registry::BuiltIn().FindKind(
      resource.resource.group, resource.resource.version, resource.kind);
  return kind == nullptr ? nullptr : kind->schema.get();
}

}  // namespace

Result<Applied> Applier::Apply(const json::Value& manifest, const MayChange& may_change) {
  ASSIGN_OR_RETURN(const ApiResource resource, FindKind(manifest));
  ASSIGN_OR_RETURN(const json::Value object, WithNamespace(manifest, resource));
  Applied out;
  const std::string name = object["metadata"]["name"].Str();
  out.name = resource.ObjectName(name);
  out.target = {resource.resource, object["metadata"]["namespace"].Str(), name, ""};
  Status status(Reason::kConflict, "");
  for (int i = 0; i <= kMaxConflictRetries && !status.ok(); ++i) {
    if (status.reason() != Reason::kConflict) break;
    status = ApplyOnce(resource, object, may_change, out);
  }
  if (!status.ok()) return Error(std::move(status));
  if (resource.kind == "CustomResourceDefinition") {
    finder_.Forget();
    applied_definition_ = true;
  }
  return out;
}

Result<client::Target> Applier::TargetOf(const json::Value& manifest) {
  ASSIGN_OR_RETURN(const ApiResource resource, FindKind(manifest));
  ASSIGN_OR_RETURN(const json::Value object, WithNamespace(manifest, resource));
  return client::Target{resource.resource, object["metadata"]["namespace"].Str(),
                        object["metadata"]["name"].Str(), ""};
}

Result<ApiResource> Applier::FindKind(const json::Value& object) {
  Result<ApiResource> found =
      finder_.FindKind(object["apiVersion"].AsString(), object["kind"].AsString());
  for (int i = 0; applied_definition_ && !found && i < kMaxKindRetries; ++i) {
    session_.Sleep(kKindRetryDelay);
    finder_.Forget();
    found = finder_.FindKind(object["apiVersion"].AsString(), object["kind"].AsString());
  }
  return found;
}

Result<json::Value> Applier::WithNamespace(const json::Value& object,
                                           const ApiResource& resource) const {
  const std::string_view own = object["metadata"]["namespace"].AsString();
  if (!resource.namespaced) return object.RemovePath({"metadata", "namespace"});
  if (own.empty()) return object.SetPath({"metadata", "namespace"}, session_.ns());
  if (namespace_given_ && own != session_.ns()) {
    return Error(Reason::kInvalid,
                 "the namespace from the provided object \"{}\" does not match the namespace "
                 "\"{}\". You must pass '--namespace={}' to perform this operation.",
                 own, session_.ns(), own);
  }
  return object;
}

// A field that the server does not know is an error: most are misspelled.
Result<json::Value> Applier::Write(const char* method, const client::Target& target,
                                   const char* content_type, const json::Value& body) {
  net::Request request{.method = method,
                       .target = client::ApiClient::PathOf(target) +
                                 "?fieldManager=muster-cli&fieldValidation=Strict"};
  request.headers.Add("Content-Type", content_type);
  request.headers.Add("Accept", "application/json");
  request.body = json::Write(body);
  ASSIGN_OR_RETURN(net::Response answer, session_.Raw(std::move(request)));
  return json::Parse(answer.body);
}

// Conflict: somebody else was faster, the next round merges.
Status Applier::ApplyOnce(const ApiResource& resource, const json::Value& object,
                          const MayChange& may_change, Applied& out) {
  const json::Value wanted = WithLastApplied(object);
  Result<json::Value> current = session_.Get(out.target);
  if (!current && current.error().reason() == Reason::kNotFound) {
    client::Target collection = out.target;
    collection.name.clear();
    Result<json::Value> created = Write("POST", collection, "application/json", wanted);
    if (!created && created.error().reason() == Reason::kAlreadyExists)
      return Status(Reason::kConflict, "created meanwhile");
    if (!created) return created.error();
    out.outcome = "created";
    return Status::Ok();
  }
  if (!current) return current.error();
  if (may_change) RETURN_IF_ERROR(may_change(*current));
  const json::Value merged =
      ThreeWayMerge(LastAppliedOf(*current), wanted, *current, SchemaOf(resource));
  out.before = *current;
  out.patch = json::CreateMergePatch(*current, merged);
  out.outcome = "unchanged";
  if (out.patch.empty()) return Status::Ok();
  const json::Value& version = (*current)["metadata"]["resourceVersion"];
  ASSIGN_OR_RETURN(const json::Value after,
                   Write("PATCH", out.target, "application/merge-patch+json",
                         out.patch.SetPath({"metadata", "resourceVersion"}, version)));
  if (after["metadata"]["resourceVersion"] != version) out.outcome = "configured";
  return Status::Ok();
}

}  // namespace muster::cli
