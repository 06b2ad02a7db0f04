// Any bytes decode to an error or to an object, and what decodes can be encoded and decoded again
// to the same.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "schema/protobuf_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const muster::Result<muster::json::Value> decoded = muster::schema::DecodeProtobuf(body);
  if (!decoded.has_value()) return 0;
  const muster::Result<std::string> encoded = muster::schema::EncodeProtobuf(*decoded);
  CHECK(encoded.has_value());
  const muster::Result<muster::json::Value> again = muster::schema::DecodeProtobuf(*encoded);
  CHECK(again.has_value());
  CHECK(*again == *decoded);
  return 0;
}
