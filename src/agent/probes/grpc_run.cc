#include "agent/probes/grpc_run.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "agent/devices/proto_wire.h"
#include "agent/probes/http_run.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

using Is = HandlerResult::Is;

constexpr std::string_view kCheck = "/grpc.health.v1.Health/Check";
constexpr size_t kPrefixBytes = 5;  // compressed or not, length
constexpr int kUnimplemented = 12;
constexpr std::array<const char*, 4> kStatusNames = {"UNKNOWN", "SERVING", "NOT_SERVING",
                                                     "SERVICE_UNKNOWN"};
constexpr std::array<const char*, 17> kCodes = {
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};

nghttp2_nv Header(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

class GrpcRun final : public HandlerRun {
 public:
  GrpcRun(Loop& loop, const HandlerAction& action, HandlerRunner::Done done)
      : loop_(loop),
        address_(fmt::format("{}:{}", action.host, action.port)),
        request_(HealthRequest(action.service)),
        done_(std::move(done)) {}
  ~GrpcRun() override {
    loop_.Cancel(timeout_);
    nghttp2_session_del(session_);
  }

  void Start(net::HttpClient& client, const HandlerAction& action,
             std::optional<Duration> timeout) {
    within_ = timeout.value_or(Duration());
    dialing_ = client.Connect({false, action.host, action.port, ""},
                              [this](Result<std::unique_ptr<net::ByteStream>> stream) {
                                if (!stream) return NoConnection();
                                stream_ = std::move(*stream);
                                Speak();
                              });
    if (!timeout) return;
    timeout_ = loop_.After(*timeout, [this] {
      timeout_ = 0;
      if (!is_http2_) return NoConnection();
      Fail(fmt::format("timeout: health rpc did not complete within {}", HumanDuration(within_)));
    });
  }

 private:
  static GrpcRun& Self(void* user) { return *static_cast<GrpcRun*>(user); }

  static int OnHeader(nghttp2_session*, const nghttp2_frame*, const uint8_t* name, size_t name_size,
                      const uint8_t* value, size_t value_size, uint8_t, void* user) {
    const std::string_view key(reinterpret_cast<const char*>(name), name_size);
    std::string text(reinterpret_cast<const char*>(value), value_size);
    if (key == ":status")
      Self(user).http_status_ = std::move(text);
    else if (key == "grpc-status")
      Self(user).grpc_status_ = ParseInt(text);
    else if (key == "grpc-message")
      Self(user).grpc_message_ = PercentDecode(text, false).value_or(text);
    return 0;
  }
  static int OnChunk(nghttp2_session*, uint8_t, int32_t, const uint8_t* data, size_t size,
                     void* user) {
    std::string& answer = Self(user).answer_;
    if (answer.size() + size > kMaxHealthAnswerBytes) return NGHTTP2_ERR_CALLBACK_FAILURE;
    answer.append(reinterpret_cast<const char*>(data), size);
    return 0;
  }
  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type == NGHTTP2_SETTINGS) Self(user).is_http2_ = true;
    return 0;
  }
  static int OnStreamClose(nghttp2_session*, int32_t, uint32_t, void* user) {
    Self(user).stream_closed_ = true;
    return 0;
  }
  static ssize_t ReadRequest(nghttp2_session*, int32_t, uint8_t* buffer, size_t length,
                             uint32_t* flags, nghttp2_data_source* source, void*) {
    std::string& rest = Self(source->ptr).request_;
    const size_t size = std::min(length, rest.size());
    memcpy(buffer, rest.data(), size);
    rest.erase(0, size);
    if (rest.empty()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(size);
  }

  void Speak() {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnChunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnStreamClose);
    nghttp2_session_client_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry no_push = {NGHTTP2_SETTINGS_ENABLE_PUSH, 0};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &no_push, 1);
    const std::array<nghttp2_nv, 7> headers = {Header(":method", "POST"),
                                               Header(":scheme", "http"),
                                               Header(":path", kCheck),
                                               Header(":authority", address_),
                                               Header("te", "trailers"),
                                               Header("content-type", "application/grpc"),
                                               Header("user-agent", kProbeUserAgent)};
    nghttp2_data_provider body = {};
    body.source.ptr = this;
    body.read_callback = ReadRequest;
    nghttp2_submit_request(session_, nullptr, headers.data(), headers.size(), &body, nullptr);
    stream_->OnClose([this] { Broken("the server closed the connection"); });
    stream_->OnData([this](std::string_view bytes) { OnBytes(bytes); });
    SendPending();
  }

  void SendPending() {
    const uint8_t* bytes = nullptr;
    while (true) {
      const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
      if (size <= 0) return;
      stream_->Write(std::string(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size)));
    }
  }

  void OnBytes(std::string_view bytes) {
    const ssize_t taken = nghttp2_session_mem_recv(
        session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    if (stream_closed_) return Conclude();
    if (taken < 0) return Broken(nghttp2_strerror(static_cast<int>(taken)));
    SendPending();
  }

  void Conclude() {
    const int64_t code = grpc_status_.value_or(2);
    if (code == 0) {
      const std::optional<std::string> status = HealthStatus(answer_);
      if (status && *status == "SERVING") return Finish({Is::kSuccess, "service healthy"});
      if (status) return Fail(fmt::format("service unhealthy (responded with \"{}\")", *status));
      return Broken("the answer is no HealthCheckResponse");
    }
    if (code == kUnimplemented) {
      return Fail(
          fmt::format("error: this server does not implement the grpc health protocol "
                      "(grpc.health.v1.Health): {}",
                      grpc_message_));
    }
    if (!grpc_status_ && http_status_ != "200")
      return Broken(
          fmt::format("unexpected HTTP status code received from server: {}", http_status_));
    const bool named = code > 0 && code < static_cast<int64_t>(kCodes.size());
    Fail(fmt::format("error: health rpc probe failed: rpc error: code = {} desc = {}",
                     named ? kCodes[static_cast<size_t>(code)] : "Unknown", grpc_message_));
  }

  // As upstream, which tries to connect until the time is over.
  void NoConnection() {
    Fail(fmt::format(
        "timeout: failed to connect service \"{}\" within {}: context deadline exceeded", address_,
        HumanDuration(within_)));
  }
  void Broken(const std::string& why) {
    if (!is_http2_) return NoConnection();
    Fail(fmt::format("error: health rpc probe failed: rpc error: code = Unavailable desc = {}",
                     why));
  }
  void Fail(std::string why) { Finish({Is::kFailure, std::move(why)}); }

  // The last thing that it does: its owner destroys it.
  void Finish(HandlerResult result) {
    HandlerRunner::Done done = std::move(done_);
    done_ = nullptr;
    if (done) done(std::move(result));
  }

  Loop& loop_;
  const std::string address_;
  std::string request_;  // what is not sent of it
  HandlerRunner::Done done_;
  std::unique_ptr<net::ClientStream> dialing_;
  std::unique_ptr<net::ByteStream> stream_;
  nghttp2_session* session_ = nullptr;
  bool is_http2_ = false, stream_closed_ = false;
  std::string http_status_, grpc_message_, answer_;
  std::optional<int64_t> grpc_status_;
  Duration within_{};
  TimerId timeout_ = 0;
};

}  // namespace

std::string HealthRequest(std::string_view service) {
  std::string message;
  if (!service.empty()) AppendBytes(message, 1, service);
  std::string out(1, '\0');
  for (int shift = 24; shift >= 0; shift -= 8)
    out += static_cast<char>(message.size() >> shift & 0xff);
  return out + message;
}

std::optional<std::string> HealthStatus(std::string_view message) {
  if (message.size() < kPrefixBytes || message[0] != '\0') return std::nullopt;
  size_t size = 0;
  for (size_t i = 1; i < kPrefixBytes; ++i)
    size = size << 8 | static_cast<unsigned char>(message[i]);
  const std::string_view rest = message.substr(kPrefixBytes);
  if (rest.size() < size) return std::nullopt;
  uint64_t status = 0;
  const Status read = ReadFields(rest.substr(0, size), [&](const ProtoField& field) {
    if (field.number == 1 && !field.is_bytes) status = field.value;
    return Status::Ok();
  });
  if (!read.ok()) return std::nullopt;
  return status < kStatusNames.size() ? kStatusNames[status] : std::to_string(status);
}

std::unique_ptr<HandlerRun> RunGrpc(Loop& loop, net::HttpClient& client,
                                    const HandlerAction& action, std::optional<Duration> timeout,
                                    HandlerRunner::Done done) {
  auto run = std::make_unique<GrpcRun>(loop, action, std::move(done));
  run->Start(client, action, timeout);
  return run;
}

}  // namespace muster::agent
