#include "schema/wire.h"

#include <bit>

namespace muster::schema {
namespace {

constexpr int kTypeBits = 3;
constexpr uint64_t kMaxFieldNumber = (1u << 29) - 1;

void PutTag(std::string& out, int number, WireType type) {
  PutVarint(out, static_cast<uint64_t>(number) << kTypeBits | static_cast<uint64_t>(type));
}

}  // namespace

std::optional<uint64_t> WireReader::Varint() {
  uint64_t value = 0;
  constexpr size_t kMaxBytes = 10;
  for (size_t i = 0; i < rest_.size() && i < kMaxBytes; ++i) {
    const auto byte = static_cast<uint8_t>(rest_[i]);
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if ((byte & 0x80) == 0) {
      rest_.remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> WireReader::Fixed(size_t size) {
  if (rest_.size() < size) return std::nullopt;
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i)
    value |= static_cast<uint64_t>(static_cast<uint8_t>(rest_[i])) << (8 * i);
  rest_.remove_prefix(size);
  return value;
}

std::optional<WireField> WireReader::Next() {
  const std::optional<uint64_t> tag = Varint();
  if (!tag || *tag >> kTypeBits == 0 || *tag >> kTypeBits > kMaxFieldNumber) return std::nullopt;
  WireField field;
  field.number = static_cast<uint32_t>(*tag >> kTypeBits);
  field.type = static_cast<WireType>(*tag & 7);
  std::optional<uint64_t> value;
  switch (field.type) {
    case WireType::kVarint:
      value = Varint();
      break;
    case WireType::kFixed64:
      value = Fixed(8);
      break;
    case WireType::kFixed32:
      value = Fixed(4);
      break;
    case WireType::kBytes:
      value = Varint();
      if (!value || *value > rest_.size()) return std::nullopt;
      field.bytes = rest_.substr(0, *value);
      rest_.remove_prefix(*value);
      break;
    default:
      return std::nullopt;
  }
  if (!value) return std::nullopt;
  field.integer = *value;
  return field;
}

void PutVarint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

void PutVarintField(std::string& out, int number, uint64_t value) {
  PutTag(out, number, WireType::kVarint);
  PutVarint(out, value);
}

void PutDoubleField(std::string& out, int number, double value) {
  PutTag(out, number, WireType::kFixed64);
  const auto bits = std::bit_cast<uint64_t>(value);
  for (int i = 0; i < 8; ++i) out += static_cast<char>(bits >> (8 * i));
}

void PutBytesField(std::string& out, int number, std::string_view bytes) {
  PutBytesHead(out, number, bytes.size());
  out += bytes;
}

void PutBytesHead(std::string& out, int number, size_t size) {
  PutTag(out, number, WireType::kBytes);
  PutVarint(out, size);
}

}  // namespace muster::schema
