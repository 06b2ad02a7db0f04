#include "apiserver/answer.h"

#include "apiserver/protobuf_answer.h"
#include "apiserver/stored_object.h"
#include "json/write.h"
#include "schema/conversion.h"

namespace muster::apiserver {
namespace {

void AppendPartialMetadata(std::string& out, const AnswerFormat& format,
                           const store::Entry& entry) {
  out += "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/";
  out += format.meta_version;
  out += "\",\"metadata\":";
  out += MetadataOf(entry);
  out += '}';
}

void AppendRow(std::string& out, const AnswerFormat& format, const store::Entry& entry, Time now) {
  const json::Value object = DecodeStored(schema::StoredKind(*format.kind), *entry.value);
  out += "{\"cells\":";
  json::AppendTo(out, json::Value(format.printer->Cells(object, now)));
  out += ",\"object\":";
  switch (format.include) {
    case IncludeObject::kNone:
      out += "null";
      break;
    case IncludeObject::kMetadata:
      AppendPartialMetadata(out, format, entry);
      break;
    case IncludeObject::kObject:
      AppendWire(out, *format.kind, *entry.value);
      break;
  }
  out += '}';
}

void AppendListMeta(std::string& out, const ListFacts& facts) {
  out += fmt::format("\"metadata\":{{\"resourceVersion\":\"{}\"", facts.revision);
  if (!facts.continue_token.empty()) {
    out += ",\"continue\":";
    json::AppendString(out, facts.continue_token);
  }
  if (facts.remaining > 0) out += fmt::format(",\"remainingItemCount\":{}", facts.remaining);
  out += '}';
}

void AppendTableHead(std::string& out, const AnswerFormat& format, const ListFacts& facts) {
  out += "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/";
  out += format.meta_version;
  out += "\",";
  AppendListMeta(out, facts);
  out += ",\"columnDefinitions\":[";
  bool first = true;
  for (const TableColumn& column : format.printer->columns()) {
    if (!std::exchange(first, false)) out += ',';
    json::AppendTo(out, json::Obj({{"name", column.name},
                                   {"type", column.type},
                                   {"format", column.format},
                                   {"description", column.description},
                                   {"priority", column.priority}}));
  }
  out += "],\"rows\":[";
}

}  // namespace

bool AnswerFormat::Same(const AnswerFormat& other) const {
  return kind == other.kind && form == other.form && meta_version == other.meta_version &&
         (form != AnswerForm::kTable || include == other.include) &&
         (encoding == Encoding::kProtobuf) == (other.encoding == Encoding::kProtobuf);
}

Result<AnswerFormat> MakeFormat(schema::KindPtr kind, std::string_view accept,
                                const RequestInfo& info) {
  ASSIGN_OR_RETURN(const Negotiated negotiated, Negotiate(accept, HasProtobuf(*kind)));
  AnswerFormat format;
  format.kind = std::move(kind);
  format.form = negotiated.form;
  format.meta_version = negotiated.meta_version;
  format.encoding = negotiated.encoding;
  if (format.form == AnswerForm::kTable) format.printer = PrinterFor(format.kind);
  const std::string_view include = info.query.Get("includeObject");
  if (include == "None") {
    format.include = IncludeObject::kNone;
  } else if (include == "Object") {
    format.include = IncludeObject::kObject;
  } else if (!include.empty() && include != "Metadata") {
    return Error(Reason::kBadRequest, "unrecognized includeObject value: {:?}", include);
  }
  return format;
}

Status AppendObject(std::string& out, const AnswerFormat& format, const store::Entry& entry,
                    Time now) {
  if (format.encoding == Encoding::kProtobuf) return AppendProtobufObject(out, format, entry);
  switch (format.form) {
    case AnswerForm::kObject:
      AppendWire(out, *format.kind, *entry.value);
      break;
    case AnswerForm::kPartialMetadata:
      AppendPartialMetadata(out, format, entry);
      break;
    case AnswerForm::kTable:
      AppendTableHead(out, format, {.revision = entry.mod_revision});
      AppendRow(out, format, entry, now);
      AppendListTail(out);
      break;
  }
  return Status::Ok();
}

void AppendListHead(std::string& out, const AnswerFormat& format, const ListFacts& facts) {
  if (format.form == AnswerForm::kTable) {
    AppendTableHead(out, format, facts);
    return;
  }
  if (format.form == AnswerForm::kPartialMetadata) {
    out += "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/";
    out += format.meta_version;
  } else {
    out += "{\"kind\":\"";
    out += format.kind->list_kind;
    out += "\",\"apiVersion\":\"";
    out += format.kind->GroupVersion();
  }
  out += "\",";
  AppendListMeta(out, facts);
  out += ",\"items\":[";
}

void AppendListItem(std::string& out, const AnswerFormat& format, const store::Entry& entry,
                    Time now) {
  switch (format.form) {
    case AnswerForm::kTable:
      AppendRow(out, format, entry, now);
      return;
    case AnswerForm::kPartialMetadata:
      AppendPartialMetadata(out, format, entry);
      return;
    case AnswerForm::kObject:
      // Items of typed lists carry no kind, items of custom lists do (they are decoded one by one).
      if (format.kind->custom) {
        AppendWire(out, *format.kind, *entry.value);
      } else {
        AppendUntyped(out, *format.kind, *entry.value);
      }
      return;
  }
}

void AppendListTail(std::string& out) { out += "]}"; }

}  // namespace muster::apiserver
