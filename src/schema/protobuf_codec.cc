#include "schema/protobuf_codec.h"

#include "schema/protobuf_decoder.h"
#include "schema/protobuf_encoder.h"
#include "schema/registry.h"
#include "schema/wire.h"

namespace muster::schema {
namespace {

// runtime.Unknown and its TypeMeta, see schema/k8s/runtime.proto.
enum UnknownField : int { kTypeMeta = 1, kRaw = 2, kContentEncoding = 3, kContentType = 4 };
enum TypeMetaField : int { kApiVersion = 1, kKind = 2 };

ErrorStatus Malformed(std::string_view what) {
  return Error(Reason::kBadRequest,
               "protobuf body: {}; expected \"k8s\\0\" and a runtime.Unknown message", what);
}

Status ReadTypeMeta(std::string_view bytes, ProtobufEnvelope& envelope) {
  WireReader reader(bytes);
  while (!reader.AtEnd()) {
    const std::optional<WireField> field = reader.Next();
    if (!field) return Malformed("malformed typeMeta");
    if (field->type != WireType::kBytes) continue;
    if (field->number == kApiVersion) envelope.api_version = field->bytes;
    if (field->number == kKind) envelope.kind = field->bytes;
  }
  return Status::Ok();
}

}  // namespace

bool IsProtobufEnvelope(std::string_view body) { return body.starts_with(kProtobufMagic); }

Result<ProtobufEnvelope> ReadProtobufEnvelope(std::string_view body) {
  if (!IsProtobufEnvelope(body)) return Malformed("the first four bytes are wrong");
  if (body.size() > kMaxProtobufBytes) {
    return Error(Reason::kRequestEntityTooLarge, "protobuf body: {} bytes, at most {} are taken",
                 body.size(), kMaxProtobufBytes);
  }
  ProtobufEnvelope envelope;
  WireReader reader(body.substr(kProtobufMagic.size()));
  while (!reader.AtEnd()) {
    const std::optional<WireField> field = reader.Next();
    if (!field) return Malformed("malformed envelope");
    if (field->type != WireType::kBytes) continue;
    if (field->number == kTypeMeta) RETURN_IF_ERROR(ReadTypeMeta(field->bytes, envelope));
    if (field->number == kRaw) envelope.raw = field->bytes;
    if (field->number == kContentEncoding && !field->bytes.empty())
      return Malformed("the object is compressed, which is not taken");
  }
  if (envelope.kind.empty()) return Malformed("the kind is missing");
  return envelope;
}

Result<json::Value> DecodeProtobuf(std::string_view body) {
  ASSIGN_OR_RETURN(const ProtobufEnvelope envelope, ReadProtobufEnvelope(body));
  const Schema* schema = Registry::BuiltIn().FindMessage(envelope.api_version, envelope.kind);
  if (schema == nullptr) {
    return Error(Reason::kBadRequest,
                 "no kind {} is registered for version {} as protobuf; send JSON", envelope.kind,
                 envelope.api_version);
  }
  ASSIGN_OR_RETURN(const json::Value object, DecodeMessage(*schema, envelope.raw));
  json::Object members;
  members.reserve(object.size() + 2);
  members.emplace_back("kind", envelope.kind);
  members.emplace_back("apiVersion", envelope.api_version);
  for (const json::Member& member : object.members()) members.push_back(member);
  return json::Value(std::move(members));
}

Result<std::string> EncodeProtobuf(const json::Value& object) {
  const std::string_view api_version = object["apiVersion"].AsString();
  const std::string_view kind = object["kind"].AsString();
  const Schema* schema = Registry::BuiltIn().FindMessage(api_version, kind);
  if (schema == nullptr) {
    return Error(Reason::kBadRequest,
                 "no kind {} is registered for version {} as protobuf; ask for JSON", kind,
                 api_version);
  }
  ASSIGN_OR_RETURN(const std::string raw, EncodeMessage(*schema, object));
  std::string out = ProtobufEnvelopeHead(api_version, kind, raw.size());
  out += raw;
  out += kProtobufEnvelopeTail;  // no contentEncoding, no contentType
  return out;
}

std::string ProtobufEnvelopeHead(std::string_view api_version, std::string_view kind,
                                 size_t raw_bytes) {
  std::string type_meta;
  PutBytesField(type_meta, kApiVersion, api_version);
  PutBytesField(type_meta, kKind, kind);
  std::string out(kProtobufMagic);
  PutBytesField(out, kTypeMeta, type_meta);
  PutBytesHead(out, kRaw, raw_bytes);
  return out;
}

Result<json::Value> DecodeMessage(const Schema& schema, std::string_view bytes) {
  return ProtobufDecoder().Message(schema, bytes);
}

Result<std::string> EncodeMessage(const Schema& schema, const json::Value& value) {
  std::string out;
  RETURN_IF_ERROR(ProtobufEncoder().Message(schema, value, out));
  return out;
}

}  // namespace muster::schema
