// src/apiserver/update.h
//
// What PUT and PATCH share: turning "the object as the client wants it" into "the object as it will
// be stored".
//
// Thread: the loop thread (pure apart from the strategy).

#pragma once

#include "apiserver/object_writer.h"
#include "apiserver/resource_registry.h"
#include "apiserver/strategy.h"
#include "base/status.h"
#include "json/value.h"

namespace muster::apiserver {

enum class UpdateScope : uint8_t {
  kMain,    // everything but the status, where that is a subresource
  kStatus,  // only the status (of built-in kinds also labels and annotations, as upstream)
};

// What of that needs no more than the two objects: name, namespace, UID, resourceVersion.
Status CheckUpdatable(const Resource& resource, const WriteContext& context,
                      const json::Value& before, const json::Value& wanted);
// `wanted` with what a client may not change as it was; still with its own status.
json::Value KeepSystemFields(const schema::Kind& kind, const json::Value& before,
                             const json::Value& wanted);
// Warnings of fields without effect that `after` has and `before` has not.
void WarnOfNewFields(const json::Value& before, const json::Value& after, WriteContext& context);
// Warns, naming the object: kubectl prints equal warnings once. REQUIRES: it has its name.
void Warn(WriteContext& context, std::string_view what);

// Checks name, namespace, resourceVersion and uid, keeps what a client may not change, defaults,
// validates, counts the generation. `wanted` conforms to the kind.
Result<json::Value> PrepareUpdate(const Resource& resource, WriteContext& context,
                                  const json::Value& before, json::Value wanted, UpdateScope scope);

}  // namespace muster::apiserver
