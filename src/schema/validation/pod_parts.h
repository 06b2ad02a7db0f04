// src/schema/validation/pod_parts.h
//
// Private to src/schema: the parts of a Pod's rules, split over several files.
//
// Thread: any (pure functions).

#pragma once

#include <map>
#include <string>

#include "json/value.h"
#include "schema/validation/field_errors.h"

namespace muster::schema {

// The volumes of a pod that are declared rightly: name -> kind of source ("configMap").
using VolumeSources = std::map<std::string, std::string, std::less<>>;

// What containers may refer to, and what of the pod their rules depend on.
struct PodScope {
  VolumeSources volumes;
  int64_t grace_seconds = 0;
  std::string os;  // spec.os.name
};

void ValidateContainers(const json::Value& spec, const Path& path, const PodScope& scope,
                        FieldErrors& errors);
// Of anything that is counted somewhere, and of what a container may ask for.
void ValidateResourceName(const std::string& name, const Path& path, FieldErrors& errors);
void ValidateContainerResourceName(const std::string& name, const Path& path, FieldErrors& errors);
void ValidateResources(const json::Value& resources, const Path& path, FieldErrors& errors);
// One of "livenessProbe", "readinessProbe", "startupProbe".
void ValidateProbe(const json::Value& probe, std::string_view which, const Path& path,
                   FieldErrors& errors);
// Of a probe or a lifecycle hook; `grace_seconds` bounds its sleep.
void ValidateHandler(const json::Value& handler, const Path& path, int64_t grace_seconds,
                     FieldErrors& errors);
// lifecycle.stopSignal of a pod for that operating system.
void ValidateStopSignal(const json::Value& signal, const std::string& os, const Path& path,
                        FieldErrors& errors);
void ValidateEnv(const json::Value& container, const Path& path, FieldErrors& errors);

// `key` says which source it is: "hostPath".
void ValidateVolumeSource(const std::string& key, const json::Value& source, const Path& path,
                          FieldErrors& errors);
VolumeSources ValidateVolumes(const json::Value& volumes, const Path& path, FieldErrors& errors);
// Both lists of a container that name volumes.
void ValidateMounts(const json::Value& container, const Path& path, const VolumeSources& volumes,
                    FieldErrors& errors);
// A path inside a volume: relative, and no "..".
void ValidateInnerPath(const json::Value& text, const Path& path, FieldErrors& errors);
void ValidateFieldRef(const json::Value& reference, const Path& path, bool in_volume,
                      FieldErrors& errors);
void ValidateResourceFieldRef(const json::Value& reference, const Path& path, bool in_volume,
                              FieldErrors& errors);

void ValidateAffinity(const json::Value& affinity, const Path& path, FieldErrors& errors);
void ValidateNodeSelectorTerm(const json::Value& term, const Path& path, FieldErrors& errors);
void ValidateTolerations(const json::Value& tolerations, const Path& path, FieldErrors& errors);
void ValidateTopologySpread(const json::Value& constraints, const Path& path, FieldErrors& errors);

void ValidatePodSecurity(const json::Value& spec, const Path& path, FieldErrors& errors);
void ValidateContainerSecurity(const json::Value& security, const Path& path, FieldErrors& errors);
void ValidateOs(const json::Value& spec, const Path& path, FieldErrors& errors);

// An amount of a resource: not negative, whole where it counts things.
void ValidateAmount(std::string_view name, const json::Value& value, const Path& path,
                    FieldErrors& errors);

}  // namespace muster::schema
