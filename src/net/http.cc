#include "net/http.h"

#include <algorithm>

#include "base/strings.h"

namespace muster::net {

void Headers::Set(std::string_view name, std::string value) {
  Remove(name);
  list_.emplace_back(std::string(name), std::move(value));
}

std::string_view Headers::Get(std::string_view name) const {
  for (const auto& [key, value] : list_) {
    if (EqualsIgnoreCase(key, name)) return value;
  }
  return {};
}

bool Headers::Has(std::string_view name) const {
  return std::any_of(list_.begin(), list_.end(),
                     [name](const auto& entry) { return EqualsIgnoreCase(entry.first, name); });
}

void Headers::Remove(std::string_view name) {
  std::erase_if(list_, [name](const auto& entry) { return EqualsIgnoreCase(entry.first, name); });
}

namespace {

struct Named {
  int code;
  std::string_view text;
};
constexpr Named kStatusTexts[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Request Entity Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Entity"},
    {426, "Upgrade Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

}  // namespace

std::string_view StatusText(int code) {
  for (const Named& named : kStatusTexts) {
    if (named.code == code) return named.text;
  }
  return "Unknown";
}

}  // namespace muster::net
