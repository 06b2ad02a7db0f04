#include "apiserver/errors.h"

#include <array>

#include "json/write.h"
#include "schema/protobuf_codec.h"
#include "schema/validation.h"

namespace muster::apiserver {
namespace {

StatusDetails DetailsOf(const schema::Kind& kind, std::string_view name) {
  StatusDetails details;
  details.name = std::string(name);
  details.group = kind.group;
  details.kind = kind.plural;
  return details;
}

Status Make(Reason reason, std::string message, StatusDetails details) {
  return Status(reason, std::move(message), std::move(details));
}

}  // namespace

Status NotFoundError(const schema::Kind& kind, std::string_view name) {
  return Make(Reason::kNotFound, fmt::format("{} \"{}\" not found", kind.QualifiedResource(), name),
              DetailsOf(kind, name));
}

Status AlreadyExistsError(const schema::Kind& kind, std::string_view name) {
  return Make(Reason::kAlreadyExists,
              fmt::format("{} \"{}\" already exists", kind.QualifiedResource(), name),
              DetailsOf(kind, name));
}

Status ConflictError(const schema::Kind& kind, std::string_view name, std::string_view why) {
  if (why.empty()) {
    why =
        "the object has been modified; please apply your changes to the latest version and try "
        "again";
  }
  return Make(Reason::kConflict,
              fmt::format("Operation cannot be fulfilled on {} \"{}\": {}",
                          kind.QualifiedResource(), name, why),
              DetailsOf(kind, name));
}

Status ForbiddenError(const schema::Kind& kind, std::string_view name, std::string_view why) {
  const std::string subject = name.empty()
                                  ? kind.QualifiedResource()
                                  : fmt::format("{} \"{}\"", kind.QualifiedResource(), name);
  return Make(Reason::kForbidden, fmt::format("{} is forbidden: {}", subject, why),
              DetailsOf(kind, name));
}

Status InvalidOptionsError(std::string_view options, std::vector<StatusCause> causes) {
  schema::Kind kind;
  kind.group = "meta.k8s.io";
  kind.kind = options;
  return schema::InvalidError(kind, "", std::move(causes));
}

Status NoSuchResourceError() {
  return Status(Reason::kNotFound, "the server could not find the requested resource");
}

Status UnservedSubresourceError(const schema::Kind& kind, std::string_view subresource) {
  struct Instead {
    std::string_view subresource, words;
  };
  // `kubectl port-forward`, `attach` (and `run -i`), `debug` and `proxy` show these words.
  static constexpr std::array<Instead, 4> kOfPods = {
      {{"portforward",
        "port-forward is not served yet: reach the pod at its address (kubectl get pod -o wide) or "
        "through a Service; from another machine through a Service of type NodePort"},
       {"attach",
        "attach is not served yet: kubectl logs -f shows what the container writes, kubectl exec "
        "-it starts a shell in it"},
       {"ephemeralcontainers",
        "ephemeral containers (kubectl debug) are not served yet: kubectl exec -it starts a shell "
        "in a container of the pod"},
       {"proxy",
        "the proxy to pods is not served yet: reach the pod at its address (kubectl get pod -o "
        "wide) or through a Service"}}};
  if (kind.group.empty() && kind.plural == "pods") {
    for (const Instead& instead : kOfPods) {
      if (instead.subresource == subresource)
        return Status(Reason::kMethodNotAllowed, std::string(instead.words));
    }
  }
  return NoSuchResourceError();
}

Status TooManyRequestsError() {
  return Status(Reason::kTooManyRequests, "too many requests, please try again later");
}

Status MethodNotAllowedError() {
  return Status(Reason::kMethodNotAllowed,
                "the server does not allow this method on the requested resource");
}

Status UnsupportedMediaTypeError() {
  return Status(Reason::kUnsupportedMediaType,
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json, "
                "application/yaml, application/vnd.kubernetes.protobuf");
}

Status NotAcceptableError(bool protobuf) {
  return Status(
      Reason::kNotAcceptable,
      fmt::format(
          "only the following media types are accepted: application/json, application/yaml{}",
          protobuf ? ", application/vnd.kubernetes.protobuf" : ""));
}

Status ResourceVersionTooLargeError(int64_t requested, int64_t current) {
  StatusDetails details;
  details.causes.push_back({"ResourceVersionTooLarge", "", "Too large resource version"});
  details.retry_after_seconds = 1;
  return Make(Reason::kTimeout,
              fmt::format("Too large resource version: {}, current: {}", requested, current),
              std::move(details));
}

Status InternalError(std::string_view why) {
  StatusDetails details;
  details.causes.push_back({"", "", std::string(why)});
  return Make(Reason::kInternalError, fmt::format("Internal error occurred: {}", why),
              std::move(details));
}

StatusCause InvalidField(std::string_view field, const json::Value& value,
                         std::string_view detail) {
  return {
      "FieldValueInvalid", std::string(field),
      fmt::format("Invalid value: {}{}{}", json::Write(value), detail.empty() ? "" : ": ", detail)};
}

StatusCause RequiredField(std::string_view field, std::string_view detail) {
  return {"FieldValueRequired", std::string(field),
          fmt::format("Required value{}{}", detail.empty() ? "" : ": ", detail)};
}

StatusCause ForbiddenField(std::string_view field, std::string_view detail) {
  return {"FieldValueForbidden", std::string(field), fmt::format("Forbidden: {}", detail)};
}

json::Value StatusObject(const Status& status) {
  json::Object object = {{"kind", "Status"},
                         {"apiVersion", "v1"},
                         {"metadata", json::Obj()},
                         {"status", "Failure"},
                         {"message", status.message()}};
  if (const std::string_view reason = ReasonName(status.reason()); !reason.empty()) {
    object.emplace_back("reason", reason);
  }
  const StatusDetails& from = status.details();
  json::Object details;
  if (!from.name.empty()) details.emplace_back("name", from.name);
  if (!from.group.empty()) details.emplace_back("group", from.group);
  if (!from.kind.empty()) details.emplace_back("kind", from.kind);
  if (!from.uid.empty()) details.emplace_back("uid", from.uid);
  if (!from.causes.empty()) {
    json::Array causes;
    for (const StatusCause& cause : from.causes) {
      json::Object one;
      if (!cause.reason.empty()) one.emplace_back("reason", cause.reason);
      one.emplace_back("message", cause.message);
      if (!cause.field.empty()) one.emplace_back("field", cause.field);
      causes.emplace_back(std::move(one));
    }
    details.emplace_back("causes", std::move(causes));
  }
  if (from.retry_after_seconds > 0)
    details.emplace_back("retryAfterSeconds", from.retry_after_seconds);
  // Even if there are none: kubectl reads the details of a 404 without looking whether they exist.
  object.emplace_back("details", std::move(details));
  object.emplace_back("code", status.code());
  return json::Value(std::move(object));
}

json::Value SuccessObject(const schema::Kind& kind, std::string_view name, std::string_view uid) {
  json::Object details = {{"name", name}};
  if (!kind.group.empty()) details.emplace_back("group", kind.group);
  details.emplace_back("kind", kind.plural);
  if (!uid.empty()) details.emplace_back("uid", uid);
  return json::Obj({{"kind", "Status"},
                    {"apiVersion", "v1"},
                    {"metadata", json::Obj()},
                    {"status", "Success"},
                    {"details", json::Value(std::move(details))}});
}

net::Response ErrorResponse(const Status& status, bool protobuf) {
  return ErrorResponse(status, StatusObject(status), protobuf);
}

net::Response ErrorResponse(const Status& status, const json::Value& object, bool protobuf) {
  net::Response response;
  response.status = status.code();
  int retry = status.details().retry_after_seconds;
  // Without this header clients give up where they should only slow down. A disruption budget that
  // has nothing to give says so by a cause, and nobody knows when that ends.
  if (retry == 0 && status.reason() == Reason::kTooManyRequests && status.details().causes.empty())
    retry = 1;
  if (retry > 0) response.headers.Add("Retry-After", std::to_string(retry));
  Result<std::string> bytes;
  if (protobuf && (bytes = schema::EncodeProtobuf(object))) {
    response.headers.Add("Content-Type", std::string(schema::kProtobufMediaType));
    response.body = *std::move(bytes);
  } else {
    response.headers.Add("Content-Type", "application/json");
    response.body = json::Write(object) + "\n";
  }
  return response;
}

}  // namespace muster::apiserver
