// src/controllers/persistentvolume/storage_test_base.h
//
// Claims, volumes, classes and nodes for this folder's tests.

#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "client/storage_resources.h"
#include "controllers/controller_test_base.h"
#include "controllers/persistentvolume/ephemeral_volume_controller.h"
#include "controllers/persistentvolume/persistent_volume_controller.h"
#include "controllers/persistentvolume/protection_controllers.h"

namespace muster::controllers {

inline constexpr char kVolumes[] = "/api/v1/persistentvolumes";
inline constexpr char kStorageClasses[] = "/apis/storage.k8s.io/v1/storageclasses";

class StorageTest : public ControllerTest {
 protected:
  void StartAll() {
    Add(std::make_unique<ClaimProtectionController>());
    Add(std::make_unique<VolumeProtectionController>());
    Add(std::make_unique<EphemeralVolumeController>());
    Start(std::make_unique<PersistentVolumeController>());
  }
  void PutClass(const std::string& name, const std::string& provisioner,
                const std::string& mode = "Immediate", const std::string& more = "") {
    Put(kStorageClasses,
        fmt::format("{{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {{name: {}}}, "
                    "provisioner: {}, volumeBindingMode: {}, reclaimPolicy: Delete{}}}",
                    name, provisioner, mode, more));
  }
  void PutLocalClass() { PutClass("local-path", "muster.dev/local-path", "WaitForFirstConsumer"); }
  void PutNode(const std::string& name, const std::string& metadata = "") {
    Put(kNodes, fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: {}, labels: "
                            "{{kubernetes.io/hostname: host-{}}}{}}}}}",
                            name, name, metadata));
  }
  // `spec`: ", storageClassName: x".
  void PutClaim(const std::string& name, const std::string& size, const std::string& spec = "",
                const std::string& metadata = "", const std::string& mode = "ReadWriteOnce") {
    Put(kClaims, fmt::format("{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: {}, "
                             "namespace: d, finalizers: [kubernetes.io/pvc-protection]{}}}, spec: "
                             "{{accessModes: [{}], volumeMode: Filesystem, resources: {{requests: "
                             "{{storage: {}}}}}{}}}, status: {{phase: Pending}}}}",
                             name, metadata, mode, size, spec));
  }
  void PutVolume(const std::string& name, const std::string& size, const std::string& spec = "",
                 const std::string& metadata = "", const std::string& modes = "ReadWriteOnce") {
    Put(kVolumes,
        fmt::format("{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: {}, finalizers: "
                    "[kubernetes.io/pv-protection]{}}}, spec: {{accessModes: [{}], volumeMode: "
                    "Filesystem, capacity: {{storage: {}}}, hostPath: {{path: /x}}{}}}, status: "
                    "{{phase: Pending}}}}",
                    name, metadata, modes, size, spec));
  }
  json::Value Claim(const std::string& name) { return Get(kClaims, "d", name); }
  json::Value Volume(const std::string& name) { return Get(kVolumes, "", name); }
  std::string VolumeOf(const std::string& claim) {
    return Claim(claim)["spec"]["volumeName"].Str();
  }
  std::string PhaseOf(const json::Value& object) { return object["status"]["phase"].Str(); }
  void Change(const char* collection, const json::Value& object,
              std::initializer_list<std::string_view> path, json::Value value) {
    api_.Put(collection, object.SetPath(path, std::move(value)));
    Settle();
  }
  // As a client does, so that finalizers count.
  void Delete(const client::Resource& resource, const std::string& ns, const std::string& name) {
    client_.Delete({resource, ns, name, ""}, {}, [](Result<json::Value>) {});
    Settle();
  }
  void DeleteClaim(const std::string& name) {
    Delete(client::resources::kPersistentVolumeClaims, "d", name);
  }
  void DeleteVolume(const std::string& name) {
    Delete(client::resources::kPersistentVolumes, "", name);
  }
  // What the scheduler writes.
  void SelectNode(const std::string& claim, const std::string& node) {
    Change(kClaims, Claim(claim), {"metadata", "annotations", "volume.kubernetes.io/selected-node"},
           node);
  }
  void ExpectBound(const std::string& claim, const std::string& volume) {
    SCOPED_TRACE(claim);
    const json::Value of_claim = Claim(claim);
    const json::Value of_volume = Volume(volume);
    EXPECT_EQ(of_claim["spec"]["volumeName"].Str(), volume);
    EXPECT_EQ(PhaseOf(of_claim), "Bound");
    EXPECT_EQ(of_claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"].Str(), "yes");
    EXPECT_EQ(of_claim["status"]["accessModes"], of_volume["spec"]["accessModes"]);
    EXPECT_EQ(of_claim["status"]["capacity"], of_volume["spec"]["capacity"]);
    EXPECT_EQ(PhaseOf(of_volume), "Bound");
    EXPECT_EQ(of_volume["spec"]["claimRef"]["uid"], of_claim["metadata"]["uid"]);
    EXPECT_EQ(of_volume["spec"]["claimRef"]["name"].Str(), claim);
  }
  bool IsChosenByController(const json::Value& object) {
    return object["metadata"]["annotations"].Has("pv.kubernetes.io/bound-by-controller");
  }
  bool IsGoing(const json::Value& object) const {
    return object["metadata"].Has("deletionTimestamp");
  }
  bool HasEvent(const std::string& event) const {
    for (const std::string& each : Events()) {
      if (each == event) return true;
    }
    return false;
  }
};

}  // namespace muster::controllers
