// src/schema/wire.h
//
// The protobuf wire format: tags, varints, fixed and length-delimited values.
//
// Life cycle: a reader walks bytes that outlive it; the writer appends to a string.
// Thread:     not shared.
// Invariants: a reader never reads past its end; a malformed value makes Next() or a Read return
// false, for good.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::schema {

enum class WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5
};

// One field as it stands in the bytes: a number and either `integer` (varint, fixed) or `bytes`.
struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t integer = 0;
  std::string_view bytes;
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  bool AtEnd() const { return rest_.empty(); }
  // The next field; nullopt when the bytes are malformed. Groups, which Kubernetes does not use,
  // are malformed.
  std::optional<WireField> Next();
  std::optional<uint64_t> Varint();

 private:
  std::optional<uint64_t> Fixed(size_t size);

  std::string_view rest_;
};

void PutVarint(std::string& out, uint64_t value);
void PutVarintField(std::string& out, int number, uint64_t value);
void PutDoubleField(std::string& out, int number, double value);
void PutBytesField(std::string& out, int number, std::string_view bytes);
// What stands before `size` bytes of that field.
void PutBytesHead(std::string& out, int number, size_t size);

}  // namespace muster::schema
