// src/controllers/persistentvolume/storage_facts.h
//
// What the controllers of storage ask of claims, volumes and classes, and the indexes by which they
// find them.
// Source: k8s.io/component-helpers storage/volume.
//
// Thread: any (pure functions); what takes an Informer, the loop thread.

#pragma once

#include <string>
#include <string_view>

#include "client/reconcile.h"
#include "client/storage_resources.h"
#include "cluster/volumes.h"
#include "json/value.h"
#include "schema/storage_names.h"

namespace muster::controllers {

// Whose driver made the volume.
using schema::kProvisionedByAnnotation;
// Whose driver is to make the claim's volume: today's name and the one that drivers also look at.
inline constexpr std::string_view kProvisionerAnnotation =
    "volume.kubernetes.io/storage-provisioner";
inline constexpr std::string_view kProvisionerBetaAnnotation =
    "volume.beta.kubernetes.io/storage-provisioner";

// Of a claim or a volume; "" if it names none.
std::string ClassOf(const json::Value& object);
// A claim that names the class "" wants none, one that names nothing wants the default.
bool NamesClass(const json::Value& claim);
// The newest of those that say that they are it, by name among equals; nullptr if none does.
const json::Value* DefaultClass(const client::Informer& classes);
bool IsDefaultClass(const json::Value& storage_class);

bool IsBeingDeleted(const json::Value& object);
// A merge patch for this very object, whatever it became since.
json::Value PatchOf(const json::Value& seen, json::Value patch);
// One for the object as it was seen, which the server refuses when it has changed since.
json::Value GuardedPatch(const json::Value& seen, json::Value patch);

// The volume's claimRef names the claim; one without uid, any claim of that name.
bool IsFor(const json::Value& volume, const json::Value& claim);
// The claim that the volume is kept for; both "" without one.
client::ObjectKey ClaimOf(const json::Value& volume);
// The host that a local volume names; "" if it names none.
std::string HostOf(const json::Value& volume);
std::string HostnameOf(const json::Value& node);

// What is read of each kind, besides what these indexes need.
const json::Fields& ClaimFields();
const json::Fields& VolumeFields();
const json::Fields& ClassFields();
const json::Fields& StorageNodeFields();
json::Fields StoragePodFields();

// Indexes; call in Setup().
void IndexClaims(client::Informer& claims);
void IndexVolumes(client::Informer& volumes);
void IndexHosts(client::Informer& nodes);
// Claims without a volume, by their class, and by the node that was selected for them.
std::vector<client::ObjectKey> UnboundOfClass(const client::Informer& claims,
                                              const std::string& class_name);
std::vector<client::ObjectKey> UnboundOnNode(const client::Informer& claims,
                                             const std::string& node);
std::vector<client::ObjectKey> ClaimsOfVolume(const client::Informer& claims,
                                              const std::string& volume);
// Volumes whose claimRef has that name, whatever its uid.
std::vector<client::ObjectKey> VolumesFor(const client::Informer& volumes,
                                          const client::ObjectKey& claim);
// Available ones that are kept for nobody.
std::vector<client::ObjectKey> FreeOfClass(const client::Informer& volumes,
                                           const std::string& class_name);
bool IsFree(const json::Value& volume);
// Volumes of our provisioner that are being deleted, by host.
std::vector<client::ObjectKey> GoingOnHost(const client::Informer& volumes,
                                           const std::string& host);
bool IsLocalPathVolume(const json::Value& volume);
bool HasHost(const client::Informer& nodes, const std::string& host);

// Pods by the claims that they name, generic ephemeral ones included; may be called again.
void IndexPodsByClaim(client::Informer& pods);
std::vector<client::ObjectKey> PodsOfClaim(const client::Informer& pods,
                                           const client::ObjectKey& claim);
// It waits for a node; null does not.
bool IsUnscheduled(const json::Value& pod);
// Names of such pods of the claim.
std::vector<std::string> UnscheduledPodsOf(const client::Informer& pods,
                                           const client::ObjectKey& claim);

}  // namespace muster::controllers
