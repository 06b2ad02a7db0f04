#include "agent/devices/grpc_connection.h"

#include <fcntl.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

constexpr size_t kPrefixBytes = 5;  // compressed or not, length
constexpr size_t kReadBytes = 64 * 1024;
constexpr int kUnknownCode = 2, kDeadlineExceeded = 4, kUnimplemented = 12, kUnavailable = 14;

nghttp2_nv Header(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

std::string Framed(std::string_view message) {
  std::string out(1, '\0');
  for (int shift = 24; shift >= 0; shift -= 8)
    out += static_cast<char>(message.size() >> shift & 0xff);
  return out.append(message);
}

Status StatusOfCode(int64_t code, const std::string& message) {
  if (code == 0) return Status::Ok();
  const Reason reason = code == kDeadlineExceeded ? Reason::kTimeout
                        : code == kUnavailable    ? Reason::kServiceUnavailable
                        : code == kUnimplemented  ? Reason::kNotFound
                                                  : Reason::kUnknown;
  return Error(reason, "{}", message.empty() ? fmt::format("gRPC status {}", code) : message);
}

// grpc-message: bytes that no header may have are written as %XX.
std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '%')
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace

struct GrpcConnection::Stream {
  std::string method;                  // of a server
  std::string out;                     // what is not sent of the message
  std::string in;                      // what has come and is no whole message
  std::shared_ptr<CallEvents> events;  // of a client
  std::string http_status, message;
  std::optional<int64_t> code;
  TimerId timeout = 0;
  bool ended = false;       // no more comes
  std::string answer_code;  // of a server: goes behind the message
  std::string answer_message;
};

struct GrpcConnection::Callbacks {
  static GrpcConnection& Self(void* user) { return *static_cast<GrpcConnection*>(user); }
  static Stream* Find(void* user, int32_t id) {
    const auto found = Self(user).streams_.find(id);
    return found == Self(user).streams_.end() ? nullptr : found->second.get();
  }

  static int OnBeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
      Self(user).streams_[frame->hd.stream_id] = std::make_unique<Stream>();
    return 0;
  }
  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                      void* user) {
    Stream* stream = Find(user, frame->hd.stream_id);
    if (stream == nullptr) return 0;
    const std::string_view key(reinterpret_cast<const char*>(name), name_size);
    const std::string text(reinterpret_cast<const char*>(value), value_size);
    if (key == ":path") stream->method = text;
    if (key == ":status") stream->http_status = text;
    if (key == "grpc-status") stream->code = ParseInt(text).value_or(kUnknownCode);
    if (key == "grpc-message") stream->message = PercentDecode(text, false).value_or(text);
    return 0;
  }
  static int OnChunk(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size,
                     void* user) {
    Stream* stream = Find(user, id);
    if (stream == nullptr) return 0;
    if (stream->in.size() + size > kMaxGrpcMessageBytes + kPrefixBytes + kReadBytes)
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    stream->in.append(reinterpret_cast<const char*>(data), size);
    Self(user).TakeMessages(id, *stream);
    return 0;
  }
  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    const bool last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    GrpcConnection& self = Self(user);
    if (last && self.service_ && Find(user, frame->hd.stream_id) != nullptr) {
      self.loop_.Post(
          self.lifetime_.Guard([&self, id = frame->hd.stream_id] { self.AnswerCall(id); }));
    }
    return 0;
  }
  static int OnStreamClose(nghttp2_session*, int32_t id, uint32_t, void* user) {
    Self(user).EndStream(id);
    return 0;
  }
  // The message, then, of a server, the status behind it.
  static ssize_t Read(nghttp2_session* session, int32_t id, uint8_t* buffer, size_t length,
                      uint32_t* flags, nghttp2_data_source*, void* user) {
    Stream* stream = Find(user, id);
    if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const size_t size = std::min(length, stream->out.size());
    memcpy(buffer, stream->out.data(), size);
    stream->out.erase(0, size);
    if (!stream->out.empty()) return static_cast<ssize_t>(size);
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (!stream->answer_code.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const std::array<nghttp2_nv, 2> trailers = {Header("grpc-status", stream->answer_code),
                                                  Header("grpc-message", stream->answer_message)};
      nghttp2_submit_trailer(session, id, trailers.data(), trailers.size());
    }
    return static_cast<ssize_t>(size);
  }
};

GrpcConnection::GrpcConnection(AsioLoop& loop, UniqueFd socket)
    : loop_(loop), socket_(std::move(socket)) {
  Begin(true);
}

GrpcConnection::GrpcConnection(AsioLoop& loop, UniqueFd socket, Service service)
    : loop_(loop), socket_(std::move(socket)), service_(std::move(service)) {
  Begin(false);
}

GrpcConnection::~GrpcConnection() {
  loop_.Cancel(retry_);
  for (const auto& [id, stream] : streams_) loop_.Cancel(stream->timeout);
  watch_.reset();
  nghttp2_session_del(session_);
}

void GrpcConnection::Begin(bool client) {
  const int flags = fcntl(socket_.get(), F_GETFL);
  (void)fcntl(socket_.get(), F_SETFL, flags | O_NONBLOCK);
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Callbacks::OnBeginHeaders);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::OnHeader);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::OnChunk);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::OnFrame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::OnStreamClose);
  if (client)
    nghttp2_session_client_new(&session_, callbacks, this);
  else
    nghttp2_session_server_new(&session_, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  const std::array<nghttp2_settings_entry, 2> settings = {
      {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kMaxGrpcCalls},
       {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}}};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), client ? 2 : 1);
  watch_ = loop_.WatchReadable(socket_.get(), [this] { OnReadable(); });
  Flush();
}

void GrpcConnection::OnReadable() {
  std::array<char, kReadBytes> buffer;
  while (!broken_) {
    const ssize_t size = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) break;
    if (size < 0) return Break(strerror(errno));
    if (size == 0) return Break("the other end closed the connection");
    const ssize_t taken = nghttp2_session_mem_recv(
        session_, reinterpret_cast<const uint8_t*>(buffer.data()), static_cast<size_t>(size));
    if (taken < 0) return Break(nghttp2_strerror(static_cast<int>(taken)));
  }
  Flush();
}

void GrpcConnection::Flush() {
  loop_.Cancel(retry_);
  retry_ = 0;
  while (!broken_) {
    if (out_.empty()) {
      const uint8_t* bytes = nullptr;
      const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
      if (size < 0) return Break(nghttp2_strerror(static_cast<int>(size)));
      if (size == 0) break;
      out_.assign(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
    }
    const ssize_t written = send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      retry_ = loop_.After(kGrpcWriteRetry, lifetime_.Guard([this] { Flush(); }));
      return;
    }
    if (written < 0) return Break(strerror(errno));
    out_.erase(0, static_cast<size_t>(written));
  }
  // The peer takes no further calls, or speaks something else.
  if (!broken_ && nghttp2_session_want_read(session_) == 0 &&
      nghttp2_session_want_write(session_) == 0)
    Break("the other end goes away");
}

void GrpcConnection::Break(const std::string& why) {
  if (broken_) return;
  broken_ = true;
  for (auto& [id, stream] : streams_) {
    if (!stream->code) {
      stream->code = kUnavailable;
      stream->message = why;
    }
  }
  std::vector<int32_t> ids;
  for (const auto& [id, stream] : streams_) ids.push_back(id);
  for (const int32_t id : ids) EndStream(id);
  loop_.Post(lifetime_.Guard([this] {
    watch_.reset();
    socket_.Reset();
    Task closed = std::exchange(on_closed_, nullptr);
    if (closed) closed();
  }));
}

void GrpcConnection::TakeMessages(int32_t id, Stream& stream) {
  if (service_) return;  // when the request is whole
  while (stream.in.size() >= kPrefixBytes) {
    size_t size = 0;
    for (size_t i = 1; i < kPrefixBytes; ++i)
      size = size << 8 | static_cast<unsigned char>(stream.in[i]);
    if (stream.in[0] != '\0' || size > kMaxGrpcMessageBytes) {
      stream.code = kUnknownCode;
      stream.message = "a message is compressed or too large";
      nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
      stream.in.clear();
      return;
    }
    if (stream.in.size() < kPrefixBytes + size) return;
    std::string message = stream.in.substr(kPrefixBytes, size);
    stream.in.erase(0, kPrefixBytes + size);
    loop_.Post(lifetime_.Guard([this, id, message = std::move(message)] {
      const auto found = streams_.find(id);
      if (found == streams_.end()) return;
      const auto events = found->second->events;  // it may destroy us
      if (events->on_message) events->on_message(message);
    }));
  }
}

void GrpcConnection::Call(const std::string& method, std::string_view request,
                          std::optional<Duration> timeout, CallEvents events) {
  CHECK(!service_);
  auto stream = std::make_unique<Stream>();
  stream->events = std::make_shared<CallEvents>(std::move(events));
  stream->out = Framed(request);
  const std::array<nghttp2_nv, 7> headers = {
      Header(":method", "POST"),     Header(":scheme", "http"),
      Header(":path", method),       Header(":authority", "localhost"),
      Header("te", "trailers"),      Header("content-type", "application/grpc"),
      Header("user-agent", "muster")};
  nghttp2_data_provider body = {};
  body.read_callback = Callbacks::Read;
  const int32_t id = broken_ ? -1
                             : nghttp2_submit_request(session_, nullptr, headers.data(),
                                                      headers.size(), &body, nullptr);
  if (id < 0) {
    loop_.Post(lifetime_.Guard([stream = std::move(stream)] {
      stream->events->on_end(Error(Reason::kServiceUnavailable, "the connection is closed"));
    }));
    return;
  }
  if (timeout) {
    stream->timeout = loop_.After(*timeout, lifetime_.Guard([this, id] {
      const auto found = streams_.find(id);
      if (found == streams_.end()) return;
      found->second->code = kDeadlineExceeded;
      found->second->message = "no answer in time";
      nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
      Flush();
    }));
  }
  streams_[id] = std::move(stream);
  Flush();
}

void GrpcConnection::AnswerCall(int32_t id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  Stream& stream = *found->second;
  Result<std::string> answer = Error(Reason::kInvalid, "a request is one message, not compressed");
  if (stream.in.size() >= kPrefixBytes && stream.in[0] == '\0' &&
      Framed(std::string_view(stream.in).substr(kPrefixBytes)) == stream.in)
    answer = service_(stream.method, std::string_view(stream.in).substr(kPrefixBytes));
  if (answer) stream.out = Framed(*answer);
  const bool unknown = !answer && answer.error().reason() == Reason::kNotFound;
  stream.answer_code = std::to_string(answer ? 0 : unknown ? kUnimplemented : kUnknownCode);
  stream.answer_message = answer ? "" : Escaped(answer.error().message());
  const std::array<nghttp2_nv, 2> headers = {Header(":status", "200"),
                                             Header("content-type", "application/grpc")};
  nghttp2_data_provider body = {};
  body.read_callback = Callbacks::Read;
  nghttp2_submit_response(session_, id, headers.data(), headers.size(), &body);
  Flush();
}

// After all its messages.
void GrpcConnection::EndStream(int32_t id) {
  const auto found = streams_.find(id);
  if (found == streams_.end() || found->second->ended) return;
  if (service_) {
    streams_.erase(found);
    return;
  }
  Stream& stream = *found->second;
  loop_.Cancel(stream.timeout);
  stream.ended = true;
  loop_.Post(lifetime_.Guard([this, id] {
    const auto at = streams_.find(id);
    if (at == streams_.end()) return;
    const std::unique_ptr<Stream> ended = std::move(at->second);
    streams_.erase(at);
    Status status = ended->code
                        ? StatusOfCode(*ended->code, ended->message)
                        : Error(Reason::kUnknown, "an answer without a status (HTTP status {})",
                                ended->http_status.empty() ? "none" : ended->http_status);
    ended->events->on_end(std::move(status));
  }));
}

}  // namespace muster::agent
