// Arbitrary bytes, in arbitrary pieces, for the parser of requests or responses: it must neither
// read outside them nor hand out more than it was given, keep its limits, and pieces must not
// change what it sees.

#include <string>

#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "net/http1_parser.h"

namespace {

using muster::net::Http1Parser;
using muster::net::MessageHead;

constexpr size_t kMaxHeadBytes = 2048;
constexpr size_t kMaxHeaders = 20;
constexpr uint64_t kMaxBodyBytes = 100'000;

struct Seen {
  bool failed = false;
  bool whole = false;  // at the end of the input
  size_t messages = 0;
  std::string heads, bodies;
  bool operator==(const Seen&) const = default;
};

std::string Described(const MessageHead& head) {
  std::string out = head.method + "|" + head.target + "|" + std::to_string(head.status) + "|" +
                    std::to_string(head.minor_version) + "|" +
                    (head.keep_alive ? "keep" : "close") + (head.chunked ? "|chunked" : "") +
                    (head.expects_continue ? "|continue" : "") + "|" +
                    std::to_string(head.content_length.value_or(UINT64_MAX)) + "\n";
  CHECK(!head.chunked || !head.content_length);
  CHECK(head.headers.list().size() <= kMaxHeaders);
  for (const auto& [name, value] : head.headers.list()) {
    CHECK(!name.empty());
    CHECK((name + value).find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
    out += name + ": " + value + "\n";
  }
  return out;
}

Seen ParseAll(Http1Parser::Role role, std::string_view bytes, size_t piece, bool answers_head) {
  Http1Parser parser(role, kMaxHeadBytes, kMaxHeaders, kMaxBodyBytes);
  parser.set_answers_head(answers_head);
  Seen seen;
  while (!bytes.empty()) {
    const std::string part(bytes.substr(0, piece));  // a copy: the sanitizer sees each step outside
    bytes.remove_prefix(part.size());
    std::string_view input = part;
    while (true) {
      const auto step = parser.Next(input);
      if (!step) {
        seen.failed = true;
        CHECK(parser.error_code() >= 400 && parser.error_code() < 600);
        return seen;
      }
      if (*step == Http1Parser::Step::kNeedMore) break;
      if (*step == Http1Parser::Step::kHead) seen.heads += Described(parser.head());
      if (*step == Http1Parser::Step::kData) seen.bodies += parser.data();
      if (*step == Http1Parser::Step::kEnd) {
        ++seen.messages;
        parser.Reset();
        parser.set_answers_head(answers_head);
      }
    }
    CHECK(input.empty());
  }
  seen.whole = parser.AtEof().ok();
  return seen;
}

}  // namespace

FUZZ_TARGET(http1, input) {
  muster::FuzzInput choices(input);
  const uint8_t flags = choices.Byte();
  const size_t piece = choices.Byte() % 16 + 1;
  const auto role = (flags & 1) != 0 ? Http1Parser::Role::kRequest : Http1Parser::Role::kResponse;
  const bool answers_head = role == Http1Parser::Role::kResponse && (flags & 2) != 0;
  const Seen whole = ParseAll(role, choices.Rest(), SIZE_MAX, answers_head);
  CHECK(whole.bodies.size() <= choices.Rest().size());
  CHECK(ParseAll(role, choices.Rest(), piece, answers_head) == whole);
}
