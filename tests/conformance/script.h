// tests/conformance/script.h
//
// Scripts of HTTP requests and expected answers. One file is one life of a server; its steps run in
// order. "#" begins a comment, "##" a comment for all that follows.
//
//   > POST /api/v1/...             a request: method and target
//   > Content-Type: ...            its headers
//   > user: alice a,b              and its peer: "anonymous", or a name with groups
//   {"metadata": {"name": "x"}}    its body; `protobuf {...}` is sent as protobuf, `yaml ...` and
//                                  `hex 6b38...` need a Content-Type; "${text*N}" is N times text
//   < 201                          the status that is expected
//   < Warning: 299 - "..."         a header that must be there with that value
//   {"kind": "Pod"}                what the JSON body must contain; or `text ...`
//   = rv /metadata/resourceVersion keeps a part of the body; "${rv}" stands for it from here on
//
//   > WATCH w GET /api/v1/pods?watch=true    opens a stream under a name
//   < FRAMES w                               the frames since the last look, all, in order:
//   [{"type": "ADDED"}]
//   < ENDED w                                the server has ended it
//   > WAIT 61                                simulated seconds pass
//
// An expected object's members must match (null: absent), lists match item by item, "*" is anything
// but absent, "~text" is a string that contains text, other values are equal.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/value.h"

namespace muster::conformance {

struct Step {
  enum class Type { kRequest, kWatch, kFrames, kEnded, kWait };
  Type type = Type::kRequest;
  int line = 0;
  std::string title;
  std::string stream;  // kWatch, kFrames, kEnded
  int wait_seconds = 0;
  std::string method, target, user, body;
  std::vector<std::pair<std::string, std::string>> headers;
  int status = 0;
  std::vector<std::pair<std::string, std::string>> expected_headers;
  std::string expected;                                       // JSON or "text ..."
  std::vector<std::pair<std::string, std::string>> captures;  // name, pointer
};

// Empty and a message in `error` when the text is malformed.
std::vector<Step> ParseScript(std::string_view text, std::string& error);

// "" if it matches; otherwise where and why not.
std::string Mismatch(const json::Value& expected, const json::Value& actual,
                     const std::string& path = "");

std::string Substitute(std::string text, const std::map<std::string, std::string>& variables);

}  // namespace muster::conformance
