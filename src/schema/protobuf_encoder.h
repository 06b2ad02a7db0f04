// src/schema/protobuf_encoder.h
//
// ProtobufEncoder: json::Value -> message bytes by Schema, as Go's generated code writes them; see
// protobuf_codec.h.
//
// Life cycle: one per object.
// Thread:     not shared.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "schema/schema.h"

namespace muster::schema {

class ProtobufEncoder {
 public:
  // Appends the bytes of the message, without its length.
  Status Message(const Schema& schema, const json::Value& value, std::string& out);

 private:
  Status Object(const Schema& schema, const json::Value& value, std::string& out);
  Status PutField(const Field& field, const json::Value& value, std::string& out);
  Status PutMap(const Schema& values, int number, const json::Value& value, std::string& out);
  // One value with its tag; null stands for the zero of the type.
  Status PutSingle(const Schema& schema, int number, const json::Value& value, std::string& out);
  Status IntOrString(const json::Value& value, std::string& out);
  Status Timestamp(const json::Value& value, std::string& out);
  Status SchemaOr(const Schema& schema, const json::Value& value, std::string& out);
  ErrorStatus Bad(std::string_view expected) const;

  std::vector<std::string_view> path_;
};

}  // namespace muster::schema
