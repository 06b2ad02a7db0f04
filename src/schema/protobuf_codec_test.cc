#include "schema/protobuf_codec.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "json/parse.h"
#include "json/write.h"
#include "schema/golden_vectors_testing.h"
#include "schema/registry.h"
#include "schema/wire.h"

namespace muster::schema {
namespace {

using json::List;
using json::Obj;

json::Value MustParse(std::string_view text) {
  Result<json::Value> value = json::Parse(text);
  EXPECT_TRUE(value.has_value()) << value.error().message();
  return value.has_value() ? *value : json::Value();
}

std::string Hex(std::string_view bytes) {
  static const char* const digits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += digits[static_cast<uint8_t>(c) >> 4];
    out += digits[static_cast<uint8_t>(c) & 15];
  }
  return out;
}

const Schema& PodSchema() { return *Registry::BuiltIn().FindSchema("io.k8s.api.core.v1.Pod"); }

TEST_F(GoldenVectorsTest, DecodeToUpstreamsJsonAndEncodeToItsBytes) {
  const std::vector<Vector> known = Known();
  for (const Vector& vector : known) {
    const json::Value expected = MustParse(vector.json);
    const Result<json::Value> decoded = DecodeProtobuf(vector.protobuf);
    ASSERT_TRUE(decoded.has_value()) << vector.name << ": " << decoded.error().message();
    EXPECT_TRUE(*decoded == expected)
        << vector.name << "\nwant " << json::Write(expected) << "\nhave " << json::Write(*decoded);
    const Result<std::string> encoded = EncodeProtobuf(expected);
    ASSERT_TRUE(encoded.has_value()) << vector.name << ": " << encoded.error().message();
    EXPECT_EQ(Hex(*encoded), Hex(vector.protobuf)) << vector.name;
  }
  // The kinds of the registry and Binding, DeleteOptions, Status, Scale, less the CRD, which has no
  // vector.
  EXPECT_GE(known.size(), 16u);
}

TEST_F(GoldenVectorsTest, EveryTruncationIsAnErrorOrAnObject) {
  for (const Vector& vector : Known()) {
    for (size_t size = 0; size < vector.protobuf.size(); size += 1 + vector.protobuf.size() / 400) {
      const Result<json::Value> decoded = DecodeProtobuf(vector.protobuf.substr(0, size));
      EXPECT_TRUE(decoded.has_value() || decoded.error().reason() == Reason::kBadRequest)
          << vector.name;
    }
  }
}

TEST_F(GoldenVectorsTest, FlippedBytesNeverCrash) {
  Rng rng(1);
  for (const Vector& vector : Known()) {
    for (int round = 0; round < 100; ++round) {
      std::string broken = vector.protobuf;
      for (int flips = 0; flips < 3; ++flips)
        broken[rng.Below(broken.size())] ^= static_cast<char>(1 + rng.Below(255));
      (void)DecodeProtobuf(broken);
    }
  }
}

TEST(ProtobufCodecTest, ZeroOfAPointerIsKeptAndOtherZerosAreAbsent) {
  std::string spec, pod;
  PutVarintField(spec, 4, 0);   // terminationGracePeriodSeconds, a pointer
  PutVarintField(spec, 11, 0);  // hostNetwork, no pointer
  PutBytesField(spec, 10, "");  // nodeName, no pointer
  PutBytesField(pod, 2, spec);
  const Result<json::Value> decoded = DecodeMessage(PodSchema(), pod);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ((*decoded)["spec"], Obj({{"terminationGracePeriodSeconds", 0}}));
  EXPECT_FALSE(decoded->Has("metadata"));
}

TEST(ProtobufCodecTest, FieldsThatGoNeverLeavesOutAreWrittenWithTheirZero) {
  std::string container, spec, pod;
  PutBytesField(container, 2, "busybox");
  PutBytesField(spec, 2, container);
  PutBytesField(pod, 2, spec);
  const Result<json::Value> decoded = DecodeMessage(PodSchema(), pod);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ((*decoded)["spec"]["containers"], List({Obj({{"name", ""}, {"image", "busybox"}})}));
}

TEST(ProtobufCodecTest, UnknownFieldsAreIgnoredAndPartsOfAMessageAreMerged) {
  std::string pod, first, second;
  PutBytesField(first, 1, "a");   // metadata.name
  PutBytesField(second, 3, "b");  // metadata.namespace
  PutBytesField(pod, 1, first);
  PutVarintField(pod, 1000, 7);
  PutBytesField(pod, 1001, "ignored");
  PutBytesField(pod, 1, second);
  const Result<json::Value> decoded = DecodeMessage(PodSchema(), pod);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(*decoded, Obj({{"metadata", Obj({{"name", "a"}, {"namespace", "b"}})}}));
}

TEST(ProtobufCodecTest, PackedAndUnpackedListsAreTheSame) {
  const Schema& context = *Registry::BuiltIn().FindSchema("io.k8s.api.core.v1.PodSecurityContext");
  std::string packed, unpacked, numbers;
  PutVarint(numbers, 1);
  PutVarint(numbers, 300);
  PutBytesField(packed, 4, numbers);  // supplementalGroups
  PutVarintField(unpacked, 4, 1);
  PutVarintField(unpacked, 4, 300);
  EXPECT_EQ(DecodeMessage(context, packed).value(), DecodeMessage(context, unpacked).value());
  EXPECT_EQ(DecodeMessage(context, packed).value()["supplementalGroups"], List({1, 300}));
}

TEST(ProtobufCodecTest, ErrorsNameTheField) {
  std::string meta, pod;
  PutVarintField(meta, 1, 3);  // name is a string
  PutBytesField(pod, 1, meta);
  // A singular message is decoded when all of it was seen, so the path leads to the field.
  const Result<json::Value> decoded = DecodeMessage(PodSchema(), pod);
  ASSERT_FALSE(decoded.has_value());
  EXPECT_EQ(decoded.error().reason(), Reason::kBadRequest);
  EXPECT_EQ(decoded.error().message(), "protobuf body: metadata.name: expected a string");
}

TEST(ProtobufCodecTest, NestingHasALimit) {
  const Schema& props = *Registry::BuiltIn().FindSchema(
      "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");
  const auto nested = [](int depth) {
    std::string bytes;
    for (int i = 0; i < depth; ++i) {
      std::string outer;
      PutBytesField(outer, 28, bytes);  // not
      bytes = std::move(outer);
    }
    return bytes;
  };
  EXPECT_TRUE(DecodeMessage(props, nested(kMaxProtobufDepth - 1)).has_value());
  const Result<json::Value> decoded = DecodeMessage(props, nested(kMaxProtobufDepth + 1));
  ASSERT_FALSE(decoded.has_value());
  EXPECT_NE(decoded.error().message().find("nested too deep"), std::string::npos);
}

TEST(ProtobufCodecTest, EmbeddedJsonLeavesRoomForWhatIsAroundIt) {
  // default: JSON {raw}. The whole object must stay within what the store can read back.
  const Schema& props = *Registry::BuiltIn().FindSchema(
      "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");
  const auto with_default = [](int levels) {
    std::string raw, bytes;
    PutBytesField(raw, 1, std::string(levels, '[') + std::string(levels, ']'));
    PutBytesField(bytes, 8, raw);
    return bytes;
  };
  EXPECT_TRUE(DecodeMessage(props, with_default(100)).has_value());
  const Result<json::Value> decoded = DecodeMessage(props, with_default(json::kMaxDepth));
  ASSERT_FALSE(decoded.has_value());
  EXPECT_NE(decoded.error().message().find("levels of nesting"), std::string::npos)
      << decoded.error().message();
}

TEST(ProtobufCodecTest, ItemsHaveALimit) {
  std::string list;
  for (size_t i = 0; i <= kMaxProtobufItems; ++i) PutBytesField(list, 3, "");  // command
  EXPECT_FALSE(DecodeMessage(*Registry::BuiltIn().FindSchema("io.k8s.api.core.v1.Container"), list)
                   .has_value());
}

TEST(ProtobufCodecTest, BodiesHaveALimit) {
  std::string body(kProtobufMagic);
  body.resize(kMaxProtobufBytes + 1);
  EXPECT_EQ(DecodeProtobuf(body).error().reason(), Reason::kRequestEntityTooLarge);
}

TEST(ProtobufCodecTest, RefusesWhatIsNoEnvelope) {
  for (const std::string_view body :
       {std::string_view(""), std::string_view("k8s"), std::string_view("{}"),
        std::string_view("k8s\0\xff", 5), std::string_view("k8s\0", 4)}) {
    const Result<json::Value> decoded = DecodeProtobuf(body);
    ASSERT_FALSE(decoded.has_value());
    EXPECT_EQ(decoded.error().reason(), Reason::kBadRequest);
  }
}

TEST(ProtobufCodecTest, CustomKindsHaveNoProtobuf) {
  const Result<std::string> encoded =
      EncodeProtobuf(Obj({{"apiVersion", "example.org/v1"}, {"kind", "Thing"}}));
  ASSERT_FALSE(encoded.has_value());
  EXPECT_EQ(encoded.error().reason(), Reason::kBadRequest);
}

TEST(ProtobufCodecTest, CustomResourceDefinitionsSurviveTheRoundTrip) {
  const json::Value crd = MustParse(R"({
    "kind": "CustomResourceDefinition",
    "apiVersion": "apiextensions.k8s.io/v1",
    "metadata": {"name": "things.example.org"},
    "spec": {
      "group": "example.org",
      "names": {"plural": "things", "kind": "Thing"},
      "scope": "Namespaced",
      "versions": [{
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
          "any": {"x-kubernetes-preserve-unknown-fields": true},
          "list": {"type": "array",
                   "items": {"type": "integer", "format": "int32", "minimum": 0.5}},
          "map": {"type": "object", "additionalProperties": {"type": "string"}},
          "open": {"type": "object", "additionalProperties": true},
          "port": {"x-kubernetes-int-or-string": true, "default": 80, "enum": [80, "http"]}}}},
        "subresources": {"status": {}}}]},
    "status": {
      "conditions": [{"type": "Established", "status": "True"}],
      "acceptedNames": {"plural": "", "kind": ""},
      "storedVersions": ["v1"]}})");
  const Result<std::string> encoded = EncodeProtobuf(crd);
  ASSERT_TRUE(encoded.has_value()) << encoded.error().message();
  const Result<json::Value> decoded = DecodeProtobuf(*encoded);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message();
  EXPECT_TRUE(*decoded == crd) << json::Write(*decoded);
}

}  // namespace
}  // namespace muster::schema
