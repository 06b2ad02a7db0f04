// src/apiserver/delete_options.h
//
// DeleteOptions: from the body of a DELETE (JSON, YAML, protobuf) or from its query; the body wins.
//
// Thread: any (pure).

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apiserver/call.h"
#include "base/status.h"

namespace muster::apiserver {

enum class Propagation : uint8_t { kBackground, kForeground, kOrphan };

struct DeleteOptions {
  std::optional<int64_t> grace_period_seconds;
  std::optional<Propagation> propagation;
  std::string uid, resource_version;  // preconditions; "" for none
  bool dry_run = false;
};

Result<DeleteOptions> ParseDeleteOptions(const Call& call);
// Of a body that carries them (null: none), on top of `options`.
Result<DeleteOptions> ReadDeleteOptions(const json::Value& body, DeleteOptions options);

}  // namespace muster::apiserver
