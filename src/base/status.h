// src/base/status.h
//
// Status: what went wrong, in the vocabulary of Kubernetes' metav1.Status, so that an error made in
// the deepest folder reaches the client unchanged. Result<T> is a value or a Status.
//
// Life cycle: values; OK is one null pointer, a copy of an error shares its text.
// Thread:     any.
// Rule:       a message names the object, the field, what was expected, and what to do.

#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace muster {

// metav1.StatusReason. The HTTP code of each is HttpCode().
enum class Reason : uint8_t {
  kUnknown,
  kUnauthorized,
  kForbidden,
  kNotFound,
  kAlreadyExists,
  kConflict,
  kGone,
  kInvalid,
  kServerTimeout,
  kTimeout,
  kTooManyRequests,
  kBadRequest,
  kMethodNotAllowed,
  kNotAcceptable,
  kRequestEntityTooLarge,
  kUnsupportedMediaType,
  kInternalError,
  kExpired,
  kServiceUnavailable,
};

int HttpCode(Reason reason);
std::string_view ReasonName(Reason reason);  // "NotFound"; "" for kUnknown
Reason ReasonFromName(std::string_view name, int http_code);

// One entry of details.causes, e.g. {"FieldValueRequired", "spec.containers", "Required value"}.
struct StatusCause {
  std::string reason;
  std::string field;
  std::string message;
  bool operator==(const StatusCause&) const = default;
};

struct StatusDetails {
  std::string name;
  std::string group;
  std::string kind;
  std::string uid;
  std::vector<StatusCause> causes;
  int retry_after_seconds = 0;
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Reason reason, std::string message, StatusDetails details = {});

  static Status Ok() { return Status(); }

  bool ok() const { return rep_ == nullptr; }
  // REQUIRES for all below: !ok(), except message() and code(), which are "" and 200 when ok.
  Reason reason() const;
  int code() const;
  const std::string& message() const;
  const StatusDetails& details() const;
  std::string ToString() const;  // "NotFound: pods \"x\" not found", for logs

  // A copy whose message starts with `prefix`: context on the way up.
  Status WithPrefix(std::string_view prefix) const;
  Status WithDetails(StatusDetails details) const;

 private:
  struct Rep {
    Reason reason;
    std::string message;
    StatusDetails details;
  };
  std::shared_ptr<const Rep> rep_;
};

template <class T>
using Result = std::expected<T, Status>;

// return Error(Reason::kNotFound, "pods {:?} not found", name);   converts to any Result<T> and to
// Status
struct [[nodiscard]] ErrorStatus {
  Status status;
  template <class T>
  operator std::expected<T, Status>() && {  // NOLINT: the conversion is the point
    return std::unexpected<Status>(std::move(status));
  }
  operator Status() && { return std::move(status); }  // NOLINT
};

template <class... Args>
ErrorStatus Error(Reason reason, fmt::format_string<Args...> format, Args&&... args) {
  return {Status(reason, fmt::format(format, std::forward<Args>(args)...))};
}
inline ErrorStatus Error(Status status) { return {std::move(status)}; }

}  // namespace muster

#define MUSTER_CONCAT_INNER(a, b) a##b
#define MUSTER_CONCAT(a, b) MUSTER_CONCAT_INNER(a, b)

// RETURN_IF_ERROR(status_expression);
#define RETURN_IF_ERROR(expression)                                         \
  do {                                                                      \
    if (::muster::Status muster_status = (expression); !muster_status.ok()) \
      return ::muster::Error(std::move(muster_status));                     \
  } while (0)

// ASSIGN_OR_RETURN(auto value, ResultReturningCall());
#define ASSIGN_OR_RETURN(declaration, expression)                                       \
  auto MUSTER_CONCAT(muster_result_, __LINE__) = (expression);                          \
  if (!MUSTER_CONCAT(muster_result_, __LINE__).has_value())                             \
    return ::muster::Error(std::move(MUSTER_CONCAT(muster_result_, __LINE__)).error()); \
  declaration = std::move(*MUSTER_CONCAT(muster_result_, __LINE__))
