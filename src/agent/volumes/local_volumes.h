// src/agent/volumes/local_volumes.h
//
// The volumes that a node itself keeps for claims (provisioner muster.dev/local-path): folders
// below DIR/local-volumes, which the Node tells by an annotation. The provisioner writes the
// PersistentVolume, the agent makes the folder when the first pod mounts it, and removes it before
// it takes its finalizer off a PersistentVolume that goes. That it was made is noted in
// DIR/local-volumes-made, so that data which somebody moved away, or whose disk is not mounted,
// does not become an empty folder without a word.
//
// Thread:     questions about objects any (pure); the rest blocks (pool).
// Invariants: only what is directly below the root and named after its volume is ever removed, by a
//             name and never by what spec.local.path says; a folder is renamed before it is
//             removed, so what is found of a volume is never half of it.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/storage_resources.h"
#include "json/projection.h"
#include "json/value.h"
#include "schema/storage_names.h"

namespace muster::agent {

using client::resources::kPersistentVolumes;
using schema::kLocalPathProvisioner;  // also the finalizer of its volumes
using schema::kLocalVolumesAnnotation;
using schema::kProvisionedByAnnotation;
using schema::kVolumeProtection;

std::string LocalVolumesDir(const std::string& data_dir);

// "<volume>_<namespace>_<claim>" of a PersistentVolume; the volume's name alone where that gets too
// long for a file name; "" without a claimRef, or if it is no file name at all.
std::string LocalVolumeFolder(const json::Value& volume);
// The PersistentVolume of such a folder; "" if it is none.
std::string VolumeOfLocalFolder(std::string_view folder);
// It was made by the provisioner for the folder `path`.
bool IsLocalPathVolume(const json::Value& volume, const std::string& path);
// The host that spec.nodeAffinity names alone; "" if it does not.
std::string HostOfVolume(const json::Value& volume);
// persistentVolumeReclaimPolicy Retain: its folder outlives it.
bool IsRetained(const json::Value& volume);
// It is deleted, no claim holds it any more, and its node has to remove the folder.
bool AwaitsRemoval(const json::Value& volume);
// A merge patch that takes our finalizer off, if the object is still as it was.
json::Value WithoutFinalizer(const json::Value& volume);
// What the functions above read, besides what informers always keep.
const json::Fields& LocalVolumeFields();

// The volumes that are here, retained ones not.
std::vector<std::string> LocalVolumeFolders(const std::string& root);
// Everybody may write in a new one; one that is there stays as it is. NotFound if it was made
// before and is gone.
Status MakeLocalVolume(const std::string& root, const std::string& folder);
Status RemoveLocalVolume(const std::string& root, const std::string& folder);
// Whether it stays when its PersistentVolume is gone. A mark beside it says so, which an agent that
// was away meanwhile finds. Does nothing where there is no such folder.
Status RetainLocalVolume(const std::string& root, const std::string& folder, bool retain);
// What removals that were broken off have left.
void SweepLocalVolumes(const std::string& root);

}  // namespace muster::agent
