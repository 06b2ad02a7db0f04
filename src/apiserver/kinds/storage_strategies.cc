#include "apiserver/kinds/storage_strategies.h"

#include "apiserver/errors.h"
#include "apiserver/kinds/limit_ranger.h"
#include "apiserver/stored_object.h"
#include "schema/quantity_syntax.h"
#include "schema/registry.h"
#include "schema/storage_names.h"

namespace muster::apiserver {
namespace {

using schema::kClassAnnotation;

const schema::Kind& StorageClasses() {
  static const schema::KindPtr kKind =
      schema::Registry::BuiltIn().Find("storage.k8s.io", "v1", "storageclasses");
  return *kKind;
}

bool IsDefault(const json::Value& storage_class) {
  const json::Value& annotations = storage_class["metadata"]["annotations"];
  return annotations[schema::kDefaultClassAnnotation].AsString() == "true" ||
         annotations[schema::kDefaultClassBetaAnnotation].AsString() == "true";
}

// The newest of those that say that they are it, by name among equals; null if none does.
json::Value DefaultStorageClass(const store::Store& store) {
  const Result<store::RangeResult> range = store.Range(KeyPrefix(StorageClasses()), "", 0, 0);
  json::Value newest;
  if (!range) return newest;
  for (const store::EntryPtr& entry : range->entries) {
    // Few classes exist, and the word is only in those that may be it.
    if (entry->value->find("is-default-class") == std::string::npos) continue;
    json::Value one = DecodeStored(StorageClasses(), *entry->value);
    // Times of one form compare as texts do; entries come by name.
    if (IsDefault(one) &&
        (newest.IsNull() || one["metadata"]["creationTimestamp"].AsString() >
                                newest["metadata"]["creationTimestamp"].AsString())) {
      newest = std::move(one);
    }
  }
  return newest;
}

// "" if it names none.
std::string_view ClassOf(const json::Value& claim) {
  const json::Value& annotation = claim["metadata"]["annotations"][kClassAnnotation];
  return annotation.IsString() ? annotation.AsString()
                               : claim["spec"]["storageClassName"].AsString();
}

// Admission StorageObjectInUseProtection: whoever deletes it waits until nobody uses it.
void Protect(json::Value& object, std::string_view finalizer) {
  const json::Value& finalizers = object["metadata"]["finalizers"];
  for (const json::Value& known : finalizers.items()) {
    if (known.AsString() == finalizer) return;
  }
  object = object.SetPath({"metadata", "finalizers"}, finalizers.Append(finalizer));
}

bool Grows(const json::Value& before, const json::Value& after) {
  const auto size = [](const json::Value& claim) {
    return schema::AmountFromJson(claim["spec"]["resources"]["requests"]["storage"]);
  };
  const Result<schema::Amount> old = size(before), now = size(after);
  return old && now && *now > *old;
}

class ReturningStrategy : public Strategy {
 public:
  bool returns_deleted_object() const override { return true; }
};

// For kinds that drivers write: nobody overwrites what he has not read.
class DriverStrategy : public ReturningStrategy {
 public:
  bool allows_unconditional_update() const override { return false; }
};

class CapacityStrategy : public Strategy {
 public:
  bool allows_unconditional_update() const override { return false; }
};

class ClaimStrategy : public ReturningStrategy {
 public:
  explicit ClaimStrategy(const store::Store& store) : store_(store) {}

  Status PrepareCreate(WriteContext&, json::Value& claim) override {
    Protect(claim, schema::kClaimProtection);
    if (claim["metadata"]["annotations"].Has(kClassAnnotation) ||
        !claim["spec"]["storageClassName"].IsNull()) {
      return Status::Ok();
    }
    const json::Value found = DefaultStorageClass(store_);
    if (!found.IsNull())
      claim = claim.SetPath({"spec", "storageClassName"}, found["metadata"]["name"]);
    return Status::Ok();
  }

  Status Reserve(WriteContext& context, const json::Value* before, json::Value& claim) override {
    if (before != nullptr && (*before)["spec"] == claim["spec"]) return Status::Ok();
    return CheckClaimInLimitRanges(store_, context, claim);
  }

  Status PrepareUpdate(WriteContext& context, const json::Value& before,
                       json::Value& after) override {
    if (!Grows(before, after)) return Status::Ok();
    if (before["status"]["phase"].AsString() != "Bound") {
      return ForbiddenError(context.kind, context.name,
                            "Only bound persistent volume claims can be expanded");
    }
    if (MayGrow(before, after)) return Status::Ok();
    return ForbiddenError(context.kind, context.name,
                          "only dynamically provisioned pvc can be resized and the storageclass "
                          "that provisions the pvc must support resize");
  }

 private:
  bool MayGrow(const json::Value& before, const json::Value& after) const {
    const std::string_view name = ClassOf(after);
    if (name.empty() || name != ClassOf(before)) return false;
    const store::EntryPtr entry = store_.GetLatest(ObjectKey(StorageClasses(), "", name));
    return entry != nullptr &&
           DecodeStored(StorageClasses(), *entry->value)["allowVolumeExpansion"].AsBool();
  }

  const store::Store& store_;
};

class VolumeStrategy : public ReturningStrategy {
 public:
  Status PrepareCreate(WriteContext& context, json::Value& volume) override {
    Protect(volume, schema::kVolumeProtection);
    volume =
        volume.Set("status", json::Obj({{"phase", "Pending"}, {kSince, FormatTime(context.now)}}));
    return Status::Ok();
  }

  Status PrepareStatusUpdate(WriteContext& context, const json::Value& before,
                             json::Value& after) override {
    const json::Value& old = before["status"];
    const json::Value& now = after["status"];
    const bool same_phase = old["phase"].AsString() == now["phase"].AsString();
    if (same_phase && now[kSince].IsNull() && !old[kSince].IsNull()) {
      after = after.SetPath({"status", kSince}, old[kSince]);
    } else if (!same_phase && (now[kSince].IsNull() || now[kSince] == old[kSince])) {
      after = after.SetPath({"status", kSince}, FormatTime(context.now));
    }
    return Status::Ok();
  }

 private:
  static constexpr const char* kSince = "lastPhaseTransitionTime";
};

}  // namespace

void AddStorageStrategies(store::Store& store,
                          std::map<std::string, std::unique_ptr<Strategy>>& strategies) {
  strategies["persistentvolumeclaims"] = std::make_unique<ClaimStrategy>(store);
  strategies["persistentvolumes"] = std::make_unique<VolumeStrategy>();
  strategies["storageclasses.storage.k8s.io"] = std::make_unique<ReturningStrategy>();
  strategies["volumeattributesclasses.storage.k8s.io"] = std::make_unique<ReturningStrategy>();
  strategies["csidrivers.storage.k8s.io"] = std::make_unique<DriverStrategy>();
  strategies["csinodes.storage.k8s.io"] = std::make_unique<DriverStrategy>();
  strategies["volumeattachments.storage.k8s.io"] = std::make_unique<DriverStrategy>();
  strategies["csistoragecapacities.storage.k8s.io"] = std::make_unique<CapacityStrategy>();
}

}  // namespace muster::apiserver
