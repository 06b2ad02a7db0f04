// src/serving/model_storage.h
//
// Where a model comes from: a storageUri becomes a volume of the pod, mounted read-only under
// kModelDir. Nothing is copied: what is there is served, so there is no initializer that could run
// out of memory or download the same model twice.
//
//   file:///srv/iris          the directory (or the file, by its ending) on the pod's node
//   pvc://claim/path          the same, in a volume claim of the namespace
//
// What is not there is not made: the pod waits for it, or does not start, and says so.
//
// Other schemes need a downloader and are refused with a reason.
//
// Thread: any (pure).

#pragma once

#include <string_view>

#include "base/status.h"
#include "json/value.h"

namespace muster::serving {

inline constexpr char kModelDir[] = "/mnt/models";
inline constexpr char kModelVolume[] = "kserve-model";

struct ModelMount {
  json::Value volume;  // of the pod
  json::Value mount;   // of the container
};

// REQUIRES: a URI that passed validation.
Result<ModelMount> MountOf(std::string_view storage_uri);

}  // namespace muster::serving
