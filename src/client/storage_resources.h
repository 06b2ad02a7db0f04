// src/client/storage_resources.h
//
// The collections of storage, for the few parts that look at it.

#pragma once

#include "client/api_client.h"

namespace muster::client::resources {

inline const Resource kPersistentVolumes{"", "v1", "persistentvolumes"};
inline const Resource kStorageClasses{"storage.k8s.io", "v1", "storageclasses"};

}  // namespace muster::client::resources
