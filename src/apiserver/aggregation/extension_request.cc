#include "apiserver/aggregation/extension_request.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/services/service_resolver.h"
#include "base/strings.h"
#include "json/write.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kUser = "X-Remote-User";
constexpr std::string_view kGroup = "X-Remote-Group";
constexpr std::string_view kExtra = "X-Remote-Extra-";

// Of one connection (RFC 9110 7.6.1), or made anew for the next one.
constexpr std::array<std::string_view, 10> kOfTheConnection = {"connection",
                                                               "keep-alive",
                                                               "proxy-authenticate",
                                                               "proxy-authorization",
                                                               "proxy-connection",
                                                               "te",
                                                               "trailer",
                                                               "transfer-encoding",
                                                               "upgrade",
                                                               "content-length"};

bool IsOfTheConnection(std::string_view lower) {
  return std::ranges::find(kOfTheConnection, lower) != kOfTheConnection.end();
}

// "X_Remote_User" is the same header to servers that give headers to programs as variables.
std::string Plain(std::string_view name) {
  std::string lower = ToLower(name);
  std::ranges::replace(lower, '_', '-');
  return lower;
}

// What the Connection header names stays on the connection, too.
std::set<std::string> NamedByConnection(const net::Headers& headers) {
  std::set<std::string> names;
  for (const auto& [name, value] : headers.list()) {
    if (ToLower(name) != "connection") continue;
    for (const std::string_view one : Split(value, ',')) names.insert(ToLower(Trim(one)));
  }
  return names;
}

bool IsForThisServer(std::string_view lower) {
  return lower == "host" || lower == "expect" || lower == "authorization" ||
         lower.starts_with("impersonate-") || lower.starts_with("x-remote-");
}

std::string Target(const RequestInfo& info) {
  std::string target;
  for (const std::string& part : info.parts) target += "/" + PercentEncode(part);
  if (const std::string query = info.query.Encode(); !query.empty()) target += "?" + query;
  return target;
}

}  // namespace

Result<ExtensionTarget> TargetOf(Core& core, const ApiService& service) {
  ASSIGN_OR_RETURN(const ResolvedService resolved,
                   ResolveService(core, service.service_ns, service.service_name, service.port));
  ExtensionTarget target;
  target.endpoint = {true, resolved.host, resolved.port, service.Host()};
  target.ca_pem = service.ca_pem;
  target.believes_all = service.believes_all;
  target.in_cluster = resolved.in_cluster;
  return target;
}

void SayWhoAsks(const User& user, net::Headers& headers) {
  headers.Add(std::string(kUser), user.name);
  for (const std::string& group : user.groups) headers.Add(std::string(kGroup), group);
  for (const auto& [key, values] : user.extra) {
    for (const std::string& value : values)
      headers.Add(fmt::format("{}{}", kExtra, PercentEncode(key)), value);
  }
}

net::Request PassOn(const Call& call, const ApiService& service) {
  // As it was read here, so that both servers mean the same resource.
  net::Request request = PassOnTo(call, Target(call.info()), service.Host());
  SayWhoAsks(call.user(), request.headers);
  return request;
}

net::Request PassOnTo(const Call& call, std::string target, const std::string& host) {
  net::Request request;
  request.method = call.info().method;
  request.target = std::move(target);
  const std::set<std::string> named = NamedByConnection(call.request().headers);
  for (const auto& [name, value] : call.request().headers.list()) {
    const std::string lower = ToLower(name);
    if (IsOfTheConnection(lower) || IsForThisServer(Plain(name)) || named.contains(lower)) continue;
    request.headers.Add(name, value);
  }
  request.headers.Set("Host", host);
  const bool is_value = call.request().body.empty() && !call.request().value.IsNull();
  request.body = is_value ? json::Write(call.request().value) : call.request().body;
  return request;
}

net::Headers PassBack(const net::Headers& headers) {
  net::Headers back;
  const std::set<std::string> named = NamedByConnection(headers);
  for (const auto& [name, value] : headers.list()) {
    const std::string lower = ToLower(name);
    if (IsOfTheConnection(lower) || named.contains(lower) || lower == "date") continue;
    back.Add(name, value);
  }
  return back;
}

}  // namespace muster::apiserver
