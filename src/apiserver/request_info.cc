#include "apiserver/request_info.h"

#include "base/strings.h"

namespace muster::apiserver {
namespace {

std::string VerbOfMethod(const std::string& method, bool has_name, bool watch) {
  if (method == "GET" || method == "HEAD") {
    if (watch) return "watch";
    return has_name ? "get" : "list";
  }
  if (method == "POST") return "create";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return has_name ? "delete" : "deletecollection";
  return ToLower(method);
}

// Fills ns, resource, name, subresource and rest from what follows the version.
void ParseResource(RequestInfo& info, std::vector<std::string> parts) {
  size_t at = 0;
  // "namespaces/NS/RESOURCE" is inside a namespace; "namespaces/NS" and its own subresources are
  // the namespace itself.
  const bool own_subresource =
      parts.size() == 3 && (parts[2] == "status" || parts[2] == "finalize");
  if (parts[0] == "namespaces" && parts.size() >= 2) {
    info.ns = parts[1];
    if (parts.size() > 2 && !own_subresource) at = 2;
  }
  info.is_resource = true;
  info.resource = parts[at];
  if (at + 1 < parts.size()) info.name = parts[at + 1];
  if (at + 2 < parts.size()) info.subresource = parts[at + 2];
  for (size_t i = at + 3; i < parts.size(); ++i) {
    if (!info.rest.empty()) info.rest += '/';
    info.rest += parts[i];
  }
}

}  // namespace

Result<std::optional<int64_t>> IntParameter(const net::Query& query, std::string_view name) {
  const std::string_view text = query.Get(name);
  if (text.empty()) return std::optional<int64_t>();
  const std::optional<int64_t> value = ParseInt(text);
  if (!value) {
    return Error(Reason::kBadRequest, "query parameter {} must be a decimal integer, not {:?}",
                 name, text);
  }
  return value;
}

Result<RequestInfo> ParseRequestInfo(const net::Request& request) {
  RequestInfo info;
  info.method = request.method;
  ASSIGN_OR_RETURN(net::SplitTarget target, net::ParseTarget(request.target));
  info.query = std::move(target.query);
  info.parts = std::move(target.segments);
  for (const std::string& part : info.parts) {
    info.path += '/';
    info.path += part;
  }
  if (info.path.empty()) info.path = "/";

  const bool core = !info.parts.empty() && info.parts[0] == "api";
  const bool grouped = !info.parts.empty() && info.parts[0] == "apis";
  const size_t prefix = core ? 2 : 3;
  if ((core || grouped) && info.parts.size() >= prefix) {
    if (grouped) info.group = info.parts[1];
    info.version = info.parts[prefix - 1];
    if (info.parts.size() > prefix) {
      ParseResource(info, {info.parts.begin() + static_cast<ptrdiff_t>(prefix), info.parts.end()});
    }
  }
  if (info.is_resource) {
    info.verb = VerbOfMethod(info.method, !info.name.empty(), info.query.GetBool("watch"));
  } else {
    info.verb = ToLower(info.method);
  }
  return info;
}

}  // namespace muster::apiserver
