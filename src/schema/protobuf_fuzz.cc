// Any bytes decode to an error or to an object, as a whole body or as the bytes of one message (the
// first byte chooses its kind), and what decodes can be encoded, to bytes that mean themselves.
// (The trees may differ by empty objects: an absent message and an empty one are the same to Go.)

#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "schema/protobuf_codec.h"
#include "schema/registry.h"

namespace {

using muster::Result;
using muster::json::Value;
using muster::schema::DecodeMessage;
using muster::schema::DecodeProtobuf;
using muster::schema::EncodeMessage;
using muster::schema::EncodeProtobuf;

}  // namespace

FUZZ_TARGET(protobuf, input) {
  muster::FuzzInput bytes(input);
  if (muster::schema::IsProtobufEnvelope(input)) {
    const Result<Value> decoded = DecodeProtobuf(input);
    if (!decoded) return;
    const Result<std::string> encoded = EncodeProtobuf(*decoded);
    CHECK(encoded.has_value());
    const Result<Value> again = DecodeProtobuf(*encoded);
    CHECK(again.has_value() && *EncodeProtobuf(*again) == *encoded);
    return;
  }
  const auto& kinds = muster::schema::Registry::BuiltIn().kinds();
  const muster::schema::Schema& schema = *kinds[bytes.Byte() % kinds.size()]->schema;
  const Result<Value> decoded = DecodeMessage(schema, bytes.Rest());
  if (!decoded) return;
  const Result<std::string> encoded = EncodeMessage(schema, *decoded);
  CHECK(encoded.has_value());
  const Result<Value> again = DecodeMessage(schema, *encoded);
  CHECK(again.has_value() && *EncodeMessage(schema, *again) == *encoded);
}
