#include "controllers/pods/ownership.h"

#include <utility>

namespace muster::controllers {
namespace {

constexpr char kLiveOwner[] = "owner";

bool IsDeleting(const json::Value& object) { return object["metadata"].Has("deletionTimestamp"); }

json::Value ReferenceTo(const json::Value& owner) {
  return json::Obj({{"apiVersion", owner["apiVersion"]},
                    {"kind", owner["kind"]},
                    {"name", owner["metadata"]["name"]},
                    {"uid", owner["metadata"]["uid"]},
                    {"controller", true},
                    {"blockOwnerDeletion", true}});
}

// The uid and the resourceVersion make the server refuse it if the object is another one by now.
json::Value PatchOfOwners(const json::Value& object, json::Array owners) {
  const json::Value& metadata = object["metadata"];
  return json::Obj(
      {{"metadata", json::Obj({{"uid", metadata["uid"]},
                               {"resourceVersion", metadata["resourceVersion"]},
                               {"ownerReferences", json::Value(std::move(owners))}})}});
}

// The object's finalizers but for this one.
json::Array OtherFinalizers(const json::Value& object, std::string_view finalizer) {
  json::Array others;
  for (const json::Value& known : object["metadata"]["finalizers"].items()) {
    if (known.AsString() != finalizer) others.push_back(known);
  }
  return others;
}

json::Value WithFinalizers(json::Value patch, json::Array finalizers) {
  return std::move(patch).SetPath({"metadata", "finalizers"}, json::Value(std::move(finalizers)));
}

client::Target TargetOf(const client::Resource& resource, const json::Value& object) {
  const client::ObjectKey key = client::KeyOf(object);
  return {resource, key.ns, key.name, ""};
}

}  // namespace

json::Value ControlledByOnly(const json::Value& owner) { return json::List({ReferenceTo(owner)}); }

Claims Claim(const json::Value& owner, const schema::LabelSelector& selector,
             const std::vector<json::Value>& candidates) {
  Claims claims;
  const bool owner_goes = IsDeleting(owner);
  for (const json::Value& object : candidates) {
    const json::Value& controller = client::ControllerOf(object);
    const bool matches = selector.Matches(object["metadata"]["labels"]);
    if (!controller.IsNull()) {
      if (controller["uid"] != owner["metadata"]["uid"]) continue;
      if (matches) {
        claims.owned.push_back(object);
      } else if (!owner_goes) {
        claims.released.push_back(object);
      }
    } else if (matches && !owner_goes && !IsDeleting(object)) {
      claims.adopted.push_back(object);
    }
  }
  return claims;
}

bool CarryOut(const client::Resource& owner_resource, const json::Value& owner,
              const client::Resource& resource, const client::Observations& observations,
              Claims& claims, client::Reconciled& out, std::string_view finalizer) {
  if (!claims.adopted.empty()) {
    const auto live = observations.find(kLiveOwner);
    if (live == observations.end()) {
      out.Ask(kLiveOwner, TargetOf(owner_resource, owner));
      return true;
    }
    const bool is_there =
        live->second["metadata"]["uid"] == owner["metadata"]["uid"] && !IsDeleting(live->second);
    if (!is_there) claims.adopted.clear();
  }
  for (const json::Value& object : claims.adopted) {
    json::Array owners = object["metadata"]["ownerReferences"].items();
    owners.push_back(ReferenceTo(owner));
    json::Value patch = PatchOfOwners(object, std::move(owners));
    if (!finalizer.empty()) {
      json::Array finalizers = OtherFinalizers(object, finalizer);
      finalizers.emplace_back(finalizer);
      patch = WithFinalizers(std::move(patch), std::move(finalizers));
    }
    out.PatchMerge(TargetOf(resource, object), std::move(patch));
    claims.owned.push_back(object);
  }
  for (const json::Value& object : claims.released) {
    json::Array owners;
    for (const json::Value& reference : object["metadata"]["ownerReferences"].items()) {
      if (reference["uid"] != owner["metadata"]["uid"]) owners.push_back(reference);
    }
    json::Value patch = PatchOfOwners(object, std::move(owners));
    if (!finalizer.empty())
      patch = WithFinalizers(std::move(patch), OtherFinalizers(object, finalizer));
    out.PatchMerge(TargetOf(resource, object), std::move(patch));
  }
  return false;
}

}  // namespace muster::controllers
