#include "agent/devices/proto_wire.h"

#include <optional>

namespace muster::agent {
namespace {

constexpr uint64_t kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5;

std::optional<uint64_t> TakeVarint(std::string_view& in) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return std::nullopt;
}

Status NoMessage() { return Error(Reason::kInvalid, "it is no protobuf message"); }

}  // namespace

void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void AppendBytes(std::string& out, int field, std::string_view value) {
  AppendVarint(out, static_cast<uint64_t>(field) << 3 | kLength);
  AppendVarint(out, value.size());
  out += value;
}

void AppendNumber(std::string& out, int field, uint64_t value) {
  AppendVarint(out, static_cast<uint64_t>(field) << 3 | kVarint);
  AppendVarint(out, value);
}

Status ReadFields(std::string_view message,
                  const std::function<Status(const ProtoField&)>& on_field) {
  while (!message.empty()) {
    const auto tag = TakeVarint(message);
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > 0x1fffffff) return NoMessage();
    ProtoField field;
    field.number = static_cast<int>(*tag >> 3);
    const uint64_t type = *tag & 7;
    if (type == kFixed64 || type == kFixed32) {
      const size_t size = type == kFixed64 ? 8 : 4;
      if (message.size() < size) return NoMessage();
      message.remove_prefix(size);
      continue;
    }
    if (type != kVarint && type != kLength) return NoMessage();
    const auto value = TakeVarint(message);
    if (!value) return NoMessage();
    field.value = *value;
    if (type == kLength) {
      if (*value > message.size()) return NoMessage();
      field.is_bytes = true;
      field.bytes = message.substr(0, *value);
      message.remove_prefix(*value);
    }
    RETURN_IF_ERROR(on_field(field));
  }
  return Status::Ok();
}

}  // namespace muster::agent
