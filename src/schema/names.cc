#include "schema/names.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::schema {
namespace {

constexpr std::string_view kDnsLabelMessage =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view kDnsSubdomainMessage =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
constexpr std::string_view kDns1035Message =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    "validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view kQualifiedNameRule =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
constexpr std::string_view kLabelValueMessage =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
constexpr std::string_view kConfigKeyMessage =
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name', "
    " or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLowerAlnum(char c) { return IsLower(c) || IsDigit(c); }
bool IsAlnum(char c) { return IsLowerAlnum(c) || (c >= 'A' && c <= 'Z'); }
bool IsNameCharacter(char c) { return IsAlnum(c) || c == '-' || c == '_' || c == '.'; }

bool IsDnsLabel(std::string_view text) {
  return !text.empty() && IsLowerAlnum(text.front()) && IsLowerAlnum(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return IsLowerAlnum(c) || c == '-'; });
}

bool IsDnsSubdomain(std::string_view text) {
  while (true) {
    const size_t dot = text.find('.');
    if (!IsDnsLabel(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool IsNamePart(std::string_view text) {
  return !text.empty() && IsAlnum(text.front()) && IsAlnum(text.back()) &&
         std::all_of(text.begin(), text.end(), IsNameCharacter);
}

void CheckLength(std::string_view text, size_t most, Problems& problems) {
  if (text.size() > most)
    problems.push_back(fmt::format("must be no more than {} characters", most));
}

}  // namespace

void CheckDns1123Label(std::string_view text, Problems& problems) {
  CheckLength(text, kMaxDnsLabelLength, problems);
  if (!IsDnsLabel(text))
    problems.emplace_back(IsDnsSubdomain(text) ? "must not contain dots" : kDnsLabelMessage);
}

void CheckDns1123Subdomain(std::string_view text, Problems& problems) {
  CheckLength(text, kMaxDnsSubdomainLength, problems);
  if (!IsDnsSubdomain(text)) problems.emplace_back(kDnsSubdomainMessage);
}

void CheckDns1035Label(std::string_view text, Problems& problems) {
  CheckLength(text, kMaxDnsLabelLength, problems);
  if (!IsDnsLabel(text) || !IsLower(text.front())) problems.emplace_back(kDns1035Message);
}

void CheckQualifiedName(std::string_view text, Problems& problems) {
  const size_t slash = text.find('/');
  std::string_view name = text;
  if (slash != std::string_view::npos) {
    const std::string_view prefix = text.substr(0, slash);
    name = text.substr(slash + 1);
    if (name.find('/') != std::string_view::npos) {
      problems.push_back(
          fmt::format("a qualified name {} with an optional DNS subdomain prefix and '/' (e.g. "
                      "'example.com/MyName')",
                      kQualifiedNameRule));
      return;
    }
    if (prefix.empty()) {
      problems.emplace_back("prefix part must be non-empty");
    } else {
      Problems of_prefix;
      CheckDns1123Subdomain(prefix, of_prefix);
      for (const std::string& problem : of_prefix) problems.push_back("prefix part " + problem);
    }
  }
  if (name.empty()) {
    problems.emplace_back("name part must be non-empty");
  } else if (name.size() > kMaxLabelValueLength) {
    problems.push_back(
        fmt::format("name part must be no more than {} characters", kMaxLabelValueLength));
  }
  if (!IsNamePart(name)) problems.push_back(fmt::format("name part {}", kQualifiedNameRule));
}

void CheckLabelValue(std::string_view text, Problems& problems) {
  CheckLength(text, kMaxLabelValueLength, problems);
  if (!text.empty() && !IsNamePart(text)) problems.emplace_back(kLabelValueMessage);
}

void CheckConfigKey(std::string_view text, Problems& problems) {
  CheckLength(text, kMaxConfigKeyLength, problems);
  if (text.empty() || !std::all_of(text.begin(), text.end(), IsNameCharacter))
    problems.emplace_back(kConfigKeyMessage);
  if (text == ".") {
    problems.emplace_back("must not be '.'");
  } else if (text == "..") {
    problems.emplace_back("must not be '..'");
  } else if (text.starts_with("..")) {
    problems.emplace_back("must not start with '..'");
  }
}

void CheckEnvName(std::string_view text, Problems& problems) {
  const bool fine = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= ' ' && c <= '~' && c != '=';
  });
  if (!fine) {
    problems.emplace_back(
        "a valid environment variable name must consist only of printable ASCII characters other "
        "than '='");
  }
}

void CheckPortName(std::string_view text, Problems& problems) {
  CheckLength(text, kMaxPortNameLength, problems);
  if (!std::all_of(text.begin(), text.end(), [](char c) { return IsLowerAlnum(c) || c == '-'; })) {
    problems.emplace_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (!std::any_of(text.begin(), text.end(), IsLower))
    problems.emplace_back("must contain at least one letter (a-z)");
  if (text.find("--") != std::string_view::npos)
    problems.emplace_back("must not contain consecutive hyphens");
  if (!text.empty() && (text.front() == '-' || text.back() == '-')) {
    problems.emplace_back("must not begin or end with a hyphen");
  }
}

void CheckHttpHeaderName(std::string_view text, Problems& problems) {
  const bool fine = !text.empty() && std::all_of(text.begin(), text.end(),
                                                 [](char c) { return IsAlnum(c) || c == '-'; });
  if (!fine) {
    problems.emplace_back(
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
        "regex used for validation is '[-A-Za-z0-9]+')");
  }
}

void CheckIp(std::string_view text, Problems& problems) {
  if (!IsIp(text))
    problems.emplace_back("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
}

void CheckCidr(std::string_view text, Problems& problems) {
  const size_t slash = text.find('/');
  const std::string_view address = text.substr(0, slash);
  const std::optional<int64_t> bits =
      slash == std::string_view::npos ? std::nullopt : ParseInt(text.substr(slash + 1));
  if (IsIp(address) && bits && *bits >= 0 && *bits <= (IsIpv4(address) ? 32 : 128)) return;
  problems.emplace_back("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
}

void CheckOrdinaryIp(std::string_view text, Problems& problems) {
  in_addr v4{};
  in6_addr v6{};
  const std::string address(text);
  bool is_v4 = IsIpv4(text) && inet_pton(AF_INET, address.c_str(), &v4) == 1;
  if (!is_v4 && (!IsIpv6(text) || inet_pton(AF_INET6, address.c_str(), &v6) != 1)) {
    problems.emplace_back("must be a valid IP address");
    return;
  }
  if (!is_v4 && IN6_IS_ADDR_V4MAPPED(&v6)) {  // "::ffff:127.0.0.1" leads where 127.0.0.1 does
    std::memcpy(&v4, &v6.s6_addr[12], sizeof v4);
    is_v4 = true;
  }
  const uint32_t bits = ntohl(v4.s_addr);
  if (is_v4 ? bits == 0 : IN6_IS_ADDR_UNSPECIFIED(&v6))
    problems.push_back(fmt::format("may not be unspecified ({})", text));
  if (is_v4 ? bits >> 24 == 127 : IN6_IS_ADDR_LOOPBACK(&v6))
    problems.emplace_back("may not be in the loopback range (127.0.0.0/8, ::1/128)");
  if (is_v4 ? bits >> 16 == 0xA9FE : IN6_IS_ADDR_LINKLOCAL(&v6))
    problems.emplace_back("may not be in the link-local range (169.254.0.0/16, fe80::/10)");
  if (is_v4 ? bits >> 8 == 0xE00000 : IN6_IS_ADDR_MC_LINKLOCAL(&v6)) {
    problems.emplace_back("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
  }
}

void CheckPathSegment(std::string_view text, Problems& problems) {
  if (text == "." || text == "..") {
    problems.push_back(fmt::format("may not be '{}'", text));
    return;
  }
  for (const char c : {'/', '%'}) {
    if (text.find(c) != std::string_view::npos)
      problems.push_back(fmt::format("may not contain '{}'", c));
  }
}

bool IsNativeResource(std::string_view name) {
  return name.find('/') == std::string_view::npos ||
         name.find("kubernetes.io/") != std::string_view::npos;
}

bool IsExtendedResource(std::string_view name) {
  return !IsNativeResource(name) && !name.starts_with("requests.");
}

bool IsIpv4(std::string_view text) {
  in_addr address;
  return text.size() < 16 && inet_pton(AF_INET, std::string(text).c_str(), &address) == 1;
}

bool IsIpv6(std::string_view text) {
  in6_addr address;
  return text.size() < 46 && inet_pton(AF_INET6, std::string(text).c_str(), &address) == 1;
}

}  // namespace muster::schema
