// src/schema/protobuf_codec.h
//
// Protobuf bodies (application/vnd.kubernetes.protobuf) <-> JSON trees, driven by Schema. An
// envelope is the bytes "k8s\0" and a runtime.Unknown message with apiVersion, kind and the
// object's own bytes.
//
// Zero rules: a decoded zero of a pointer field is kept, of another field it is absent unless Go
// would write it (Field::keep_empty). Unknown fields are skipped. Encoding writes what Go's
// generated code writes, byte for byte: fields in the order of their numbers, non-pointer fields
// also when they are zero, map entries sorted by key.
//
// Thread: any (pure functions).
// Errors: BadRequest for anything malformed; the message names the field.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"
#include "json/value.h"
#include "schema/schema.h"

namespace muster::schema {

inline constexpr std::string_view kProtobufMediaType = "application/vnd.kubernetes.protobuf";
inline constexpr std::string_view kProtobufMagic{"k8s\0", 4};
inline constexpr int kMaxProtobufDepth = 100;  // nested messages
inline constexpr size_t kMaxProtobufBytes =
    64 * 1024 * 1024;  // of one body; the listener's limit is lower
inline constexpr size_t kMaxProtobufItems =
    1'000'000;  // repeated items and map entries in one body

// What an envelope says before its object is decoded.
struct ProtobufEnvelope {
  std::string api_version;
  std::string kind;
  std::string_view raw;  // into the body
};
bool IsProtobufEnvelope(std::string_view body);
Result<ProtobufEnvelope> ReadProtobufEnvelope(std::string_view body);

// A whole body: envelope and object, looked up in Registry::BuiltIn(); the tree has apiVersion and
// kind. Takes every kind we have a message for, Status, DeleteOptions, Binding and Scale among
// them.
Result<json::Value> DecodeProtobuf(std::string_view body);
// The reverse. BadRequest if the kind has no message here (custom resources have none).
Result<std::string> EncodeProtobuf(const json::Value& object);

// What stands in an envelope before and after the object's own bytes, `raw_bytes` of them.
std::string ProtobufEnvelopeHead(std::string_view api_version, std::string_view kind,
                                 size_t raw_bytes);
inline constexpr std::string_view kProtobufEnvelopeTail{"\x1a\0\x22\0", 4};

// The bytes of one message without an envelope.
Result<json::Value> DecodeMessage(const Schema& schema, std::string_view bytes);
Result<std::string> EncodeMessage(const Schema& schema, const json::Value& value);

}  // namespace muster::schema
