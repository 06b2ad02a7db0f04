// src/apiserver/errors.h
//
// Errors in upstream's words (k8s.io/apimachinery pkg/api/errors), and their form on the wire:
// clients compare reasons, kubectl and many scripts print or match the messages. Invalid objects:
// schema::InvalidError.
//
// Thread: any.

#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "json/value.h"
#include "net/http.h"
#include "schema/kind.h"

namespace muster::apiserver {

Status NotFoundError(const schema::Kind& kind, std::string_view name);
Status AlreadyExistsError(const schema::Kind& kind, std::string_view name);
// `why` "" gives the usual text about a modified object.
Status ConflictError(const schema::Kind& kind, std::string_view name, std::string_view why = {});
Status ForbiddenError(const schema::Kind& kind, std::string_view name, std::string_view why);
// 404 for a URL that nothing serves.
Status NoSuchResourceError();
// The same of a subresource; of one that clients know from elsewhere, what to use instead.
Status UnservedSubresourceError(const schema::Kind& kind, std::string_view subresource);
Status TooManyRequestsError();
Status MethodNotAllowedError();
Status UnsupportedMediaTypeError();
Status NotAcceptableError(bool protobuf);
// resourceVersion in the future: 504 with cause ResourceVersionTooLarge.
Status ResourceVersionTooLargeError(int64_t requested, int64_t current);
Status InternalError(std::string_view why);

// Cause helpers, in the words of k8s.io/apimachinery pkg/util/validation/field.
StatusCause InvalidField(std::string_view field, const json::Value& value, std::string_view detail);
StatusCause RequiredField(std::string_view field, std::string_view detail = {});
StatusCause ForbiddenField(std::string_view field, std::string_view detail);

// The metav1.Status object of an error.
json::Value StatusObject(const Status& status);
// 422 about the parameters of a request: `options` is e.g. "ListOptions".
Status InvalidOptionsError(std::string_view options, std::vector<StatusCause> causes);

// {"status": "Success"} as DELETE answers it.
json::Value SuccessObject(const schema::Kind& kind, std::string_view name, std::string_view uid);
// The whole response, with Retry-After where the status has one.
net::Response ErrorResponse(const Status& status, bool protobuf);
// The same with `object` as what is said.
net::Response ErrorResponse(const Status& status, const json::Value& object, bool protobuf);

}  // namespace muster::apiserver
