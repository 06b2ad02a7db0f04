#include "schema/protobuf_decoder.h"

#include <bit>
#include <unordered_map>

#include "base/strings.h"
#include "base/time.h"
#include "json/parse.h"
#include "json/utf8.h"
#include "schema/protobuf_codec.h"

namespace muster::schema {
namespace {

// Go's zero time, 0001-01-01T00:00:00Z.
constexpr int64_t kZeroTimeSeconds = -62135596800;
// What fits into nanoseconds since 1970 (years 1678 to 2262).
constexpr int64_t kMaxTimeSeconds = 9'200'000'000;
constexpr int64_t kNanosPerSecond = 1'000'000'000;

bool IsMessage(const Schema& schema) {
  switch (schema.type) {
    case Type::kArray:
      return schema.wire_form == WireForm::kStrings;
    case Type::kObject:
    case Type::kAny:
    case Type::kIntOrString:
    case Type::kQuantity:
    case Type::kTime:
    case Type::kMicroTime:
      return true;
    default:
      return false;
  }
}

bool IsVarint(const Schema& schema) {
  return schema.type == Type::kInteger || schema.type == Type::kBoolean;
}

WireType ExpectedWireType(const Schema& schema) {
  if (IsVarint(schema)) return WireType::kVarint;
  return schema.type == Type::kNumber ? WireType::kFixed64 : WireType::kBytes;
}

std::string_view TypeName(const Schema& schema) {
  switch (schema.type) {
    case Type::kInteger:
      return "an integer";
    case Type::kBoolean:
      return "a boolean";
    case Type::kNumber:
      return "a double";
    case Type::kString:
      return "a string";
    case Type::kBytes:
      return "bytes";
    default:
      return "a message";
  }
}

json::Value Text(std::string_view bytes) {
  if (json::IsValidUtf8(bytes)) return json::Value(bytes);
  return json::Value(json::ReplaceInvalidUtf8(bytes));
}

bool IsZero(const json::Value& value) {
  switch (value.kind()) {
    case json::Kind::kNull:
      return true;
    case json::Kind::kBool:
      return !value.AsBool();
    case json::Kind::kNumber:
      return value.AsDouble() == 0;
    case json::Kind::kString:
      return value.AsString().empty();
    default:
      return value.empty();
  }
}

// What Go writes for an unset field that it never leaves out; null where that is null.
json::Value ZeroOf(const Schema& schema) {
  switch (schema.type) {
    case Type::kString:
    case Type::kBytes:
      return "";
    case Type::kInteger:
    case Type::kNumber:
    case Type::kIntOrString:
      return 0;
    case Type::kBoolean:
      return false;
    case Type::kQuantity:
      return "0";
    case Type::kObject:
      return json::Obj();
    default:
      return nullptr;
  }
}

// Entries with the last value of each key, at the place of its first.
json::Value UniqueKeys(json::Object entries) {
  std::unordered_map<std::string, size_t> places;
  json::Object unique;
  for (json::Member& entry : entries) {
    const auto [found, added] = places.try_emplace(entry.first, unique.size());
    if (added) {
      unique.push_back(std::move(entry));
    } else {
      unique[found->second].second = std::move(entry.second);
    }
  }
  return json::Value(std::move(unique));
}

// Small messages with numbered members: Time {1: seconds, 2: nanos}, IntOrString {1: type, 2: int,
// 3: string}.
struct SmallMessage {
  int64_t one = 0, two = 0;
  std::string_view three;
  bool ok = true;
};
SmallMessage ReadSmall(std::string_view bytes) {
  SmallMessage small;
  WireReader reader(bytes);
  while (!reader.AtEnd()) {
    const std::optional<WireField> field = reader.Next();
    if (!field) {
      small.ok = false;
      break;
    }
    if (field->type == WireType::kVarint && field->number == 1)
      small.one = static_cast<int64_t>(field->integer);
    if (field->type == WireType::kVarint && field->number == 2)
      small.two = static_cast<int64_t>(field->integer);
    if (field->type == WireType::kBytes && field->number == 3) small.three = field->bytes;
  }
  return small;
}

// The bytes of field `number` of a message; empty if absent, nullopt if malformed.
std::optional<std::string_view> ReadBytes(std::string_view bytes, uint32_t number) {
  std::string_view found;
  WireReader reader(bytes);
  while (!reader.AtEnd()) {
    const std::optional<WireField> field = reader.Next();
    if (!field) return std::nullopt;
    if (field->number == number && field->type == WireType::kBytes) found = field->bytes;
  }
  return found;
}

}  // namespace

ErrorStatus ProtobufDecoder::Bad(std::string_view what) const {
  std::string path;
  for (const std::string_view name : path_) {
    if (!path.empty()) path += '.';
    path += name;
  }
  return Error(Reason::kBadRequest, "protobuf body: {}{}{}", path, path.empty() ? "" : ": ", what);
}

Status ProtobufDecoder::Count() {
  if (++items_ > kMaxProtobufItems) return Bad("more items than one body may have");
  return Status::Ok();
}

Result<json::Value> ProtobufDecoder::Message(const Schema& schema, std::string_view bytes) {
  if (path_.size() >= static_cast<size_t>(kMaxProtobufDepth))
    return Bad("messages are nested too deep");
  switch (schema.type) {
    case Type::kObject:
      return Object(schema, bytes);
    case Type::kArray:
      return Strings(bytes);
    case Type::kAny:
      return schema.wire_form == WireForm::kRaw ? Raw(bytes) : SchemaOr(schema, bytes);
    case Type::kQuantity: {
      const std::optional<std::string_view> text = ReadBytes(bytes, 1);
      if (!text) return Bad("malformed message");
      return text->empty() ? ZeroOf(schema) : Text(*text);
    }
    case Type::kIntOrString: {
      const SmallMessage small = ReadSmall(bytes);
      if (!small.ok) return Bad("malformed message");
      if (small.one != 0) return Text(small.three);
      return json::Value(static_cast<int64_t>(static_cast<int32_t>(small.two)));
    }
    case Type::kTime:
    case Type::kMicroTime: {
      const SmallMessage small = ReadSmall(bytes);
      if (!small.ok) return Bad("malformed message");
      if (bytes.empty() || small.one == kZeroTimeSeconds) return json::Value();
      if (small.one > kMaxTimeSeconds || small.one < -kMaxTimeSeconds || small.two < 0 ||
          small.two >= kNanosPerSecond)
        return Bad("a time outside the years 1678 to 2261");
      const Time time{seconds(small.one) + std::chrono::nanoseconds(small.two)};
      return json::Value(schema.type == Type::kTime ? FormatTime(time) : FormatMicroTime(time));
    }
    default:
      return Bad("not a message");
  }
}

Result<json::Value> ProtobufDecoder::Raw(std::string_view bytes) {
  const std::optional<std::string_view> raw = ReadBytes(bytes, 1);
  if (!raw) return Bad("malformed message");
  if (raw->empty()) return json::Value();
  // Each message around it may have added two levels, a list or map and an object.
  constexpr int kMaxRawDepth = json::kMaxDepth - 2 * kMaxProtobufDepth;
  Result<json::Value> value = json::Parse(*raw, nullptr, kMaxRawDepth);
  if (!value.has_value()) return Bad("the embedded JSON is broken: " + value.error().message());
  return value;
}

// Of {1: one form, 2: the other} the form that is set.
Result<json::Value> ProtobufDecoder::SchemaOr(const Schema& schema, std::string_view bytes) {
  const Schema* props = schema.items;
  WireReader reader(bytes);
  json::Array list;
  json::Value single;
  bool allows = false;
  while (!reader.AtEnd()) {
    const std::optional<WireField> field = reader.Next();
    if (!field) return Bad("malformed message");
    const bool schema_first = schema.wire_form != WireForm::kSchemaOrBool;
    if (field->number == 1 && field->type == WireType::kVarint) {
      allows = field->integer != 0;
    } else if (field->type == WireType::kBytes && field->number == (schema_first ? 1u : 2u)) {
      ASSIGN_OR_RETURN(single, Message(*props, field->bytes));
    } else if (field->type == WireType::kBytes && field->number == 2) {
      RETURN_IF_ERROR(Count());
      if (schema.wire_form == WireForm::kSchemaOrStrings) {
        list.push_back(Text(field->bytes));
      } else {
        ASSIGN_OR_RETURN(json::Value item, Message(*props, field->bytes));
        list.push_back(std::move(item));
      }
    }
  }
  if (!single.IsNull()) return single;
  if (schema.wire_form == WireForm::kSchemaOrBool) return json::Value(allows);
  return json::Value(std::move(list));
}

Result<json::Value> ProtobufDecoder::Strings(std::string_view bytes) {
  WireReader reader(bytes);
  json::Array list;
  while (!reader.AtEnd()) {
    const std::optional<WireField> field = reader.Next();
    if (!field) return Bad("malformed message");
    if (field->number != 1) continue;
    if (field->type != WireType::kBytes) return Bad("expected a string");
    RETURN_IF_ERROR(Count());
    list.push_back(Text(field->bytes));
  }
  return json::Value(std::move(list));
}

Result<json::Value> ProtobufDecoder::Object(const Schema& schema, std::string_view bytes) {
  std::vector<Slot> slots(schema.fields.size());
  RETURN_IF_ERROR(ReadFields(schema, bytes, 0, slots));
  json::Object object;
  for (size_t i = 0; i < slots.size(); ++i) {
    const Field& field = schema.fields[i];
    if (field.number == 0) continue;  // apiVersion and kind travel in the envelope
    path_.push_back(field.name);
    ASSIGN_OR_RETURN(json::Value value, FieldValue(field, slots[i]));
    path_.pop_back();
    if (!value.IsNull()) object.emplace_back(field.name, std::move(value));
  }
  return json::Value(std::move(object));
}

Status ProtobufDecoder::ReadFields(const Schema& schema, std::string_view bytes, int inlined_in,
                                   std::vector<Slot>& slots) {
  WireReader reader(bytes);
  while (!reader.AtEnd()) {
    const std::optional<WireField> wire = reader.Next();
    if (!wire) return Bad("malformed message");
    const auto number = static_cast<int>(wire->number);
    for (size_t i = 0; i < schema.fields.size(); ++i) {
      const Field& field = schema.fields[i];
      if (field.inlined_in == inlined_in && field.number == number) {
        path_.push_back(field.name);
        RETURN_IF_ERROR(ReadField(field, *wire, slots[i]));
        path_.pop_back();
        break;
      }
      if (inlined_in == 0 && field.inlined_in == number) {
        if (wire->type != WireType::kBytes) return Bad("malformed message");
        RETURN_IF_ERROR(ReadFields(schema, wire->bytes, number, slots));
        break;
      }
    }
  }
  return Status::Ok();
}

Status ProtobufDecoder::ReadField(const Field& field, const WireField& wire, Slot& slot) {
  const Schema& schema = *field.schema;
  slot.seen = true;
  if (schema.type == Type::kArray) return ReadItem(*schema.items, wire, slot);
  if (schema.type == Type::kMap) return ReadEntry(*schema.items, wire, slot);
  if (wire.type != ExpectedWireType(schema))
    return Bad(fmt::format("expected {}", TypeName(schema)));
  slot.last = wire;
  if (!IsMessage(schema)) return Status::Ok();
  if (slot.merged.empty()) {
    slot.merged = wire.bytes;
  } else if (!wire.bytes.empty()) {
    slot.merged = owned_.emplace_back(std::string(slot.merged) + std::string(wire.bytes));
    if (slot.merged.size() > kMaxProtobufBytes) return Bad("message too large");
    return Count();
  }
  return Status::Ok();
}

Status ProtobufDecoder::ReadItem(const Schema& items, const WireField& wire, Slot& slot) {
  if (IsVarint(items) && wire.type == WireType::kBytes)
    return ReadPackedItems(items, wire.bytes, slot);
  RETURN_IF_ERROR(Count());
  if (wire.type != ExpectedWireType(items)) return Bad(fmt::format("expected {}", TypeName(items)));
  ASSIGN_OR_RETURN(json::Value item, Single(items, wire));
  if (item.IsNull()) item = ZeroOf(items);
  slot.items.push_back(std::move(item));
  return Status::Ok();
}

Status ProtobufDecoder::ReadPackedItems(const Schema& items, std::string_view bytes, Slot& slot) {
  WireReader reader(bytes);
  while (!reader.AtEnd()) {
    RETURN_IF_ERROR(Count());
    const std::optional<uint64_t> value = reader.Varint();
    if (!value) return Bad("malformed packed list");
    ASSIGN_OR_RETURN(json::Value item, Single(items, {0, WireType::kVarint, *value, {}}));
    slot.items.push_back(std::move(item));
  }
  return Status::Ok();
}

// A map entry is a message {1: key, 2: value}; the last entry of a key wins.
Status ProtobufDecoder::ReadEntry(const Schema& values, const WireField& wire, Slot& slot) {
  RETURN_IF_ERROR(Count());
  if (wire.type != WireType::kBytes) return Bad("expected a map entry");
  std::string_view key;
  json::Value value = ZeroOf(values);
  WireReader reader(wire.bytes);
  while (!reader.AtEnd()) {
    const std::optional<WireField> member = reader.Next();
    if (!member) return Bad("malformed map entry");
    if (member->number == 1) {
      if (member->type != WireType::kBytes) return Bad("expected a string as key");
      key = member->bytes;
    } else if (member->number == 2) {
      if (member->type != ExpectedWireType(values))
        return Bad(fmt::format("expected {}", TypeName(values)));
      ASSIGN_OR_RETURN(json::Value read, Single(values, *member));
      if (!read.IsNull()) value = std::move(read);
    }
  }
  slot.entries.emplace_back(Text(key).Str(), std::move(value));
  return Status::Ok();
}

Result<json::Value> ProtobufDecoder::FieldValue(const Field& field, Slot& slot) {
  const Schema& schema = *field.schema;
  if (schema.type == Type::kArray)
    return slot.items.empty() ? json::Value() : json::Value(std::move(slot.items));
  if (schema.type == Type::kMap)
    return slot.entries.empty() ? json::Value() : UniqueKeys(std::move(slot.entries));
  json::Value value;
  if (slot.seen) {
    if (IsMessage(schema)) slot.last.bytes = slot.merged;
    ASSIGN_OR_RETURN(value, Single(schema, slot.last));
    if (value.IsNull()) return value;
  }
  if (field.pointer && schema.type != Type::kBytes) return value;
  if (schema.type == Type::kQuantity && value.IsNull()) return ZeroOf(schema);  // as Go prints it
  if (!IsZero(value)) return value;
  return field.omit_empty ? json::Value() : ZeroOf(schema);
}

Result<json::Value> ProtobufDecoder::Single(const Schema& schema, const WireField& wire) {
  switch (schema.type) {
    case Type::kString:
      return Text(wire.bytes);
    case Type::kBytes:
      return json::Value(Base64Encode(wire.bytes));
    case Type::kBoolean:
      return json::Value(wire.integer != 0);
    case Type::kNumber:
      return json::Value(std::bit_cast<double>(wire.integer));
    case Type::kInteger:
      if (schema.format == "int32")
        return json::Value(static_cast<int64_t>(static_cast<int32_t>(wire.integer)));
      return json::Value(static_cast<int64_t>(wire.integer));
    default:
      return Message(schema, wire.bytes);
  }
}

}  // namespace muster::schema
