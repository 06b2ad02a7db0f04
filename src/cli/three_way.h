// src/cli/three_way.h
//
// Three-way merge, the heart of apply: what the user wants now, laid over what the server has,
// minus what the user wanted last time and wants no more. Everything that others wrote stays.
//
// Thread: any (pure functions).

#pragma once

#include <string>

#include "json/value.h"
#include "schema/schema.h"

namespace muster::cli {

// Shared with kubectl, so that both can apply the same object in turn.
inline constexpr const char* kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

// The object that the server should have. `schema` (null for custom kinds) names the keys by which
// lists merge; other lists are taken as a whole.
json::Value ThreeWayMerge(const json::Value& last, const json::Value& wanted,
                          const json::Value& current, const schema::Schema* schema);

// `manifest` with the annotation that records it, as kubectl writes it (keys sorted, a line feed at
// the end).
json::Value WithLastApplied(const json::Value& manifest);
// What the annotation of `current` records; null if there is none.
json::Value LastAppliedOf(const json::Value& current);

}  // namespace muster::cli
