// src/apiserver/answer.h
//
// Rendering of stored objects in the form that the client asked for: as they are, as rows of a
// Table, or as metadata only. Single objects, list items and watch events go through here.
//
// Thread: any (an AnswerFormat is immutable once made).

#pragma once

#include <memory>
#include <string>

#include "apiserver/negotiation.h"
#include "apiserver/request_info.h"
#include "apiserver/table/table.h"
#include "base/status.h"
#include "base/time.h"
#include "schema/kind.h"
#include "store/store.h"

namespace muster::apiserver {

// What goes into the `object` of a table row.
enum class IncludeObject : uint8_t { kNone, kMetadata, kObject };

struct AnswerFormat {
  schema::KindPtr kind;
  AnswerForm form = AnswerForm::kObject;
  std::string meta_version = "v1";
  IncludeObject include = IncludeObject::kMetadata;
  Encoding encoding = Encoding::kJson;
  std::shared_ptr<const TablePrinter> printer;  // set for kTable

  // Equal formats render equal bytes (for the same object and time).
  bool Same(const AnswerFormat& other) const;
};

// From the Accept header and includeObject. NotAcceptable, or BadRequest for an unknown
// includeObject.
Result<AnswerFormat> MakeFormat(schema::KindPtr kind, std::string_view accept,
                                const RequestInfo& info);

// One object as a whole answer (or as the object of a watch event): JSON text, of which YAML is
// made later, or protobuf with its envelope, which alone can fail.
Status AppendObject(std::string& out, const AnswerFormat& format, const store::Entry& entry,
                    Time now);

// As text: {"kind":"PodList",...,"items":[ + items separated by ',' + ]}: or the Table that stands
// for it.
struct ListFacts {
  store::Revision revision = 0;
  std::string continue_token;
  int64_t remaining = 0;  // 0: not said
};
void AppendListHead(std::string& out, const AnswerFormat& format, const ListFacts& facts);
void AppendListItem(std::string& out, const AnswerFormat& format, const store::Entry& entry,
                    Time now);
void AppendListTail(std::string& out);

}  // namespace muster::apiserver
