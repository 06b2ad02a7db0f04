#include "apiserver/object_codec.h"

#include "apiserver/errors.h"
#include "apiserver/negotiation.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/write.h"
#include "schema/conform.h"
#include "schema/conversion.h"
#include "schema/protobuf_codec.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

// The body says what it is; an empty kind or apiVersion means what the URL says.
Status CheckTypeMeta(const schema::Kind& kind, const json::Value& object) {
  const std::string_view version = object["apiVersion"].AsString();
  const std::string_view name = object["kind"].AsString();
  if (!version.empty() && version != kind.GroupVersion()) {
    return Error(Reason::kBadRequest,
                 "the API version in the data ({}) does not match the expected API version ({})",
                 version, kind.GroupVersion());
  }
  if (!name.empty() && name != kind.kind) {
    return Error(Reason::kBadRequest, "{} in version {:?} cannot be handled as a {}", name,
                 kind.GroupVersion(), kind.kind);
  }
  return Status::Ok();
}

}  // namespace

Result<DecodedBody> DecodeBody(std::string_view content_type, const net::Request& request) {
  if (!request.value.IsNull()) return DecodedBody{request.value, {}};
  const std::string_view body = request.body;
  if (body.size() > kMaxObjectBytes) {
    return Error(Reason::kRequestEntityTooLarge, "Request entity too large: limit is {}",
                 kMaxObjectBytes);
  }
  const std::string type = ParseMediaType(content_type).type;
  DecodedBody decoded;
  json::ParseNotes notes;
  if (type == schema::kProtobufMediaType) {
    ASSIGN_OR_RETURN(decoded.value, schema::DecodeProtobuf(body));
    return decoded;
  }
  if (type.empty() || type == "application/json" || type == "text/json") {
    ASSIGN_OR_RETURN(decoded.value, json::Parse(body, &notes));
  } else if (type == "application/yaml" || type == "text/yaml") {
    if (body.size() > kMaxYamlBodyBytes) {
      return Error(Reason::kRequestEntityTooLarge,
                   "Request entity too large: limit is {} in YAML; send it as JSON",
                   kMaxYamlBodyBytes);
    }
    ASSIGN_OR_RETURN(std::vector<json::Value> documents, json::ParseYaml(body, &notes));
    if (documents.size() != 1) {
      return Error(Reason::kBadRequest, "the body has {} YAML documents, exactly one is expected",
                   documents.size());
    }
    decoded.value = std::move(documents[0]);
  } else {
    return Error(UnsupportedMediaTypeError());
  }
  decoded.duplicate_keys = std::move(notes.duplicate_keys);
  return decoded;
}

Result<FieldValidation> FieldValidationOf(const RequestInfo& info) {
  const std::string_view text = info.query.Get("fieldValidation");
  if (text.empty() || text == "Warn") return FieldValidation::kWarn;
  if (text == "Strict") return FieldValidation::kStrict;
  if (text == "Ignore") return FieldValidation::kIgnore;
  const std::string_view options = info.method == "POST"  ? "CreateOptions"
                                   : info.method == "PUT" ? "UpdateOptions"
                                                          : "PatchOptions";
  return Error(InvalidOptionsError(
      options,
      {{"FieldValueNotSupported", "fieldValidation",
        fmt::format("Unsupported value: {}: supported values: \"Ignore\", \"Strict\", \"Warn\"",
                    json::Write(json::Value(text)))}}));
}

Result<json::Value> DecodeObject(Call& call, const schema::Kind& kind) {
  ASSIGN_OR_RETURN(DecodedBody body,
                   DecodeBody(call.request().headers.Get("Content-Type"), call.request()));
  if (!body.value.IsObject()) {
    return Error(Reason::kBadRequest, "the body must be an object of kind {} in version {:?}",
                 kind.kind, kind.GroupVersion());
  }
  return ConformObject(call, kind, body.value, body.duplicate_keys);
}

Result<json::Value> ConformObject(Call& call, const schema::Kind& kind, const json::Value& object,
                                  const std::vector<std::string>& duplicate_keys) {
  RETURN_IF_ERROR(CheckTypeMeta(kind, object));
  ASSIGN_OR_RETURN(const FieldValidation validation, FieldValidationOf(call.info()));
  std::vector<std::string> unknown;
  const bool report = validation != FieldValidation::kIgnore;
  ASSIGN_OR_RETURN(json::Value conforming,
                   schema::Conform(kind, object, report ? &unknown : nullptr));
  if (validation == FieldValidation::kStrict) {
    RETURN_IF_ERROR(schema::StrictDecodingError(kind, unknown, duplicate_keys));
  } else if (report) {
    call.Warn(schema::StrictDecodingWarnings(unknown, duplicate_keys));
  }
  schema::Converted converted = schema::ToStored(kind, conforming);
  call.set_moved(std::move(converted.moved));
  return std::move(converted.object);
}

schema::Kind UnservedKind(std::string_view group, std::string_view version, std::string_view kind) {
  schema::Kind made;
  made.group = group;
  made.version = version;
  made.kind = kind;
  made.plural = ToLower(kind) + "s";
  // The registry lives for ever.
  made.schema = schema::SchemaPtr(
      schema::SchemaPtr(), schema::Registry::BuiltIn().FindMessage(made.GroupVersion(), kind));
  return made;
}

Result<bool> DryRunOf(const RequestInfo& info, std::string_view options) {
  const std::vector<std::string> values = info.query.GetAll("dryRun");
  for (const std::string& value : values) {
    if (value == "All" || value.empty()) continue;
    return Error(InvalidOptionsError(
        options, {{"FieldValueNotSupported", "dryRun",
                   fmt::format("Unsupported value: {}: supported values: \"All\"",
                               json::Write(json::Value(value)))}}));
  }
  return !values.empty() && !values[0].empty();
}

}  // namespace muster::apiserver
