// src/controllers/persistentvolume/volume_matching.h
//
// Which volume that exists a claim gets.
// Source: k8s.io/component-helpers storage/volume (FindMatchingVolume), and the index by access
// modes of kube-controller-manager.
//
// Thread: any (pure functions).
// Cost:   O(volumes that were made for the claim + free volumes of its class).

#pragma once

#include <string>

#include "client/informer.h"
#include "json/value.h"

namespace muster::controllers {

// One that is kept for the claim, else the free one of its class with the fewest access modes
// beyond those wanted, and the smallest of these. `waits`: for the first pod, so that only the
// scheduler gives away what is free. nullptr if none will do.
const json::Value* FindVolumeFor(const json::Value& claim, const client::Informer& volumes,
                                 bool waits);

// Why the claim cannot have the volume that it names; "" if it can.
std::string MismatchOf(const json::Value& volume, const json::Value& claim);
bool IsOfOtherMode(const json::Value& volume, const json::Value& claim);

}  // namespace muster::controllers
