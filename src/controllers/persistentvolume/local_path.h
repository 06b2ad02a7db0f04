// src/controllers/persistentvolume/local_path.h
//
// The provisioner muster.dev/local-path: a volume is a directory on the node that the scheduler
// selected for the claim's first pod. The agent of that node makes the directory when a pod mounts
// it, and removes it when the volume is deleted.
//
// Thread: any (pure functions).

#pragma once

#include <string>

#include "json/value.h"

namespace muster::controllers {

// "pvc-<uid of the claim>"
std::string LocalVolumeName(const json::Value& claim);
// Why no such volume can be made for the claim, wherever it be; "" if one can.
std::string WhyNotLocal(const json::Value& claim, const json::Value& storage_class);
// REQUIRES: the node has a hostname label.
json::Value MakeLocalVolume(const json::Value& claim, const json::Value& storage_class,
                            const json::Value& node);

}  // namespace muster::controllers
