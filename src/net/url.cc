#include "net/url.h"

#include <optional>

#include "base/strings.h"

namespace muster::net {

std::string_view Query::Get(std::string_view name) const {
  for (const auto& [key, value] : list_) {
    if (key == name) return value;
  }
  return {};
}

std::vector<std::string> Query::GetAll(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : list_) {
    if (key == name) values.push_back(value);
  }
  return values;
}

bool Query::Has(std::string_view name) const {
  for (const auto& [key, value] : list_) {
    if (key == name) return true;
  }
  return false;
}

bool Query::GetBool(std::string_view name) const {
  if (!Has(name)) return false;
  std::string_view value = Get(name);
  return value.empty() || value == "1" || EqualsIgnoreCase(value, "true");
}

std::string Query::Encode() const {
  std::string out;
  for (const auto& [key, value] : list_) {
    if (!out.empty()) out += '&';
    out += PercentEncode(key);
    out += '=';
    out += PercentEncode(value);
  }
  return out;
}

namespace {

Status ParseQuery(std::string_view text, Query& query) {
  size_t count = 0;
  for (std::string_view part : SplitNonEmpty(text, '&')) {
    if (++count > kMaxQueryParameters) {
      return Error(Reason::kBadRequest, "query: more than {} parameters", kMaxQueryParameters);
    }
    size_t equals = part.find('=');
    std::string_view raw_value = equals == std::string_view::npos ? "" : part.substr(equals + 1);
    std::optional<std::string> name = PercentDecode(part.substr(0, equals), true);
    std::optional<std::string> value = PercentDecode(raw_value, true);
    if (!name || !value)
      return Error(Reason::kBadRequest, "query parameter {:?}: broken % escape", std::string(part));
    query.Add(*std::move(name), *std::move(value));
  }
  return Status::Ok();
}

}  // namespace

Result<SplitTarget> ParseTarget(std::string_view target) {
  if (target.empty() || target[0] != '/') {
    return Error(Reason::kBadRequest, "request target {:?}: must start with \"/\"",
                 std::string(target));
  }
  target = target.substr(0, target.find('#'));
  SplitTarget out;
  size_t question = target.find('?');
  out.path = std::string(target.substr(0, question));
  for (std::string_view part : SplitNonEmpty(out.path, '/')) {
    std::optional<std::string> segment = PercentDecode(part, false);
    if (!segment)
      return Error(Reason::kBadRequest, "path segment {:?}: broken % escape", std::string(part));
    if (*segment == "." || *segment == ".." || segment->find('/') != std::string::npos ||
        segment->find('\0') != std::string::npos) {
      return Error(Reason::kBadRequest,
                   "path segment {:?}: may not be \".\" or \"..\" or contain \"/\" or NUL",
                   std::string(part));
    }
    out.segments.push_back(*std::move(segment));
  }
  if (question != std::string_view::npos)
    RETURN_IF_ERROR(ParseQuery(target.substr(question + 1), out.query));
  return out;
}

Result<ParsedUrl> ParseUrl(std::string_view url) {
  ParsedUrl out;
  std::string_view rest = url;
  if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
    out.endpoint.tls = true;
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
    out.endpoint.tls = false;
  } else {
    return Error(Reason::kInvalid, "URL {:?}: must start with https:// or http://",
                 std::string(url));
  }
  size_t slash = rest.find_first_of("/?#");
  std::string_view authority = rest.substr(0, slash);
  if (slash != std::string_view::npos) out.path = std::string(rest.substr(slash));
  if (authority.find('@') != std::string_view::npos) {
    return Error(Reason::kInvalid, "URL {:?}: user names in URLs are not supported",
                 std::string(url));
  }
  std::string_view port_text;
  if (authority.starts_with('[')) {
    size_t close = authority.find(']');
    if (close == std::string_view::npos)
      return Error(Reason::kInvalid, "URL {:?}: \"]\" is missing", std::string(url));
    out.endpoint.host = std::string(authority.substr(1, close - 1));
    std::string_view tail = authority.substr(close + 1);
    if (!tail.empty() && tail[0] != ':') {
      return Error(Reason::kInvalid, "URL {:?}: expected a port after \"]\"", std::string(url));
    }
    port_text = tail.empty() ? tail : tail.substr(1);
  } else {
    size_t colon = authority.find(':');
    out.endpoint.host = std::string(authority.substr(0, colon));
    if (colon != std::string_view::npos) port_text = authority.substr(colon + 1);
  }
  if (out.endpoint.host.empty())
    return Error(Reason::kInvalid, "URL {:?}: the host is missing", std::string(url));
  int64_t port = out.endpoint.tls ? 443 : 80;
  if (!port_text.empty()) port = ParseInt(port_text).value_or(0);
  if (port < 1 || port > 65535) {
    return Error(Reason::kInvalid, "URL {:?}: the port must be 1 to 65535", std::string(url));
  }
  out.endpoint.port = static_cast<uint16_t>(port);
  return out;
}

std::string Endpoint::ToString() const {
  bool ipv6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", tls ? "https" : "http", ipv6 ? "[" : "", host,
                     ipv6 ? "]" : "", port);
}

}  // namespace muster::net
