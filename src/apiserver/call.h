// src/apiserver/call.h
//
// Call: one request that is being answered. Handlers hold it by shared pointer until they have
// replied.
//
// Life cycle: made by the ApiServer for each request; ends with the last handler that holds it.
// Thread:     the loop thread.
// Invariants: answered once; what is answered is counted in the metrics.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/authentication.h"
#include "apiserver/negotiation.h"
#include "apiserver/request_info.h"
#include "base/status.h"
#include "base/task.h"
#include "json/value.h"
#include "net/http.h"
#include "schema/conversion.h"
#include "schema/kind.h"

namespace muster::apiserver {

inline constexpr size_t kMaxWarnings = 64;             // further ones are left out
inline constexpr size_t kMaxWarningBytes = 1024;       // a longer text is cut
inline constexpr size_t kMaxWarningsBytes = 4 * 1024;  // of all texts of one answer, as upstream

class Call {
 public:
  Call(net::Request request, RequestInfo info, net::ResponseWriterPtr writer,
       Function<void(int code)> on_answer);

  const net::Request& request() const { return request_; }
  const RequestInfo& info() const { return info_; }
  const User& user() const { return user_; }
  const net::ResponseWriterPtr& writer() const { return writer_; }

  // Becomes a `Warning: 299 - "text"` header of the answer. Equal texts are sent once.
  void Warn(std::string_view text);
  void Warn(const std::vector<std::string>& texts);

  void Fail(const Status& status);
  // Should `status` be what fails it, the answer has this code and reason ("": none).
  void AnswerExactly(const Status& status, int code, std::string reason);
  // `body` is JSON, of which YAML is made when the client asked for that; or protobuf, if that is
  // the encoding that was set.
  void Reply(int code, std::string body);
  // A caller in this process gets the tree itself, one that prefers it protobuf.
  void Reply(int code, const json::Value& value);
  void ReplyText(int code, std::string text);
  void Send(net::Response response);
  // Before StartStream or Upgrade: adds the warnings and counts the answer.
  net::Headers StreamHeaders(int code, std::string_view content_type);

  // The version that the client speaks, where it is converted to the one that is handled.
  void set_spoken(schema::KindPtr kind) { spoken_ = std::move(kind); }
  // `handled` in the client's version.
  const schema::KindPtr& Spoken(const schema::KindPtr& handled) const {
    return spoken_ != nullptr ? spoken_ : handled;
  }
  // Where the parts of the converted body came from: what is wrong is said of the client's fields.
  void set_moved(std::vector<schema::MovedField> moved) { moved_ = std::move(moved); }

  void set_user(User user) { user_ = std::move(user); }
  void set_encoding(Encoding encoding) { encoding_ = encoding; }

 private:
  // Of a Status, a Scale and the like.
  bool PrefersProtobuf() const;
  void ReplyAs(Encoding encoding, int code, std::string json);
  void ReplyProtobuf(int code, std::string bytes);
  void AddWarnings(net::Headers& headers);
  void Answered(int code);

  net::Request request_;
  RequestInfo info_;
  User user_;
  net::ResponseWriterPtr writer_;
  Function<void(int code)> on_answer_;
  schema::KindPtr spoken_;  // nullptr: the version that is handled
  std::vector<schema::MovedField> moved_;
  std::vector<std::string> warnings_;
  size_t warning_bytes_ = 0;
  Encoding encoding_ = Encoding::kJson;

  struct ExactAnswer {
    std::string message;
    int code;
    std::string reason;
  };
  std::vector<ExactAnswer> exact_;
};
using CallPtr = std::shared_ptr<Call>;

}  // namespace muster::apiserver
