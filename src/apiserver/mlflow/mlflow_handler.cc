#include "apiserver/mlflow/mlflow_handler.h"

#include <algorithm>
#include <array>

#include "apiserver/mlflow/argument_types.h"
#include "apiserver/mlflow/endpoints.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::apiserver {
namespace {

using json::Value;

struct ErrorCode {
  std::string_view name;
  int http;
};

ErrorCode CodeOf(Reason reason) {
  switch (reason) {
    case Reason::kNotFound:
      return {"RESOURCE_DOES_NOT_EXIST", 404};
    case Reason::kAlreadyExists:
      return {"RESOURCE_ALREADY_EXISTS", 400};
    case Reason::kInvalid:
    case Reason::kBadRequest:
    case Reason::kRequestEntityTooLarge:
      return {"INVALID_PARAMETER_VALUE", 400};
    case Reason::kUnauthorized:
      return {"UNAUTHENTICATED", 401};
    case Reason::kForbidden:
      return {"PERMISSION_DENIED", 403};
    case Reason::kConflict:
      return {"RESOURCE_CONFLICT", 409};
    case Reason::kTooManyRequests:
      return {"REQUEST_LIMIT_EXCEEDED", 429};
    case Reason::kServiceUnavailable:
    case Reason::kServerTimeout:
    case Reason::kTimeout:
      return {"TEMPORARILY_UNAVAILABLE", 503};
    default:
      return {"INTERNAL_ERROR", 500};
  }
}

// JSON whatever the client would rather have.
net::Response Json(int code, std::string body) {
  net::Response response;
  response.status = code;
  response.headers.Add("Content-Type", "application/json");
  response.body = std::move(body);
  return response;
}

net::Response Failure(const ErrorCode& code, std::string_view message) {
  return Json(code.http, json::Write(json::Obj({{"error_code", code.name}, {"message", message}})));
}

// Arguments that are lists, and come several times in a query.
constexpr std::array<std::string_view, 3> kLists = {"stages", "order_by", "experiment_ids"};

Result<Value> ArgumentsOf(const Call& call) {
  if (call.info().method == "GET") {
    Value out = json::Obj();
    for (const auto& [name, value] : call.info().query.list()) {
      const bool list = std::ranges::find(kLists, name) != kLists.end();
      out = std::move(out).Set(name, list ? out[name].Append(value) : Value(value));
    }
    return out;
  }
  // A page from elsewhere that a browser shows can send none of this type.
  const std::string_view type = call.request().headers.Get("Content-Type");
  if (!EqualsIgnoreCase(Trim(type.substr(0, type.find(';'))), "application/json"))
    return Error(Reason::kInvalid, "the body must be application/json, not {:?}", type);
  const std::string& body = call.request().body;
  if (body.size() > kMaxMlflowBody)
    return Error(Reason::kInvalid, "a request has at most {} bytes", kMaxMlflowBody);
  if (Trim(body).empty()) return json::Obj();
  Result<Value> parsed = json::Parse(body);
  if (!parsed) return Error(Reason::kInvalid, "the body is no JSON: {}", parsed.error().message());
  if (!parsed->IsObject()) return Error(Reason::kInvalid, "the body is no JSON object");
  return parsed;
}

// "registered-models/get" of /mlflow/NS/api/2.0/mlflow/registered-models/get.
std::string EndpointOf(const RequestInfo& info) {
  constexpr std::array<std::string_view, 3> kPrefix = {"api", "2.0", "mlflow"};
  if (info.parts.size() <= 2 + kPrefix.size()) return "";
  for (size_t i = 0; i < kPrefix.size(); ++i)
    if (info.parts[2 + i] != kPrefix[i]) return "";
  const std::vector<std::string> rest(info.parts.begin() + 2 + kPrefix.size(), info.parts.end());
  return Join(rest, "/");
}

const Endpoint* FindEndpoint(std::string_view method, std::string_view path) {
  for (const auto& endpoints :
       {ModelEndpoints(), VersionEndpoints(), RunEndpoints(), ExperimentEndpoints()}) {
    for (const Endpoint& endpoint : endpoints)
      if (endpoint.method == method && endpoint.path == path) return &endpoint;
  }
  return nullptr;
}

}  // namespace

bool IsMlflowPath(const RequestInfo& info) {
  return info.parts.size() >= 2 && info.parts[0] == "mlflow";
}

net::Response MlflowErrorResponse(const Status& status) {
  return Failure(CodeOf(status.reason()), status.message());
}

void HandleMlflow(Core& core, const CallPtr& call, SubmitInside submit,
                  const std::shared_ptr<ScanTurns>& scans) {
  const RequestInfo& info = call->info();
  const std::string path = EndpointOf(info);
  const Endpoint* endpoint = FindEndpoint(info.method, path);
  if (endpoint == nullptr) {
    return call->Send(Failure({"ENDPOINT_NOT_FOUND", 404},
                              fmt::format("{} {} is not served: docs/registry.md names what is",
                                          info.method, path.empty() ? info.path : path)));
  }
  Result<Value> arguments = ArgumentsOf(*call);
  if (!arguments) return call->Send(MlflowErrorResponse(arguments.error()));
  const Status readable = CheckArgumentTypes(path, *arguments);
  if (!readable.ok()) return call->Send(MlflowErrorResponse(readable));
  auto request = std::make_shared<MlflowRequest>();
  request->kinds =
      std::make_shared<KindsClient>(core, std::move(submit), scans, call->user(), info.parts[1]);
  request->arguments = *std::move(arguments);
  request->answer = [call](const Result<Value>& answer) {
    call->Send(answer ? Json(200, json::Write(*answer)) : MlflowErrorResponse(answer.error()));
  };
  request->answer_text = [call](Result<std::string> text) {
    call->Send(text ? Json(200, *std::move(text)) : MlflowErrorResponse(text.error()));
  };
  endpoint->run(request);
}

}  // namespace muster::apiserver
