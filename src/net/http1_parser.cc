#include "net/http1_parser.h"

#include <algorithm>

#include "base/strings.h"

namespace muster::net {
namespace {

// RFC 9110 5.6.2: the characters of a token.
bool IsTokenChar(unsigned char c) {
  if (c >= '0' && c <= '9') return true;
  if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') return true;
  return c != 0 &&
         std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenChar);
}

bool IsFieldChar(unsigned char c) { return c == '\t' || (c >= 0x20 && c != 0x7f); }

std::string_view TrimBlanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

bool ListHasToken(std::string_view list, std::string_view token) {
  for (std::string_view part : Split(list, ',')) {
    if (EqualsIgnoreCase(TrimBlanks(part), token)) return true;
  }
  return false;
}

Status Http1Parser::Fail(int code, std::string message) {
  error_code_ = code;
  return Status(code == 413 ? Reason::kRequestEntityTooLarge : Reason::kBadRequest,
                std::move(message));
}

Status Http1Parser::FailTooLong() {
  const bool first_line = buffer_.find("\r\n") == std::string::npos;
  if (first_line && role_ == Role::kRequest)
    return Fail(414, fmt::format("request line: more than {} bytes", max_head_bytes_));
  return Fail(431, fmt::format("head: more than {} bytes", max_head_bytes_));
}

void Http1Parser::Reset() {
  state_ = State::kHead;
  answers_head_ = false;
  searched_ = 0;
  trailer_bytes_ = 0;
  remaining_ = 0;
  body_bytes_ = 0;
  buffer_.clear();
  data_ = {};
  head_ = MessageHead();
}

Status Http1Parser::AtEof() const {
  if (state_ == State::kUntilEof || state_ == State::kDone || between_messages())
    return Status::Ok();
  return Error(Reason::kServiceUnavailable, "the connection ended in the middle of a message");
}

Result<Http1Parser::Step> Http1Parser::Next(std::string_view& input) {
  while (true) {
    switch (state_) {
      case State::kHead:
        return TakeHead(input);
      case State::kFixedBody:
        return TakeData(input, State::kEnd);
      case State::kUntilEof: {
        if (input.empty()) return Step::kNeedMore;
        data_ = std::exchange(input, {});
        return Step::kData;
      }
      case State::kChunkSize: {
        ASSIGN_OR_RETURN(bool complete, TakeLine(input, kMaxChunkLineBytes));
        if (!complete) return Step::kNeedMore;
        RETURN_IF_ERROR(ParseChunkSize());
        break;
      }
      case State::kChunkData:
        return TakeData(input, State::kChunkEnd);
      case State::kChunkEnd: {
        ASSIGN_OR_RETURN(bool complete, TakeLine(input, 0));
        if (!complete) return Step::kNeedMore;
        state_ = State::kChunkSize;
        break;
      }
      case State::kTrailers: {
        ASSIGN_OR_RETURN(bool complete, TakeLine(input, max_head_bytes_ - trailer_bytes_));
        if (!complete) return Step::kNeedMore;
        trailer_bytes_ += buffer_.size();
        if (buffer_.empty()) state_ = State::kEnd;  // trailer fields are read and dropped
        buffer_.clear();
        break;
      }
      case State::kEnd:
        state_ = State::kDone;
        return Step::kEnd;
      case State::kDone:
        return Step::kNeedMore;
    }
  }
}

Result<Http1Parser::Step> Http1Parser::TakeHead(std::string_view& input) {
  // Blank lines before a request line are tolerated (RFC 9112 2.2).
  while (buffer_.empty() && input.starts_with("\r\n")) input.remove_prefix(2);
  if (input.empty()) return Step::kNeedMore;
  size_t before = buffer_.size();
  size_t room = max_head_bytes_ - before;
  std::string_view end_mark = "\r\n\r\n";
  if (before == 0) {
    // The usual case: the whole head in one piece, parsed in place.
    size_t end = input.substr(0, room).find(end_mark);
    if (end != std::string_view::npos) {
      RETURN_IF_ERROR(ParseHead(input.substr(0, end + 2)));
      input.remove_prefix(end + 4);
      return Step::kHead;
    }
  }
  buffer_.append(input.substr(0, room));
  if (buffer_.starts_with("\r\n")) {  // such a blank line, in two pieces
    input.remove_prefix(2 - before);
    buffer_.clear();
    return TakeHead(input);
  }
  size_t end = buffer_.find(end_mark, searched_);
  if (end == std::string::npos) {
    if (input.size() >= room) return Error(FailTooLong());
    searched_ = buffer_.size() < 3 ? 0 : buffer_.size() - 3;
    input = {};
    return Step::kNeedMore;
  }
  input.remove_prefix(end + 4 - before);
  std::string text = std::exchange(buffer_, {});
  searched_ = 0;
  RETURN_IF_ERROR(ParseHead(std::string_view(text).substr(0, end + 2)));
  return Step::kHead;
}

// `text` is all lines of the head, each with its CRLF.
Status Http1Parser::ParseHead(std::string_view text) {
  bool first = true;
  size_t count = 0;
  while (!text.empty()) {
    size_t end = text.find('\n');
    if (end == std::string_view::npos || end == 0 || text[end - 1] != '\r') {
      return Fail(400, "head: lines must end with CR LF");
    }
    std::string_view line = text.substr(0, end - 1);
    text.remove_prefix(end + 1);
    if (!std::all_of(line.begin(), line.end(), IsFieldChar))
      return Fail(400, "head: control character in a line");
    if (first) {
      RETURN_IF_ERROR(role_ == Role::kRequest ? ParseRequestLine(line) : ParseStatusLine(line));
      first = false;
      continue;
    }
    if (++count > max_header_count_)
      return Fail(431, fmt::format("head: more than {} headers", max_header_count_));
    RETURN_IF_ERROR(ParseHeaderLine(line));
  }
  return Interpret();
}

Status Http1Parser::ParseVersion(std::string_view text) {
  if (text != "HTTP/1.1" && text != "HTTP/1.0") {
    return Fail(text.starts_with("HTTP/") ? 505 : 400, "expected HTTP/1.1");
  }
  head_.minor_version = text.back() - '0';
  return Status::Ok();
}

Status Http1Parser::ParseRequestLine(std::string_view line) {
  size_t first = line.find(' ');
  size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last)
    return Fail(400, "request line: expected METHOD TARGET VERSION");
  std::string_view method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, last - first - 1);
  RETURN_IF_ERROR(ParseVersion(line.substr(last + 1)));
  if (!IsToken(method)) return Fail(400, "request line: the method is not a token");
  if (target.find_first_of(" \t") != std::string_view::npos)
    return Fail(400, "request line: blank in the target");
  // The absolute form (RFC 9112 3.2.2) names the server once more; what counts is the path.
  for (std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    size_t slash = target.find('/', scheme.size());
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  if (target.empty() || (target[0] != '/' && target != "*")) {
    return Fail(400, "request line: the target must be a path");
  }
  head_.method = std::string(method);
  head_.target = std::string(target);
  return Status::Ok();
}

Status Http1Parser::ParseStatusLine(std::string_view line) {
  RETURN_IF_ERROR(ParseVersion(line.substr(0, std::min<size_t>(8, line.size()))));
  if (line.size() < 12 || line[8] != ' ' || (line.size() > 12 && line[12] != ' ')) {
    return Fail(400, "status line: expected VERSION CODE TEXT");
  }
  head_.status = static_cast<int>(ParseInt(line.substr(9, 3)).value_or(0));
  if (head_.status < 100 || head_.status > 999)
    return Fail(400, "status line: expected a code of three digits");
  return Status::Ok();
}

Status Http1Parser::ParseHeaderLine(std::string_view line) {
  size_t colon = line.find(':');
  if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) {
    return Fail(400, "header: expected NAME: VALUE (folded lines are refused)");
  }
  head_.headers.Add(std::string(line.substr(0, colon)),
                    std::string(TrimBlanks(line.substr(colon + 1))));
  return Status::Ok();
}

Status Http1Parser::Interpret() {
  size_t hosts = 0;
  size_t lengths = 0;
  size_t codings = 0;
  bool close = false;
  bool keep = false;
  for (const auto& [name, value] : head_.headers.list()) {
    if (EqualsIgnoreCase(name, "Host")) ++hosts;
    if (EqualsIgnoreCase(name, "Content-Length")) ++lengths;
    if (EqualsIgnoreCase(name, "Transfer-Encoding")) ++codings;
    if (EqualsIgnoreCase(name, "Connection")) {
      close = close || ListHasToken(value, "close");
      keep = keep || ListHasToken(value, "keep-alive");
    }
    if (EqualsIgnoreCase(name, "Expect")) {
      if (!EqualsIgnoreCase(value, "100-continue"))
        return Fail(417, "Expect: only 100-continue is known");
      head_.expects_continue = role_ == Role::kRequest && head_.minor_version == 1;
    }
  }
  head_.keep_alive = head_.minor_version == 1 ? !close : keep && !close;
  if (role_ == Role::kRequest && (hosts > 1 || (hosts == 0 && head_.minor_version == 1))) {
    return Fail(400, "Host: expected exactly one");
  }
  if (lengths > 1 || codings > 1)
    return Fail(400, "Content-Length, Transfer-Encoding: expected at most one");
  if (lengths + codings > 1)
    return Fail(400, "Content-Length and Transfer-Encoding exclude each other");
  if (codings == 1) {
    if (!EqualsIgnoreCase(head_.headers.Get("Transfer-Encoding"), "chunked")) {
      return Fail(501, "Transfer-Encoding: only chunked is known");
    }
    if (head_.minor_version == 0) return Fail(400, "Transfer-Encoding: needs HTTP/1.1");
    head_.chunked = true;
  }
  return InterpretLength();
}

Status Http1Parser::InterpretLength() {
  if (head_.headers.Has("Content-Length")) {
    std::string_view text = head_.headers.Get("Content-Length");
    bool digits =
        !text.empty() && text.size() <= 18 &&
        std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits) return Fail(400, "Content-Length: expected a number");
    head_.content_length = static_cast<uint64_t>(*ParseInt(text));
  }
  if (role_ == Role::kResponse) {
    bool no_body =
        answers_head_ || head_.status < 200 || head_.status == 204 || head_.status == 304;
    if (no_body) {
      state_ = State::kEnd;
      return Status::Ok();
    }
    if (!head_.chunked && !head_.content_length) {
      state_ = State::kUntilEof;
      head_.keep_alive = false;
      return Status::Ok();
    }
  }
  if (head_.chunked) {
    state_ = State::kChunkSize;
    return Status::Ok();
  }
  remaining_ = head_.content_length.value_or(0);
  if (remaining_ > max_body_bytes_) {
    return Fail(413, fmt::format("body of {} bytes: the limit is {}", remaining_, max_body_bytes_));
  }
  state_ = remaining_ == 0 ? State::kEnd : State::kFixedBody;
  return Status::Ok();
}

Result<Http1Parser::Step> Http1Parser::TakeData(std::string_view& input, State after) {
  if (input.empty()) return Step::kNeedMore;
  size_t take = static_cast<size_t>(std::min<uint64_t>(remaining_, input.size()));
  data_ = input.substr(0, take);
  input.remove_prefix(take);
  remaining_ -= take;
  if (remaining_ == 0) state_ = after;
  return Step::kData;
}

Result<bool> Http1Parser::TakeLine(std::string_view& input, size_t limit) {
  size_t end = input.find('\n');
  size_t take = end == std::string_view::npos ? input.size() : end + 1;
  if (buffer_.size() + take > limit + 2) return Error(Fail(400, "chunk: line too long"));
  buffer_.append(input.substr(0, take));
  input.remove_prefix(take);
  if (end == std::string_view::npos) return false;
  if (!buffer_.ends_with("\r\n")) return Error(Fail(400, "chunk: lines must end with CR LF"));
  buffer_.resize(buffer_.size() - 2);
  return true;
}

Status Http1Parser::ParseChunkSize() {
  std::string_view line = buffer_;
  std::string_view digits = TrimBlanks(line.substr(0, line.find(';')));
  if (digits.empty() || digits.size() > 8)
    return Fail(400, "chunk: expected a size of 1 to 8 hexadecimal digits");
  uint64_t size = 0;
  for (char c : digits) {
    int digit = c >= '0' && c <= '9'                     ? c - '0'
                : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                         : -1;
    if (digit < 0) return Fail(400, "chunk: the size is not hexadecimal");
    size = size * 16 + static_cast<uint64_t>(digit);
  }
  buffer_.clear();
  body_bytes_ += size;
  if (body_bytes_ > max_body_bytes_)
    return Fail(413, fmt::format("body: more than {} bytes", max_body_bytes_));
  remaining_ = size;
  state_ = size == 0 ? State::kTrailers : State::kChunkData;
  return Status::Ok();
}

}  // namespace muster::net
