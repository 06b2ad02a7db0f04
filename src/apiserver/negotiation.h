// src/apiserver/negotiation.h
//
// Negotiation: what form of an answer the Accept header asks for: JSON, YAML, or protobuf for what
// has messages (not for Tables and custom resources, as upstream; their metadata has).
//
// Thread: any.

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace muster::apiserver {

struct MediaType {
  std::string type;  // "application/json", lower case
  std::vector<std::pair<std::string, std::string>> parameters;
  std::string_view Parameter(std::string_view name) const;
};

// One type of a Content-Type or Accept header.
MediaType ParseMediaType(std::string_view text);
// The types of an Accept header, most wanted first (q values honoured, ties as written).
std::vector<MediaType> ParseAccept(std::string_view header);

enum class AnswerForm : uint8_t {
  kObject,
  kTable,            // meta.k8s.io Table
  kPartialMetadata,  // meta.k8s.io PartialObjectMetadata(List)
};

enum class Encoding : uint8_t { kJson, kYaml, kProtobuf };

struct Negotiated {
  AnswerForm form = AnswerForm::kObject;
  std::string meta_version = "v1";  // of meta.k8s.io, for the last two: v1 or v1beta1
  Encoding encoding = Encoding::kJson;
};

// NotAcceptable when nothing that the client takes can be written. `protobuf`: whether the objects
// asked for have a message.
Result<Negotiated> Negotiate(std::string_view accept, bool protobuf);
// Whether what is no object of the resource (a Status, a Scale) is written as protobuf. Never
// fails: who takes nothing that we write gets JSON.
bool PrefersProtobuf(std::string_view accept);

}  // namespace muster::apiserver
