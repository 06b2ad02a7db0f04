#include "apiserver/protobuf_answer.h"

#include "apiserver/stored_object.h"
#include "base/check.h"
#include "json/parse.h"
#include "schema/protobuf_codec.h"
#include "schema/registry.h"
#include "schema/wire.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kPartialMetadataKind = "PartialObjectMetadata";

// Every list and every object has its metadata as the first field, a list its items as the second.
enum Field : int { kMetadata = 1, kItems = 2 };
enum WatchEventField : int { kType = 1, kObject = 2 };
enum RawExtensionField : int { kRaw = 1 };

const schema::Schema& MetaMessage(std::string_view name) {
  const schema::Schema* message = schema::Registry::BuiltIn().FindSchema(
      "io.k8s.apimachinery.pkg.apis.meta.v1." + std::string(name));
  CHECK_MSG(message != nullptr, "metadata has no message");
  return *message;
}

// The bytes of PartialObjectMetadata.
Result<std::string> EncodeMetadata(const json::Value& metadata) {
  static const schema::Schema& message = MetaMessage("ObjectMeta");
  ASSIGN_OR_RETURN(const std::string bytes, schema::EncodeMessage(message, metadata));
  std::string out;
  schema::PutBytesField(out, kMetadata, bytes);
  return out;
}

Result<std::string> EncodeBare(const AnswerFormat& format, const store::Entry& entry) {
  if (format.form == AnswerForm::kPartialMetadata) {
    ASSIGN_OR_RETURN(const json::Value metadata, json::Parse(MetadataOf(entry)));
    return EncodeMetadata(metadata);
  }
  return schema::EncodeMessage(*format.kind->schema, DecodeStored(*format.kind, *entry.value));
}

std::string MetaVersion(const AnswerFormat& format) { return "meta.k8s.io/" + format.meta_version; }

std::string Enveloped(std::string_view api_version, std::string_view kind, std::string_view raw) {
  std::string out = schema::ProtobufEnvelopeHead(api_version, kind, raw.size());
  out += raw;
  out += schema::kProtobufEnvelopeTail;
  return out;
}

}  // namespace

bool HasProtobuf(const schema::Kind& kind) {
  const bool is_vouched_for = !kind.computed && kind.group != "apiextensions.k8s.io" &&
                              kind.group != "apiregistration.k8s.io";
  return !kind.custom && is_vouched_for &&
         schema::Registry::BuiltIn().FindMessage(kind.GroupVersion(), kind.kind) != nullptr;
}

Status AppendProtobufObject(std::string& out, const AnswerFormat& format,
                            const store::Entry& entry) {
  ASSIGN_OR_RETURN(const std::string raw, EncodeBare(format, entry));
  if (format.form == AnswerForm::kPartialMetadata) {
    out += Enveloped(MetaVersion(format), kPartialMetadataKind, raw);
  } else {
    out += Enveloped(format.kind->GroupVersion(), format.kind->kind, raw);
  }
  return Status::Ok();
}

Result<std::string> EncodeProtobufTree(const json::Value& object) {
  if (object["kind"].AsString() != kPartialMetadataKind) return schema::EncodeProtobuf(object);
  ASSIGN_OR_RETURN(const std::string raw, EncodeMetadata(object["metadata"]));
  return Enveloped(object["apiVersion"].AsString(), kPartialMetadataKind, raw);
}

std::string ProtobufListHead(const AnswerFormat& format, const ListFacts& facts,
                             size_t items_bytes) {
  static const schema::Schema& message = MetaMessage("ListMeta");
  json::Value metadata = json::Obj(
      {{"resourceVersion", std::to_string(facts.revision)}, {"continue", facts.continue_token}});
  if (facts.remaining > 0) metadata = metadata.Set("remainingItemCount", facts.remaining);
  const Result<std::string> bytes = schema::EncodeMessage(message, metadata);
  CHECK_MSG(bytes.has_value(), "a list's metadata does not fit its message");
  std::string start;
  schema::PutBytesField(start, kMetadata, *bytes);
  const size_t raw_bytes = start.size() + items_bytes;
  const bool partial = format.form == AnswerForm::kPartialMetadata;
  std::string out = partial ? schema::ProtobufEnvelopeHead(MetaVersion(format),
                                                           "PartialObjectMetadataList", raw_bytes)
                            : schema::ProtobufEnvelopeHead(format.kind->GroupVersion(),
                                                           format.kind->list_kind, raw_bytes);
  return out + start;
}

Status AppendProtobufItem(std::string& out, const AnswerFormat& format, const store::Entry& entry) {
  ASSIGN_OR_RETURN(const std::string item, EncodeBare(format, entry));
  schema::PutBytesField(out, kItems, item);
  return Status::Ok();
}

std::string ProtobufFrame(std::string_view type, std::string_view object) {
  std::string extension, event;
  schema::PutBytesField(extension, kRaw, object);
  schema::PutBytesField(event, kType, type);
  schema::PutBytesField(event, kObject, extension);
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8)
    out += static_cast<char>(event.size() >> shift & 0xff);
  return out + event;
}

}  // namespace muster::apiserver
