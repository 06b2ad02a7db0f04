// src/apiserver/negotiation.h
//
// Negotiation: what form of an answer the Accept header asks for. We write JSON (YAML on request);
// protobuf answers are never needed, since every client that asks for them also takes JSON.
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

struct Negotiated {
  AnswerForm form = AnswerForm::kObject;
  std::string meta_version = "v1";  // of meta.k8s.io, for the last two: v1 or v1beta1
  bool yaml = false;
};

// NotAcceptable when nothing that the client takes can be written.
Result<Negotiated> Negotiate(std::string_view accept);

}  // namespace muster::apiserver
