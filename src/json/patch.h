// src/json/patch.h
//
// RFC 6901 pointers, RFC 6902 patches, RFC 7386 merge patches. Strategic merge lives in `schema`,
// which knows keys.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "json/value.h"

namespace muster::json {

inline constexpr size_t kMaxPatchOperations = 10'000;  // as upstream
// All that the copy operations of one patch add, as JSON text; as upstream.
inline constexpr size_t kMaxPatchCopiedBytes = 3 * 1024 * 1024;
// Values that one patch copies, looks at or shifts (Draft::steps()): a tenth of a second of work.
inline constexpr uint64_t kMaxPatchSteps = 4'000'000;

// nullptr if the pointer leads nowhere or is malformed.
const Value* FindPointer(const Value& root, std::string_view pointer);

// All operations or none; the result is nested kMaxDepth levels at most if `root` is. BadRequest
// for a malformed patch, Invalid (422) when an operation cannot apply, naming it. Other than RFC
// 6902 says, `replace` adds a member that an object does not have: upstream's API server does
// (evanphx/json-patch v4), and Ray's autoscaler counts on it.
Result<Value> ApplyJsonPatch(const Value& root, const Value& patch);

Value ApplyMergePatch(const Value& target, const Value& patch);
// The smallest merge patch that turns `from` into `to`. REQUIRES for exactness: `to` holds no null
// members (a merge patch cannot write one).
Value CreateMergePatch(const Value& from, const Value& to);

}  // namespace muster::json
