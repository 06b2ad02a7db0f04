// src/schema/storage_names.h
//
// Names by which the API server, the controllers and the agents agree about storage.

#pragma once

#include <string_view>

namespace muster::schema {

// Keeps a claim while pods use it, and a volume while it is bound.
inline constexpr std::string_view kClaimProtection = "kubernetes.io/pvc-protection";
inline constexpr std::string_view kVolumeProtection = "kubernetes.io/pv-protection";

// Who makes directories on the nodes into volumes; also the finalizer of such a volume, which the
// agent of its node takes away with the directory.
inline constexpr std::string_view kLocalPathProvisioner = "muster.dev/local-path";
inline constexpr std::string_view kLocalPathClass = "local-path";
// Of a node: the directory in which its agent keeps these volumes.
inline constexpr std::string_view kLocalVolumesAnnotation = "muster.dev/local-volumes";
inline constexpr std::string_view kLocalVolumesDefault = "/var/lib/muster/volumes";

// Of a volume: the provisioner that made it.
inline constexpr std::string_view kProvisionedByAnnotation = "pv.kubernetes.io/provisioned-by";

inline constexpr std::string_view kDefaultClassAnnotation =
    "storageclass.kubernetes.io/is-default-class";
inline constexpr std::string_view kDefaultClassBetaAnnotation =
    "storageclass.beta.kubernetes.io/is-default-class";
// What came before spec.storageClassName, which it still beats.
inline constexpr std::string_view kClassAnnotation = "volume.beta.kubernetes.io/storage-class";

}  // namespace muster::schema
