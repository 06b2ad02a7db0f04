#include "base/status.h"

#include <array>

#include "base/check.h"

namespace muster {
namespace {

struct ReasonRow {
  Reason reason;
  std::string_view name;
  int code;
};

// k8s.io/apimachinery meta/v1 StatusReason constants and the codes that the API server answers with
// them.
constexpr std::array<ReasonRow, 19> kReasons = {{
    {Reason::kUnknown, "", 500},
    {Reason::kUnauthorized, "Unauthorized", 401},
    {Reason::kForbidden, "Forbidden", 403},
    {Reason::kNotFound, "NotFound", 404},
    {Reason::kAlreadyExists, "AlreadyExists", 409},
    {Reason::kConflict, "Conflict", 409},
    {Reason::kGone, "Gone", 410},
    {Reason::kInvalid, "Invalid", 422},
    {Reason::kServerTimeout, "ServerTimeout", 500},
    {Reason::kTimeout, "Timeout", 504},
    {Reason::kTooManyRequests, "TooManyRequests", 429},
    {Reason::kBadRequest, "BadRequest", 400},
    {Reason::kMethodNotAllowed, "MethodNotAllowed", 405},
    {Reason::kNotAcceptable, "NotAcceptable", 406},
    {Reason::kRequestEntityTooLarge, "RequestEntityTooLarge", 413},
    {Reason::kUnsupportedMediaType, "UnsupportedMediaType", 415},
    {Reason::kInternalError, "InternalError", 500},
    {Reason::kExpired, "Expired", 410},
    {Reason::kServiceUnavailable, "ServiceUnavailable", 503},
}};

const std::string kEmptyMessage;

}  // namespace

int HttpCode(Reason reason) { return kReasons[static_cast<size_t>(reason)].code; }

std::string_view ReasonName(Reason reason) { return kReasons[static_cast<size_t>(reason)].name; }

Reason ReasonFromName(std::string_view name, int http_code) {
  for (const ReasonRow& row : kReasons) {
    if (!name.empty() && row.name == name) return row.reason;
  }
  // Of two reasons with one code it is the one that says less.
  for (const ReasonRow& row : kReasons) {
    const bool special = row.reason == Reason::kUnknown || row.reason == Reason::kServerTimeout ||
                         row.reason == Reason::kAlreadyExists;
    if (row.code == http_code && !special) return row.reason;
  }
  return Reason::kUnknown;
}

Status::Status(Reason reason, std::string message, StatusDetails details)
    : rep_(std::make_shared<Rep>(Rep{reason, std::move(message), std::move(details)})) {}

Reason Status::reason() const {
  CHECK(rep_ != nullptr);
  return rep_->reason;
}

int Status::code() const { return rep_ == nullptr ? 200 : HttpCode(rep_->reason); }

const std::string& Status::message() const {
  return rep_ == nullptr ? kEmptyMessage : rep_->message;
}

const StatusDetails& Status::details() const {
  CHECK(rep_ != nullptr);
  return rep_->details;
}

std::string Status::ToString() const {
  if (ok()) return "OK";
  return fmt::format("{}: {}", ReasonName(reason()), message());
}

Status Status::WithPrefix(std::string_view prefix) const {
  if (ok()) return *this;
  return Status(reason(), fmt::format("{}{}", prefix, message()), details());
}

Status Status::WithDetails(StatusDetails details) const {
  CHECK(!ok());
  return Status(reason(), message(), std::move(details));
}

}  // namespace muster
