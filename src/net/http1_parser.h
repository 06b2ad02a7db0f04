// src/net/http1_parser.h
//
// Http1Parser: a strict incremental parser for HTTP/1.1 messages (RFC 9112), without any I/O. What
// two parsers could read differently is refused: bare LF, folded headers, a space before the colon,
// two lengths, a length beside chunks.
//
//   while (true) {
//     Result<Step> step = parser.Next(input);      // consumes from the front of `input`
//     switch (*step) { kNeedMore: read again; kHead: parser.head(); kData: parser.data(); kEnd:
//     parser.Reset(); }
//   }
//
// Life cycle: one per connection; Reset() between messages.
// Thread:     any one.
// Invariants: never reads past `input`; keeps at most max_head_bytes of its own; after an error it
// must not be used.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "net/http.h"

namespace muster::net {

struct MessageHead {
  std::string method, target;  // of a request
  int status = 0;              // of a response
  int minor_version = 1;       // HTTP/1.x
  Headers headers;
  bool keep_alive = true;
  bool expects_continue = false;
  bool chunked = false;
  std::optional<uint64_t> content_length;
};

inline constexpr size_t kMaxChunkLineBytes = 256;  // a chunk's size and extensions

// Whether the comma-separated list of a header's value holds `token`, without case.
bool ListHasToken(std::string_view list, std::string_view token);

class Http1Parser {
 public:
  enum class Role : uint8_t { kRequest, kResponse };
  enum class Step : uint8_t {
    kNeedMore,  // all input consumed
    kHead,      // head() is complete
    kData,      // data() is a piece of the body, a view into the input
    kEnd,       // the message is complete
  };

  Http1Parser(Role role, size_t max_head_bytes, size_t max_header_count, uint64_t max_body_bytes)
      : role_(role),
        max_head_bytes_(max_head_bytes),
        max_header_count_(max_header_count),
        max_body_bytes_(max_body_bytes) {}

  Result<Step> Next(std::string_view& input);
  const MessageHead& head() const { return head_; }
  MessageHead& head() { return head_; }
  std::string_view data() const { return data_; }
  // The HTTP status for the peer after an error: 400, 413, 414, 431, 501 or 505.
  int error_code() const { return error_code_; }

  // Before the head of a response: it answers a HEAD and so has no body.
  void set_answers_head(bool answers_head) { answers_head_ = answers_head; }
  // The connection ended: Ok if that is how this message ends.
  Status AtEof() const;
  bool between_messages() const { return state_ == State::kHead && buffer_.empty(); }
  void Reset();

 private:
  enum class State : uint8_t {
    kHead,
    kFixedBody,
    kUntilEof,
    kChunkSize,
    kChunkData,
    kChunkEnd,
    kTrailers,
    kEnd,
    kDone
  };

  Status Fail(int code, std::string message);
  Status FailTooLong();  // the head
  Result<Step> TakeHead(std::string_view& input);
  Status ParseHead(std::string_view text);
  Status ParseRequestLine(std::string_view line);
  Status ParseStatusLine(std::string_view line);
  Status ParseHeaderLine(std::string_view line);
  Status ParseVersion(std::string_view text);
  Status Interpret();
  Status InterpretLength();
  Result<Step> TakeData(std::string_view& input, State after);
  // A line without its CRLF, once complete, gathered in buffer_.
  Result<bool> TakeLine(std::string_view& input, size_t limit);
  Status ParseChunkSize();

  const Role role_;
  const size_t max_head_bytes_;
  const size_t max_header_count_;
  const uint64_t max_body_bytes_;

  State state_ = State::kHead;
  bool answers_head_ = false;
  int error_code_ = 400;
  size_t searched_ = 0;  // prefix of buffer_ that holds no end of head
  size_t trailer_bytes_ = 0;
  uint64_t remaining_ = 0;   // of the body or chunk
  uint64_t body_bytes_ = 0;  // of all chunks
  std::string buffer_;
  std::string_view data_;
  MessageHead head_;
};

}  // namespace muster::net
