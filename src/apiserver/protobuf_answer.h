// src/apiserver/protobuf_answer.h
//
// Answers as application/vnd.kubernetes.protobuf: objects, lists and watch events. Built-in kinds
// have messages; of every object, of custom resources too, the metadata alone has one
// (PartialObjectMetadata).
//
// Thread: any (pure functions).

#pragma once

#include <string>
#include <string_view>

#include "apiserver/answer.h"
#include "base/status.h"
#include "json/value.h"
#include "schema/kind.h"
#include "store/store.h"

namespace muster::apiserver {

// Whether objects of this kind can be written. Custom kinds cannot, as upstream; nor those for
// which there are no vectors of upstream's to compare with: definitions, APIServices, metrics.
bool HasProtobuf(const schema::Kind& kind);

// The whole object with its envelope. REQUIRES of all below: format.encoding is kProtobuf.
Status AppendProtobufObject(std::string& out, const AnswerFormat& format,
                            const store::Entry& entry);
// The same of a tree: what the server says itself (a Status, a bookmark).
Result<std::string> EncodeProtobufTree(const json::Value& object);

// A list is its head, the items one after the other, and schema::kProtobufEnvelopeTail. The head
// says how many bytes all items have together.
std::string ProtobufListHead(const AnswerFormat& format, const ListFacts& facts,
                             size_t items_bytes);
Status AppendProtobufItem(std::string& out, const AnswerFormat& format, const store::Entry& entry);

// One event of a watch: its size in four bytes, the high one first, and a WatchEvent around
// `object`, which has its envelope.
std::string ProtobufFrame(std::string_view type, std::string_view object);

}  // namespace muster::apiserver
