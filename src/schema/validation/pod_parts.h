// src/schema/validation/pod_parts.h
//
// Private to src/schema: the parts of a Pod's rules, split over several files.
//
// Thread: any (pure functions).

#pragma once

#include <set>
#include <string>

#include "json/value.h"
#include "schema/validation/field_errors.h"

namespace muster::schema {

// What containers may refer to.
struct PodScope {
  std::set<std::string, std::less<>> volumes;  // names that are declared
  bool host_network = false;
};

void ValidateContainers(const json::Value& spec, const Path& path, const PodScope& scope,
                        FieldErrors& errors);
void ValidateResources(const json::Value& resources, const Path& path, FieldErrors& errors);
void ValidateProbe(const json::Value& probe, const Path& path, bool must_succeed_once,
                   FieldErrors& errors);
void ValidateHandler(const json::Value& handler, const Path& path, FieldErrors& errors);
void ValidateEnv(const json::Value& container, const Path& path, FieldErrors& errors);

std::set<std::string, std::less<>> ValidateVolumes(const json::Value& volumes, const Path& path,
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

// "cpu", "nvidia.com/gpu": what a container may ask for.
bool IsExtendedResource(std::string_view name);

}  // namespace muster::schema
