// tests/conformance/rows.h
//
// Rows of bad and of minimal objects as data (validation/*.rows). A file is made of blocks between
// blank lines; "#" begins a comment, a line that begins with a space goes on with the one before.
//
//   kind Pod                     whose rows follow, for the counts and the messages
//   given PATH {...}             what exists before each row; `given` alone: nothing any more
//   create PATH                  rows POST the mutated base there
//   update PATH                  rows POST the base, mutate what came back and PUT it
//   status PATH                  the same with a PUT on the status
//   base {...}                   the object
//
// Any other block is a row: first the mutations of the base, or an object instead of it,
//
//   /spec/dnsPolicy "X"          sets what a JSON pointer leads to; without a value: removes it
//   {...}
//
// then what the server must answer:
//
//   ! REASON | FIELD | MESSAGE   422 with exactly these causes, in any order, each with the
//                                beginning of its message, where "..." stands for anything;
//                                the field "-" is the whole object
//   ! CODE REASON | MESSAGE      another refusal; its message contains this
//   = {...}                      accepted, and the object contains this (Mismatch() in script.h)
//   == {...}                     accepted, and the object is exactly this, but for uid ("*" where
//                                it stands in another field), resourceVersion and
//                                creationTimestamp
//
// "${text*N}" stands for N times the text. Each row has a server of its own.

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/value.h"

namespace muster::conformance {

struct Row {
  enum class Verb { kCreate, kUpdate, kStatus };

  struct Refusal {
    std::string reason, field, message;
  };

  int line = 0;
  std::string kind, path;
  Verb verb = Verb::kCreate;
  std::vector<std::pair<std::string, std::string>> given;  // path, object
  json::Value base;
  json::Value patch;  // RFC 6902
  int code = 0;       // of a refusal
  std::vector<Refusal> refusals;
  json::Value accepted;
  bool exact = false;
};

// Empty and a message in `error` when the text is malformed.
std::vector<Row> ParseRows(std::string_view text, std::string& error);

// Expects (as GoogleTest does) that a fresh server answers as the row says.
void RunRow(const Row& row);

// N times the text for each "${text*N}".
std::string ExpandRepeats(std::string_view text);

}  // namespace muster::conformance
