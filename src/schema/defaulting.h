// src/schema/defaulting.h
//
// Defaults: the values that upstream fills in for absent fields, from Field::default_value over the
// whole tree and by kind (k8s.io/kubernetes pkg/apis/*/v1/defaults.go) where one field's default
// depends on others.
//
// Thread: any (pure functions). What needs no default keeps sharing its storage.

#pragma once

#include "base/status.h"
#include "json/value.h"
#include "schema/kind.h"
#include "schema/schema.h"

namespace muster::schema {

// Fields that defaulting may look at plus bytes that it may add. A body of three megabytes with
// items that say nothing, against a schema of one with many defaults, would become terabytes.
inline constexpr size_t kMaxDefaultsCost = 2'000'000;
// RequestEntityTooLarge beyond that. Stops counting there.
Status CheckCostOfDefaults(const Schema& schema, const json::Value& value);

// REQUIRES: an object that Conform has seen.
json::Value ApplyDefaults(const Kind& kind, json::Value object);
// The schema's own defaults alone.
json::Value ApplySchemaDefaults(const Schema& schema, json::Value value);
// What a Pod's spec gets, also inside a template. Gives back the completed spec.
json::Value DefaultPodSpec(json::Value spec);

}  // namespace muster::schema
