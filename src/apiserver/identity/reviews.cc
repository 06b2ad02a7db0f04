// POST on the kinds that are questions: who am I, is this token good, may somebody do this.

#include <utility>

#include "apiserver/admission/admission.h"
#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/identity/rbac_authorizer.h"
#include "apiserver/identity/token_authenticator.h"
#include "apiserver/object_codec.h"
#include "schema/validation.h"

namespace muster::apiserver {
namespace {

json::Value UserInfo(const User& user) {
  json::Object info = {{"username", user.name}};
  if (!user.uid.empty()) info.emplace_back("uid", user.uid);
  if (!user.groups.empty()) info.emplace_back("groups", json::Strings(user.groups));
  json::Object extra;
  for (const auto& [key, values] : user.extra) extra.emplace_back(key, json::Strings(values));
  if (!extra.empty()) info.emplace_back("extra", json::Value(std::move(extra)));
  return json::Value(std::move(info));
}

Result<json::Value> WhoAmI(Core& core, const User& user) {
  return json::Obj({{"metadata", json::Obj({{"creationTimestamp", FormatTime(core.loop.Now())}})},
                    {"status", json::Obj({{"userInfo", UserInfo(user)}})}});
}

Result<json::Value> ReviewToken(Core& core, const json::Value& review) {
  const std::string_view token = review["spec"]["token"].AsString();
  if (token.empty()) {
    return Error(Reason::kBadRequest, "token is required for TokenReview in authentication");
  }
  const Result<VerifiedToken> verified = core.tokens.Authenticate(
      token, json::ToStrings(review["spec"]["audiences"]), core.loop.Now());
  if (!verified) {
    return review.Set("status",
                      json::Obj({{"user", json::Obj()}, {"error", verified.error().message()}}));
  }
  return review.Set("status", json::Obj({{"authenticated", true},
                                         {"user", UserInfo(verified->user)},
                                         {"audiences", json::Strings(verified->audiences)}}));
}

Status CheckAccessReview(const schema::Kind& kind, const json::Value& review, bool of_self,
                         std::string_view ns) {
  const json::Value& spec = review["spec"];
  const bool resource = spec["resourceAttributes"].IsObject();
  const bool path = spec["nonResourceAttributes"].IsObject();
  std::vector<StatusCause> causes;
  if (resource && path) {
    causes.push_back(InvalidField("spec.nonResourceAttributes", spec["nonResourceAttributes"],
                                  "cannot be specified in combination with resourceAttributes"));
  } else if (!resource && !path) {
    causes.push_back(InvalidField(
        "spec.resourceAttributes", spec["nonResourceAttributes"],
        "exactly one of nonResourceAttributes or resourceAttributes must be specified"));
  }
  if (!of_self && spec["user"].AsString().empty() && spec["groups"].empty()) {
    causes.push_back(InvalidField("spec.user", spec["user"].Str(),
                                  "at least one of user or group must be specified"));
  }
  if (kind.namespaced) {
    const json::Value& asked = spec["resourceAttributes"]["namespace"];
    if (asked.AsString() != ns) {
      causes.push_back(InvalidField("spec.resourceAttributes.namespace", asked.Str(),
                                    "must match metadata.namespace"));
    }
    if (path) {
      causes.push_back(InvalidField("spec.nonResourceAttributes", spec["nonResourceAttributes"],
                                    "disallowed on this kind of request"));
    }
  }
  if (causes.empty()) return Status::Ok();
  return schema::InvalidError(kind, "", std::move(causes));
}

// The request that the review is about.
RequestInfo AskedFor(const json::Value& spec) {
  RequestInfo info;
  const json::Value& resource = spec["resourceAttributes"];
  const json::Value& path = spec["nonResourceAttributes"];
  info.is_resource = resource.IsObject();
  info.verb = (info.is_resource ? resource : path)["verb"].Str();
  info.path = path["path"].Str();
  info.group = resource["group"].Str();
  info.version = resource["version"].Str();
  info.resource = resource["resource"].Str();
  info.subresource = resource["subresource"].Str();
  info.ns = resource["namespace"].Str();
  info.name = resource["name"].Str();
  return info;
}

User AskedOf(const json::Value& spec) {
  User user;
  user.name = spec["user"].Str();
  user.groups = json::ToStrings(spec["groups"]);
  user.uid = spec["uid"].Str();
  return user;
}

Result<json::Value> ReviewAccess(Core& core, const Call& call, const schema::Kind& kind,
                                 const json::Value& review) {
  const bool of_self = kind.kind == "SelfSubjectAccessReview";
  RETURN_IF_ERROR(CheckAccessReview(kind, review, of_self, call.info().ns));
  const json::Value& spec = review["spec"];
  const Decision decision =
      core.authorizer.Decide(of_self ? call.user() : AskedOf(spec), AskedFor(spec));
  json::Object status = {{"allowed", decision.allowed}};
  if (!decision.reason.empty()) status.emplace_back("reason", decision.reason);
  return review.Set("status", json::Value(std::move(status)));
}

json::Value ResourceRule(const PolicyRule& rule) {
  json::Object out = {{"verbs", json::Strings(rule.verbs)},
                      {"apiGroups", json::Strings(rule.groups)},
                      {"resources", json::Strings(rule.resources)}};
  if (!rule.names.empty()) out.emplace_back("resourceNames", json::Strings(rule.names));
  return json::Value(std::move(out));
}

Result<json::Value> ReviewRules(Core& core, const Call& call, const json::Value& review) {
  const std::string ns = review["spec"]["namespace"].Str();
  if (ns.empty()) return Error(Reason::kBadRequest, "no namespace on request");
  std::vector<PolicyRule> rules = core.authorizer.index().RulesOf(call.user(), ns);
  if (call.user().InGroup(kMastersGroup)) {
    rules.push_back({{"*"}, {"*"}, {"*"}, {}, {}});
    rules.push_back({{"*"}, {}, {}, {}, {"*"}});
  }
  json::Array resources, paths;
  for (const PolicyRule& rule : rules) {
    if (!rule.resources.empty()) resources.push_back(ResourceRule(rule));
    if (!rule.urls.empty()) {
      paths.push_back(json::Obj(
          {{"verbs", json::Strings(rule.verbs)}, {"nonResourceURLs", json::Strings(rule.urls)}}));
    }
  }
  return review.Set("status", json::Obj({{"resourceRules", json::Value(std::move(resources))},
                                         {"nonResourceRules", json::Value(std::move(paths))},
                                         {"incomplete", false}}));
}

Result<json::Value> Answer(Core& core, const CallPtr& call, const schema::Kind& kind,
                           const json::Value& review) {
  if (kind.kind == "SelfSubjectReview") return WhoAmI(core, call->user());
  if (kind.kind == "TokenReview") return ReviewToken(core, review);
  if (kind.kind == "SelfSubjectRulesReview") return ReviewRules(core, *call, review);
  return ReviewAccess(core, *call, kind, review);
}

json::Value Typed(const schema::Kind& kind, const json::Value& review) {
  return review.Set("kind", kind.kind).Set("apiVersion", kind.GroupVersion());
}

}  // namespace

void HandleReview(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  const schema::Kind& kind = *resource->kind;
  const RequestInfo& info = call->info();
  if (info.verb != "create" || !info.name.empty() || kind.namespaced == info.ns.empty())
    return call->Fail(MethodNotAllowedError());
  const Result<json::Value> review = DecodeObject(*call, kind);
  if (!review) return call->Fail(review.error());
  AdmitUnstored(core, call, resource, Operation::kCreate, false, Typed(kind, *review),
                [&core, call, resource](const json::Value& admitted) -> Status {
                  const schema::Kind& asked = *resource->kind;
                  ASSIGN_OR_RETURN(const json::Value answer, Answer(core, call, asked, admitted));
                  call->Reply(201, Typed(asked, answer));
                  return Status::Ok();
                });
}

}  // namespace muster::apiserver
