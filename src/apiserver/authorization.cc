#include "apiserver/authorization.h"

#include <algorithm>
#include <array>
#include <optional>

#include "schema/field_selector.h"
#include "schema/names.h"

namespace muster::apiserver {

bool IsPublic(const RequestInfo& info) {
  if (info.is_resource || info.verb != "get" || info.parts.empty()) return false;
  constexpr std::array<std::string_view, 4> kPublic = {"healthz", "livez", "readyz", "version"};
  return std::find(kPublic.begin(), kPublic.end(), info.parts[0]) != kPublic.end();
}

Status AuthorizationError(const User& user, const RequestInfo& info, std::string_view reason) {
  const std::string why = reason.empty() ? "" : fmt::format(": {}", reason);
  if (!info.is_resource) {
    return Error(Reason::kForbidden, "forbidden: User \"{}\" cannot {} path \"{}\"{}", user.name,
                 info.verb, info.path, why);
  }
  StatusDetails details;
  details.name = info.name;
  details.group = info.group;
  details.kind = info.resource;
  const std::string qualified =
      info.group.empty() ? info.resource : info.resource + "." + info.group;
  const std::string subject =
      info.name.empty() ? qualified : fmt::format("{} \"{}\"", qualified, info.name);
  const std::string resource = info.subresource.empty()
                                   ? info.resource
                                   : fmt::format("{}/{}", info.resource, info.subresource);
  const std::string scope =
      info.ns.empty() ? "at the cluster scope" : fmt::format("in the namespace \"{}\"", info.ns);
  return Status(
      Reason::kForbidden,
      fmt::format("{} is forbidden: User \"{}\" cannot {} resource \"{}\" in API group \"{}\" {}{}",
                  subject, user.name, info.verb, resource, info.group, scope, why),
      std::move(details));
}

std::optional<std::string> SelectedName(const RequestInfo& info) {
  if (!info.name.empty() || (info.verb != "list" && info.verb != "watch")) return std::nullopt;
  const std::string_view text = info.query.Get("fieldSelector");
  if (text.empty()) return std::nullopt;
  const Result<schema::FieldSelector> selector = schema::FieldSelector::Parse(text);
  if (!selector) return std::nullopt;
  for (const schema::FieldTerm& term : selector->terms()) {
    if (term.field != "metadata.name" || term.negated) continue;
    schema::Problems problems;
    schema::CheckPathSegment(term.value, problems);
    if (term.value.empty() || !problems.empty()) return std::nullopt;
    return term.value;
  }
  return std::nullopt;
}

Status Authorizer::Authorize(const User& user, const RequestInfo& info) const {
  if (std::optional<std::string> name = SelectedName(info)) {
    RequestInfo named = info;
    named.name = *std::move(name);
    return Authorize(user, named);
  }
  const Decision decision = Decide(user, info);
  return decision.allowed ? Status::Ok() : AuthorizationError(user, info, decision.reason);
}

}  // namespace muster::apiserver
