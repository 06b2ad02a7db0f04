// POST on serviceaccounts/NAME/token: makes a token. Nothing is stored.

#include <algorithm>
#include <utility>

#include "apiserver/admission/admission.h"
#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/identity/token_authenticator.h"
#include "apiserver/object_codec.h"
#include "apiserver/object_writer.h"
#include "schema/registry.h"
#include "schema/validation.h"

namespace muster::apiserver {
namespace {

constexpr int64_t kDefaultTokenSeconds = 3600;
constexpr int64_t kMinTokenSeconds = 600;
constexpr int64_t kMaxTokenSeconds = int64_t{1} << 32;
// Upstream's kubelet asks for this lifetime on behalf of pods. Clients that read their token only
// once would fail after an hour, so such a token holds for a year, and says from when on its user
// should have had a newer one.
constexpr int64_t kWarnOnlySeconds = 3607;
constexpr int64_t kExtendedSeconds = int64_t{365} * 24 * 3600;

const schema::Kind& TokenRequestKind() {
  static const schema::Kind kKind = UnservedKind("authentication.k8s.io", "v1", "TokenRequest");
  return kKind;
}

std::vector<StatusCause> CheckSpec(const json::Value& spec) {
  const int64_t lifetime = spec["expirationSeconds"].AsInt();
  std::vector<StatusCause> causes;
  if (lifetime < kMinTokenSeconds) {
    causes.push_back(InvalidField("spec.expirationSeconds", lifetime,
                                  "may not specify a duration less than 10 minutes"));
  }
  if (lifetime > kMaxTokenSeconds) {
    causes.push_back(InvalidField("spec.expirationSeconds", lifetime,
                                  "may not specify a duration larger than 2^32 seconds"));
  }
  return causes;
}

ObjectName NameOf(const json::Value& object) {
  return {object["metadata"]["name"].Str(), object["metadata"]["uid"].Str()};
}

Result<ObjectName> FindCore(Core& core, std::string_view plural, std::string_view ns,
                            std::string_view name) {
  const schema::KindPtr kind = schema::Registry::BuiltIn().Find("", "v1", plural);
  ASSIGN_OR_RETURN(const Found found, FindObject(core, *kind, ns, name));
  return NameOf(found.object);
}

// Fills `claims` with the pod, and with its node where it has one.
Status BindToPod(Core& core, std::string_view name, TokenClaims& claims) {
  const schema::KindPtr kind = schema::Registry::BuiltIn().Find("", "v1", "pods");
  ASSIGN_OR_RETURN(const Found pod, FindObject(core, *kind, claims.ns, name));
  if (pod.object["spec"]["serviceAccountName"].AsString() != claims.account.name) {
    return Error(Reason::kBadRequest,
                 "cannot bind token for serviceaccount {:?} to pod running with different "
                 "serviceaccount name.",
                 claims.account.name);
  }
  claims.pod = NameOf(pod.object);
  const std::string node = pod.object["spec"]["nodeName"].Str();
  if (node.empty()) return Status::Ok();
  const Result<ObjectName> found = FindCore(core, "nodes", "", node);
  claims.node = found ? *found : ObjectName{node, ""};
  return Status::Ok();
}

Status Bind(Core& core, const json::Value& reference, TokenClaims& claims) {
  if (!reference.IsObject()) return Status::Ok();
  const std::string_view version = reference["apiVersion"].AsString("v1");
  const std::string_view kind = reference["kind"].AsString();
  const std::string name = reference["name"].Str();
  std::string uid;
  if (version == "v1" && kind == "Pod") {
    RETURN_IF_ERROR(BindToPod(core, name, claims));
    uid = claims.pod.uid;
  } else if (version == "v1" && kind == "Secret") {
    ASSIGN_OR_RETURN(claims.secret, FindCore(core, "secrets", claims.ns, name));
    uid = claims.secret.uid;
  } else if (version == "v1" && kind == "Node") {
    ASSIGN_OR_RETURN(claims.node, FindCore(core, "nodes", "", name));
    uid = claims.node.uid;
  } else {
    return Error(Reason::kBadRequest, "cannot bind token to object of type {}, Kind={}", version,
                 kind);
  }
  const std::string wanted = reference["uid"].Str();
  if (wanted.empty() || wanted == uid) return Status::Ok();
  return Error(Reason::kConflict,
               "Operation cannot be fulfilled on {} \"{}\": the UID in the bound object reference "
               "({}) does not match the UID in record. The object might have been deleted and then "
               "recreated",
               kind, name, wanted);
}

// The audiences, and how long the token holds.
void SetScope(const json::Value& spec, Time now, TokenClaims& claims) {
  const std::string own(kTokenIssuer);
  claims.audiences = json::ToStrings(spec["audiences"]);
  if (claims.audiences.empty()) claims.audiences = {own};
  const int64_t lifetime = spec["expirationSeconds"].AsInt();
  claims.issued = std::chrono::floor<seconds>(now.time_since_epoch()).count();
  claims.not_before = claims.issued;
  claims.expires = claims.issued + lifetime;
  const bool ours = std::ranges::find(claims.audiences, own) != claims.audiences.end();
  if (lifetime != kWarnOnlySeconds || claims.pod.name.empty() || !ours) return;
  claims.warn_after = claims.expires;
  claims.expires = claims.issued + kExtendedSeconds;
}

Status MakeAdmittedToken(Core& core, const CallPtr& call, const ResourcePtr& accounts,
                         json::Value request) {
  const RequestInfo& info = call->info();
  const schema::Kind& kind = TokenRequestKind();
  ASSIGN_OR_RETURN(const Found account, FindObject(core, *accounts->kind, info.ns, info.name));
  if (!request["spec"]["expirationSeconds"].Int())
    request = std::move(request).SetPath({"spec", "expirationSeconds"}, kDefaultTokenSeconds);
  if (std::vector<StatusCause> causes = CheckSpec(request["spec"]); !causes.empty())
    return schema::InvalidError(kind, "", std::move(causes));

  TokenClaims claims;
  claims.issuer = kTokenIssuer;
  claims.subject = ServiceAccountUser(info.ns, info.name);
  claims.id = core.rng.Uuid();
  claims.ns = info.ns;
  claims.account = NameOf(account.object);
  RETURN_IF_ERROR(Bind(core, request["spec"]["boundObjectRef"], claims));
  const Time now = core.loop.Now();
  SetScope(request["spec"], now, claims);
  const int64_t shown = claims.warn_after != 0 ? claims.warn_after : claims.expires;
  call->Reply(
      201, json::Obj({{"kind", kind.kind},
                      {"apiVersion", kind.GroupVersion()},
                      {"metadata", json::Obj({{"name", info.name},
                                              {"namespace", info.ns},
                                              {"creationTimestamp", FormatTime(now)}})},
                      {"spec", request["spec"].Set("audiences", json::Strings(claims.audiences))},
                      {"status",
                       json::Obj({{"token", MakeToken(core.tokens.key(), claims)},
                                  {"expirationTimestamp", FormatTime(Time{seconds(shown)})}})}}));
  return Status::Ok();
}

Status CreateToken(Core& core, const CallPtr& call, const ResourcePtr& accounts) {
  const RequestInfo& info = call->info();
  if (info.verb != "create") return MethodNotAllowedError();
  const schema::Kind& kind = TokenRequestKind();
  ASSIGN_OR_RETURN(const json::Value request, DecodeObject(*call, kind));
  const json::Value& metadata = request["metadata"];
  for (const auto& [field, wanted] :
       {std::pair("name", &info.name), std::pair("namespace", &info.ns)}) {
    const std::string_view sent = metadata[field].AsString();
    if (!sent.empty() && sent != *wanted)
      return Error(Reason::kBadRequest, "metadata.{} does not match that of the URL", field);
  }
  AdmitUnstored(core, call, accounts, Operation::kCreate, false,
                request.Set("kind", kind.kind).Set("apiVersion", kind.GroupVersion()),
                [&core, call, accounts](const json::Value& admitted) {
                  return MakeAdmittedToken(core, call, accounts, admitted);
                });
  return Status::Ok();
}

}  // namespace

void HandleTokenRequest(Core& core, const CallPtr& call, const ResourcePtr& accounts) {
  if (Status status = CreateToken(core, call, accounts); !status.ok()) call->Fail(status);
}

}  // namespace muster::apiserver
