// src/schema/conversion.h
//
// Conversion: a served version of a built-in kind whose objects look different from the stored
// ones. What a client writes in that version is converted on its way in, what it reads on its way
// out; everything between (defaults, validation, strategies, the store, controllers) knows the
// stored version alone. Versions without a conversion share the stored form as it is.
//
// Thread: any (pure functions). A kind's conversion is set once, when the registry is built.

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "schema/kind.h"

namespace muster::schema {

// Where a part of the stored version came from: errors name what the client wrote.
struct MovedField {
  std::string stored;  // "spec.metrics[0].resource"
  std::string spoken;  // "spec.cpu"
};

struct Converted {
  json::Value object;
  std::vector<MovedField> moved;  // the first one that fits a path counts
};

struct Conversion {
  KindPtr stored;
  // Both take objects that conform to their version and leave apiVersion and kind alone.
  Converted (*to_stored)(const json::Value& object);
  json::Value (*from_stored)(const json::Value& object);
};

// The kind as it is stored: `kind` itself unless it has a conversion.
inline const Kind& StoredKind(const Kind& kind) {
  return kind.conversion == nullptr ? kind : *kind.conversion->stored;
}

// `object`, which conforms to `kind`, in the stored version; itself without a conversion.
Converted ToStored(const Kind& kind, const json::Value& object);
// And back, with `kind`'s apiVersion.
json::Value FromStored(const Kind& kind, const json::Value& object);

// An Invalid whose causes name fields of the stored version, in the words of the client's. Other
// errors stay as they are.
Status InSpokenFields(const Kind& kind, const std::vector<MovedField>& moved, const Status& status);

// Gives those of `kinds` their conversions that have one. For the registry.
void ConnectConversions(const std::vector<std::shared_ptr<Kind>>& kinds);

}  // namespace muster::schema
