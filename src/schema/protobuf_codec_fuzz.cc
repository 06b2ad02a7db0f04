// Any bytes decode to an error or to an object, and what decodes can be encoded and decoded again to the same.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "schema/protobuf_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;  // NOLINT
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const Result<json::Value> decoded = schema::DecodeProtobuf(body);
  if (!decoded.has_value()) return 0;
  const Result<std::string> encoded = schema::EncodeProtobuf(*decoded);
  CHECK(encoded.has_value());
  const Result<json::Value> again = schema::DecodeProtobuf(*encoded);
  CHECK(again.has_value());
  CHECK(*again == *decoded);
  return 0;
}
