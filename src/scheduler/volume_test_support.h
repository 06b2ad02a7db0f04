// src/scheduler/volume_test_support.h
//
// Claims, volumes and classes in a few words, as YAML, for tests.
//
// Thread: any.

#pragma once

#include <string>

#include <fmt/core.h>

#include "json/parse.h"
#include "json/value.h"

namespace muster::scheduler {

inline json::Value Yaml(const std::string& text) { return json::ParseYaml(text).value()[0]; }

// Of 5Gi, ReadWriteOnce. `spec` and `metadata`: further members, e.g. ", volumeName: v".
inline json::Value MakeClaim(const std::string& name, const std::string& class_name,
                             const std::string& spec = "", const std::string& metadata = "") {
  return Yaml(fmt::format(
      "{{metadata: {{namespace: default, name: {}, uid: uid-{}{}}}, spec: {{storageClassName: "
      "'{}', accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 5Gi}}}}{}}}}}",
      name, name, metadata, class_name, spec));
}

// Bound to that volume, and both sides agree.
inline json::Value MakeBoundClaim(const std::string& name, const std::string& class_name,
                                  const std::string& volume) {
  return MakeClaim(name, class_name, ", volumeName: " + volume,
                   ", annotations: {pv.kubernetes.io/bind-completed: 'yes'}");
}

// Free, ReadWriteOnce.
inline json::Value MakeVolume(const std::string& name, const std::string& class_name,
                              const std::string& size = "5Gi", const std::string& spec = "",
                              const std::string& metadata = "") {
  return Yaml(fmt::format(
      "{{metadata: {{name: {}, uid: uid-{}{}}}, spec: {{storageClassName: '{}', accessModes: "
      "[ReadWriteOnce], capacity: {{storage: {}}}{}}}, status: {{phase: Available}}}}",
      name, name, metadata, class_name, size, spec));
}

// ", nodeAffinity: ..." of a volume that nodes with this label alone reach.
inline std::string OnlyOn(const std::string& label, const std::string& value) {
  return fmt::format(
      ", nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: [{{key: {}, operator: "
      "In, values: [{}]}}]}}]}}}}",
      label, value);
}
inline std::string OnlyOnHost(const std::string& host) {
  return OnlyOn("kubernetes.io/hostname", host);
}

inline json::Value MakeClass(const std::string& name, const std::string& provisioner, bool waits,
                             const std::string& more = "") {
  return Yaml(fmt::format("{{metadata: {{name: {}}}, provisioner: {}, volumeBindingMode: {}{}}}",
                          name, provisioner, waits ? "WaitForFirstConsumer" : "Immediate", more));
}

inline constexpr char kNoProvisioner[] = "kubernetes.io/no-provisioner";

}  // namespace muster::scheduler
