// src/schema/protobuf_decoder.h
//
// ProtobufDecoder: message bytes -> json::Value by Schema, see protobuf_codec.h for the rules.
//
// Life cycle: one per body; it counts what the body contains against the limits.
// Thread:     not shared.

#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "schema/schema.h"
#include "schema/wire.h"

namespace muster::schema {

class ProtobufDecoder {
 public:
  // REQUIRES: the schema is that of a message (kObject, or a type that a message carries).
  Result<json::Value> Message(const Schema& schema, std::string_view bytes);

 private:
  // What was seen of one field of a message.
  struct Slot {
    bool seen = false;
    WireField last;  // scalars: the last one wins
    std::string_view
        merged;  // messages: all occurrences, one after the other, as protobuf merges them
    json::Array items;
    json::Object entries;
  };

  Result<json::Value> Object(const Schema& schema, std::string_view bytes);
  Status ReadFields(const Schema& schema, std::string_view bytes, int inlined_in,
                    std::vector<Slot>& slots);
  Status ReadField(const Field& field, const WireField& wire, Slot& slot);
  Status ReadItem(const Schema& items, const WireField& wire, Slot& slot);
  Status ReadPackedItems(const Schema& items, std::string_view bytes, Slot& slot);
  Status ReadEntry(const Schema& values, const WireField& wire, Slot& slot);
  // The value of a field, or a null that means "leave it out".
  Result<json::Value> FieldValue(const Field& field, Slot& slot);
  Result<json::Value> Single(const Schema& schema, const WireField& wire);
  Result<json::Value> Raw(std::string_view bytes);
  Result<json::Value> Strings(std::string_view bytes);
  Result<json::Value> SchemaOr(const Schema& schema, std::string_view bytes);
  Status Count();
  ErrorStatus Bad(std::string_view what) const;

  std::vector<std::string_view> path_;
  std::deque<std::string> owned_;  // bytes of messages that came in parts
  size_t items_ = 0;
};

}  // namespace muster::schema
