// Feeds arbitrary bytes, in arbitrary pieces, to the parser of requests or responses: it must
// neither read outside them nor hand out more body than it was given, and pieces must not change
// what it sees.

#include <cstdint>
#include <string>

#include "base/check.h"
#include "net/http1_parser.h"

namespace {

using muster::net::Http1Parser;

struct Seen {
  bool failed = false;
  size_t messages = 0;
  std::string bodies;
  bool operator==(const Seen&) const = default;
};

Seen ParseAll(Http1Parser::Role role, std::string_view bytes, size_t piece) {
  Http1Parser parser(role, 4096, 50, 100'000);
  Seen seen;
  while (!bytes.empty()) {
    const std::string part(bytes.substr(0, piece));  // a copy: the sanitizer sees each step outside
    bytes.remove_prefix(part.size());
    std::string_view input = part;
    while (true) {
      const auto step = parser.Next(input);
      if (!step) {
        seen.failed = true;
        CHECK(parser.error_code() >= 400);
        return seen;
      }
      if (*step == Http1Parser::Step::kNeedMore) break;
      if (*step == Http1Parser::Step::kData) seen.bodies += parser.data();
      if (*step == Http1Parser::Step::kEnd) {
        ++seen.messages;
        parser.Reset();
      }
    }
    CHECK(input.empty());
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const auto role = (data[0] & 1) != 0 ? Http1Parser::Role::kRequest : Http1Parser::Role::kResponse;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Seen whole = ParseAll(role, bytes, SIZE_MAX);
  CHECK(whole.bodies.size() <= bytes.size());
  CHECK(ParseAll(role, bytes, data[1] % 16 + 1) == whole);
  return 0;
}
