// src/schema/strategic_merge.h
//
// Strategic merge patches, as kubectl apply, edit, set and patch send them to built-in kinds: lists
// merge by the keys that the schema names. Rules: k8s.io/apimachinery pkg/util/strategicpatch.
//
// Thread: any (pure function).

#pragma once

#include "base/status.h"
#include "json/value.h"
#include "schema/schema.h"

namespace muster::schema {

// Knows $patch (replace, delete, merge), $deleteFromPrimitiveList, $setElementOrder, $retainKeys,
// and null to delete. BadRequest for a patch that cannot be understood, e.g. a list item without
// its merge key.
Result<json::Value> StrategicMerge(const Schema& schema, const json::Value& original,
                                   const json::Value& patch);

}  // namespace muster::schema
