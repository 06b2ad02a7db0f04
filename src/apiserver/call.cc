#include "apiserver/call.h"

#include <algorithm>

#include "apiserver/errors.h"
#include "base/check.h"
#include "json/parse.h"
#include "json/write.h"
#include "schema/protobuf_codec.h"

namespace muster::apiserver {

Call::Call(net::Request request, RequestInfo info, net::ResponseWriterPtr writer,
           Function<void(int code)> on_answer)
    : request_(std::move(request)),
      info_(std::move(info)),
      writer_(std::move(writer)),
      on_answer_(std::move(on_answer)) {}

void Call::Warn(std::string_view text) {
  text = text.substr(0, kMaxWarningBytes);
  if (warnings_.size() >= kMaxWarnings || warning_bytes_ + text.size() > kMaxWarningsBytes) return;
  if (std::find(warnings_.begin(), warnings_.end(), text) != warnings_.end()) return;
  warnings_.emplace_back(text);
  warning_bytes_ += text.size();
}

void Call::Warn(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) Warn(text);
}

void Call::AnswerExactly(const Status& status, int code, std::string reason) {
  exact_.push_back({status.message(), code, std::move(reason)});
}

void Call::Fail(const Status& status) {
  for (const ExactAnswer& exact : exact_) {
    if (exact.message != status.message()) continue;
    json::Value object = StatusObject(status).Set("code", exact.code);
    object = exact.reason.empty() ? object.Remove("reason") : object.Set("reason", exact.reason);
    net::Response response = ErrorResponse(status, object, PrefersProtobuf());
    response.status = exact.code;
    return Send(std::move(response));
  }
  if (spoken_ == nullptr) return Send(ErrorResponse(status, PrefersProtobuf()));
  Send(ErrorResponse(schema::InSpokenFields(*spoken_, moved_, status), PrefersProtobuf()));
}

void Call::Reply(int code, std::string body) {
  if (encoding_ == Encoding::kProtobuf) return ReplyProtobuf(code, std::move(body));
  ReplyAs(encoding_, code, std::move(body));
}

void Call::ReplyProtobuf(int code, std::string bytes) {
  net::Response response;
  response.status = code;
  response.headers.Add("Content-Type", std::string(schema::kProtobufMediaType));
  response.body = std::move(bytes);
  Send(std::move(response));
}

void Call::ReplyAs(Encoding encoding, int code, std::string json) {
  net::Response response;
  response.status = code;
  if (encoding == Encoding::kYaml) {
    Result<json::Value> value = json::Parse(json);
    CHECK_MSG(value.has_value(), "an answer is not JSON");
    response.headers.Add("Content-Type", "application/yaml");
    response.body = json::WriteYaml(*value);
  } else {
    response.headers.Add("Content-Type", "application/json");
    response.body = std::move(json);
    response.body += '\n';
  }
  Send(std::move(response));
}

void Call::Reply(int code, const json::Value& value) {
  if (encoding_ == Encoding::kYaml) return ReplyAs(encoding_, code, json::Write(value));
  if (!writer_->TakesValues()) {
    // What has no message (the version, discovery) is JSON for everybody.
    Result<std::string> bytes;
    if (PrefersProtobuf() && (bytes = schema::EncodeProtobuf(value)))
      return ReplyProtobuf(code, *std::move(bytes));
    return ReplyAs(Encoding::kJson, code, json::Write(value));
  }
  net::Response response;
  response.status = code;
  response.value = value;
  Send(std::move(response));
}

void Call::ReplyText(int code, std::string text) {
  net::Response response;
  response.status = code;
  response.headers.Add("Content-Type", "text/plain; charset=utf-8");
  response.headers.Add("X-Content-Type-Options", "nosniff");
  response.body = std::move(text);
  Send(std::move(response));
}

void Call::Send(net::Response response) {
  AddWarnings(response.headers);
  Answered(response.status);
  writer_->Send(std::move(response));
}

net::Headers Call::StreamHeaders(int code, std::string_view content_type) {
  net::Headers headers;
  if (!content_type.empty()) headers.Add("Content-Type", std::string(content_type));
  AddWarnings(headers);
  Answered(code);
  return headers;
}

bool Call::PrefersProtobuf() const {
  return apiserver::PrefersProtobuf(request_.headers.Get("Accept"));
}

void Call::AddWarnings(net::Headers& headers) {
  for (const std::string& text : warnings_) {
    std::string quoted;
    for (char c : text) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    headers.Add("Warning", fmt::format("299 - \"{}\"", quoted));
  }
}

void Call::Answered(int code) {
  if (on_answer_) std::exchange(on_answer_, nullptr)(code);
}

}  // namespace muster::apiserver
