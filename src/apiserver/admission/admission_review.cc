#include "apiserver/admission/admission_review.h"

#include "base/strings.h"
#include "json/parse.h"
#include "schema/conversion.h"

namespace muster::apiserver {
namespace {

constexpr int kDefaultDenialCode = 400;  // of a denial that gives none, as upstream

json::Value KindObject(std::string_view group, std::string_view version, std::string_view kind) {
  return json::Obj({{"group", group}, {"version", version}, {"kind", kind}});
}

json::Value ResourceObject(const schema::Kind& kind) {
  return json::Obj({{"group", kind.group}, {"version", kind.version}, {"resource", kind.plural}});
}

// What the objects of the request are, in version `seen` of the resource.
json::Value ObjectKind(const AdmissionRequest& request, const schema::Kind& seen) {
  if (!request.own_object) return KindObject(seen.group, seen.version, seen.kind);
  const std::string_view version = request.object["apiVersion"].AsString();
  const size_t slash = version.find('/');
  const bool core = slash == std::string_view::npos;
  return KindObject(core ? "" : version.substr(0, slash),
                    core ? version : version.substr(slash + 1), request.object["kind"].AsString());
}

json::Value UserObject(const User& user) {
  json::Object object = {{"username", user.name}};
  if (!user.uid.empty()) object.emplace_back("uid", user.uid);
  if (!user.groups.empty()) object.emplace_back("groups", json::Strings(user.groups));
  if (!user.extra.empty()) {
    json::Object extra;
    for (const auto& [key, values] : user.extra) extra.emplace_back(key, json::Strings(values));
    object.emplace_back("extra", std::move(extra));
  }
  return json::Value(std::move(object));
}

Result<json::Value> ReadPatch(const json::Value& response, bool strict, bool mutating) {
  const json::Value& patch = response["patch"];
  const json::Value& type = response["patchType"];
  const bool has_patch = !patch.AsString().empty();
  if (!mutating) {
    if (strict && has_patch)
      return Error(Reason::kUnknown, "validating webhook may not return response.patch");
    if (strict && !type.IsNull())
      return Error(Reason::kUnknown, "validating webhook may not return response.patchType");
    return nullptr;
  }
  if (strict && has_patch && type.IsNull())
    return Error(Reason::kUnknown, "webhook returned response.patch but not response.patchType");
  if (strict && !has_patch && !type.IsNull())
    return Error(Reason::kUnknown, "webhook returned response.patchType but not response.patch");
  if (!type.IsNull() && type.AsString() != "JSONPatch") {
    return Error(Reason::kUnknown, "webhook returned invalid response.patchType of {:?}",
                 type.AsString());
  }
  if (!has_patch) return nullptr;
  const std::optional<std::string> text = Base64Decode(patch.AsString());
  Result<json::Value> parsed =
      text ? json::Parse(*text) : Error(Reason::kBadRequest, "it is not base64");
  if (parsed && parsed->IsNull()) return nullptr;  // what Go makes of an empty list
  if (parsed && !parsed->IsArray()) parsed = Error(Reason::kBadRequest, "it is not a list");
  if (!parsed) {
    return Error(Reason::kUnknown, "received undecodable patch in webhook response: {}",
                 parsed.error().message());
  }
  return parsed;
}

StatusDetails DetailsOf(const json::Value& from) {
  StatusDetails details;
  details.name = from["name"].Str();
  details.group = from["group"].Str();
  details.kind = from["kind"].Str();
  details.uid = from["uid"].Str();
  details.retry_after_seconds = static_cast<int>(from["retryAfterSeconds"].AsInt());
  for (const json::Value& cause : from["causes"].items())
    details.causes.push_back({cause["reason"].Str(), cause["field"].Str(), cause["message"].Str()});
  return details;
}

}  // namespace

json::Value AsSeen(const schema::Kind& kind, const json::Value& object) {
  if (object.IsNull()) return nullptr;
  return schema::FromStored(kind, object)
      .Set("kind", kind.kind)
      .Set("apiVersion", kind.GroupVersion());
}

json::Value MakeReview(const AdmissionRequest& request, const schema::Kind& seen,
                       std::string_view review_version, std::string_view uid) {
  const auto shown = [&](const json::Value& object) {
    return request.own_object ? object : AsSeen(seen, object);
  };
  json::Object fields = {
      {"uid", uid}, {"kind", ObjectKind(request, seen)}, {"resource", ResourceObject(seen)}};
  if (!request.subresource.empty()) fields.emplace_back("subResource", request.subresource);
  fields.emplace_back("requestKind", ObjectKind(request, *request.kind));
  fields.emplace_back("requestResource", ResourceObject(*request.kind));
  if (!request.subresource.empty()) fields.emplace_back("requestSubResource", request.subresource);
  if (!request.name.empty()) fields.emplace_back("name", request.name);
  if (!request.ns.empty()) fields.emplace_back("namespace", request.ns);
  fields.emplace_back("operation", OperationName(request.operation));
  fields.emplace_back("userInfo", UserObject(request.call->user()));
  fields.emplace_back("object", shown(request.object));
  fields.emplace_back("oldObject", shown(request.old_object));
  fields.emplace_back("dryRun", request.dry_run);
  fields.emplace_back("options", request.options);
  return json::Obj({{"kind", "AdmissionReview"},
                    {"apiVersion", fmt::format("admission.k8s.io/{}", review_version)},
                    {"request", json::Value(std::move(fields))}});
}

Result<ReviewAnswer> ReadReview(std::string_view body, std::string_view review_version,
                                std::string_view uid, bool mutating) {
  Result<json::Value> review = json::Parse(std::string(body));
  if (!review) return Error(Reason::kUnknown, "{}", review.error().message());
  const json::Value& response = (*review)["response"];
  const bool strict = review_version == "v1";  // v1beta1 let these pass
  if (!response.IsObject()) return Error(Reason::kUnknown, "webhook response was absent");
  if (strict && response["uid"].AsString() != uid) {
    return Error(Reason::kUnknown, "expected response.uid={:?}, got {:?}", uid,
                 response["uid"].AsString());
  }
  const std::string_view version = (*review)["apiVersion"].AsString();
  const std::string_view kind = (*review)["kind"].AsString();
  if (strict && (version != "admission.k8s.io/v1" || kind != "AdmissionReview")) {
    return Error(Reason::kUnknown,
                 "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {}, "
                 "Kind={}",
                 version, kind);
  }
  ReviewAnswer answer;
  answer.allowed = response["allowed"].AsBool();
  ASSIGN_OR_RETURN(answer.patch, ReadPatch(response, strict, mutating));
  answer.result = response["status"];
  answer.warnings = json::ToStrings(response["warnings"]);
  return answer;
}

Denial MakeDenial(std::string_view webhook, const json::Value& result) {
  std::string_view why = result["message"].AsString();
  if (why.empty()) why = result["reason"].AsString();
  std::string message = fmt::format("admission webhook \"{}\" denied the request", webhook);
  message += why.empty() ? " without explanation" : fmt::format(": {}", why);
  Denial denial;
  const int64_t code = result["code"].AsInt();
  denial.code = code < 400 || code > 599 ? kDefaultDenialCode : static_cast<int>(code);
  denial.reason = result["reason"].Str();
  denial.status = Status(ReasonFromName(denial.reason, denial.code), std::move(message),
                         DetailsOf(result["details"]));
  return denial;
}

}  // namespace muster::apiserver
