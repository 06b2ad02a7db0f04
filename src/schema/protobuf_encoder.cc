#include "schema/protobuf_encoder.h"

#include <algorithm>

#include "base/strings.h"
#include "base/time.h"
#include "json/write.h"
#include "schema/protobuf_codec.h"
#include "schema/wire.h"

namespace muster::schema {
namespace {

// IntOrString {1: type, 2: int, 3: string}.
constexpr uint64_t kIsInt = 0;
constexpr uint64_t kIsString = 1;

}  // namespace

ErrorStatus ProtobufEncoder::Bad(std::string_view expected) const {
  std::string path;
  for (const std::string_view name : path_) {
    if (!path.empty()) path += '.';
    path += name;
  }
  return Error(Reason::kBadRequest, "cannot write as protobuf: {}: expected {}",
               path.empty() ? "object" : path, expected);
}

Status ProtobufEncoder::Message(const Schema& schema, const json::Value& value, std::string& out) {
  if (path_.size() >= static_cast<size_t>(kMaxProtobufDepth)) return Bad("fewer nested objects");
  switch (schema.type) {
    case Type::kObject:
      return Object(schema, value, out);
    case Type::kQuantity:
      if (value.IsNull()) {
        PutBytesField(out, 1, "0");
      } else if (value.IsNumber()) {
        PutBytesField(out, 1, value.NumberToken());
      } else if (value.IsString()) {
        PutBytesField(out, 1, value.AsString());
      } else {
        return Bad("a quantity");
      }
      return Status::Ok();
    case Type::kIntOrString:
      return IntOrString(value, out);
    case Type::kArray:
      if (!value.IsNull() && !value.IsArray()) return Bad("a list");
      for (const json::Value& item : value.items()) {
        if (!item.IsString()) return Bad("a string");
        PutBytesField(out, 1, item.AsString());
      }
      return Status::Ok();
    case Type::kTime:
    case Type::kMicroTime:
      return Timestamp(value, out);
    case Type::kAny:
      if (schema.wire_form != WireForm::kRaw) return SchemaOr(schema, value, out);
      if (!value.IsNull()) PutBytesField(out, 1, json::Write(value));
      return Status::Ok();
    default:
      return Bad("a message");
  }
}

Status ProtobufEncoder::IntOrString(const json::Value& value, std::string& out) {
  if (!value.IsNull() && !value.IsString() && !value.Int()) return Bad("an integer or a string");
  PutVarintField(out, 1, value.IsString() ? kIsString : kIsInt);
  PutVarintField(out, 2, static_cast<uint64_t>(value.AsInt()));
  PutBytesField(out, 3, value.AsString());
  return Status::Ok();
}

Status ProtobufEncoder::Timestamp(const json::Value& value, std::string& out) {
  if (value.IsNull()) return Status::Ok();  // Go's zero time is an empty message
  const std::optional<Time> time = ParseTime(value.AsString());
  if (!time) return Bad("a time as RFC 3339 writes it");
  const auto whole = std::chrono::floor<seconds>(time->time_since_epoch());
  const auto nanos = time->time_since_epoch() - whole;
  PutVarintField(out, 1, static_cast<uint64_t>(whole.count()));
  PutVarintField(out, 2, static_cast<uint64_t>(nanos.count()));
  return Status::Ok();
}

Status ProtobufEncoder::SchemaOr(const Schema& schema, const json::Value& value, std::string& out) {
  const Schema& props = *schema.items;
  if (schema.wire_form == WireForm::kSchemaOrBool) {
    // Go sets allows also beside a schema.
    PutVarintField(out, 1, value.IsObject() || value.AsBool() ? 1 : 0);
    return value.IsObject() ? PutSingle(props, 2, value, out) : Status::Ok();
  }
  if (value.IsObject()) return PutSingle(props, 1, value, out);
  for (const json::Value& item : value.items()) {
    if (schema.wire_form == WireForm::kSchemaOrStrings) {
      PutBytesField(out, 2, item.AsString());
    } else {
      RETURN_IF_ERROR(PutSingle(props, 2, item, out));
    }
  }
  return Status::Ok();
}

Status ProtobufEncoder::Object(const Schema& schema, const json::Value& value, std::string& out) {
  if (!value.IsNull() && !value.IsObject()) return Bad("an object");
  for (size_t i = 0; i < schema.fields.size();) {
    const int inlined_in = schema.fields[i].inlined_in;
    std::string group;
    std::string& target = inlined_in == 0 ? out : group;
    // The fields of an embedded struct stand together.
    for (; i < schema.fields.size() && schema.fields[i].inlined_in == inlined_in; ++i) {
      const Field& field = schema.fields[i];
      if (field.number == 0) continue;  // apiVersion and kind travel in the envelope
      path_.push_back(field.name);
      RETURN_IF_ERROR(PutField(field, value[field.name], target));
      path_.pop_back();
    }
    if (inlined_in != 0) PutBytesField(out, inlined_in, group);
  }
  return Status::Ok();
}

Status ProtobufEncoder::PutField(const Field& field, const json::Value& value, std::string& out) {
  const Schema& schema = *field.schema;
  if (schema.type == Type::kArray) {
    if (!value.IsNull() && !value.IsArray()) return Bad("a list");
    for (const json::Value& item : value.items())
      RETURN_IF_ERROR(PutSingle(*schema.items, field.number, item, out));
    return Status::Ok();
  }
  if (schema.type == Type::kMap) return PutMap(*schema.items, field.number, value, out);
  if (value.IsNull() && field.pointer) return Status::Ok();
  return PutSingle(schema, field.number, value, out);
}

Status ProtobufEncoder::PutMap(const Schema& values, int number, const json::Value& value,
                               std::string& out) {
  if (!value.IsNull() && !value.IsObject()) return Bad("an object");
  std::vector<const json::Member*> entries;
  for (const json::Member& entry : value.members()) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(),
            [](const auto* a, const auto* b) { return a->first < b->first; });
  for (const json::Member* entry : entries) {
    std::string bytes;
    PutBytesField(bytes, 1, entry->first);
    RETURN_IF_ERROR(PutSingle(values, 2, entry->second, bytes));
    PutBytesField(out, number, bytes);
  }
  return Status::Ok();
}

Status ProtobufEncoder::PutSingle(const Schema& schema, int number, const json::Value& value,
                                  std::string& out) {
  switch (schema.type) {
    case Type::kString:
      if (!value.IsNull() && !value.IsString()) return Bad("a string");
      PutBytesField(out, number, value.AsString());
      return Status::Ok();
    case Type::kBytes: {
      const std::optional<std::string> bytes = Base64Decode(value.AsString());
      if (!bytes || (!value.IsNull() && !value.IsString())) return Bad("a base64 string");
      PutBytesField(out, number, *bytes);
      return Status::Ok();
    }
    case Type::kBoolean:
      if (!value.IsNull() && !value.IsBool()) return Bad("a boolean");
      PutVarintField(out, number, value.AsBool() ? 1 : 0);
      return Status::Ok();
    case Type::kInteger:
      if (!value.IsNull() && !value.Int()) return Bad("an integer");
      PutVarintField(out, number, static_cast<uint64_t>(value.AsInt()));
      return Status::Ok();
    case Type::kNumber:
      if (!value.IsNull() && !value.IsNumber()) return Bad("a number");
      PutDoubleField(out, number, value.AsDouble());
      return Status::Ok();
    default: {
      std::string bytes;
      RETURN_IF_ERROR(Message(schema, value, bytes));
      PutBytesField(out, number, bytes);
      return Status::Ok();
    }
  }
}

}  // namespace muster::schema
