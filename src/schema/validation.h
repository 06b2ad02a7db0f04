// src/schema/validation.h
//
// Validation: what makes an object of a kind invalid, as StatusCauses in upstream's words
// ({"FieldValueRequired", "spec.containers[0].name", "Required value"}).
//
//   std::vector<StatusCause> causes = Validate(kind, pod);
//   if (!causes.empty()) return Error(InvalidError(kind, name, causes));
//
// Thread: any (pure functions).
// REQUIRES for all: objects that Conform and ApplyDefaults have seen.

#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "schema/kind.h"

namespace muster::schema {

inline constexpr size_t kMaxCauses = 100;  // further causes are left out of an answer

// Everything about a new object: metadata and content.
std::vector<StatusCause> Validate(const Kind& kind, const json::Value& object);
// A changed object: it must be valid, and what may not change must not have.
std::vector<StatusCause> ValidateUpdate(const Kind& kind, const json::Value& before,
                                        const json::Value& after);
// A write to the status subresource (or to a custom resource's): only what status may hold.
std::vector<StatusCause> ValidateStatusUpdate(const Kind& kind, const json::Value& before,
                                              const json::Value& after);

// 422: `Pod "x" is invalid: spec.containers: Required value`, several causes as `[a: b, c: d]`; the
// kind is `PyTorchJob.kubeflow.org` outside the core group. REQUIRES: !causes.empty().
Status InvalidError(const Kind& kind, std::string_view name, std::vector<StatusCause> causes);

}  // namespace muster::schema
