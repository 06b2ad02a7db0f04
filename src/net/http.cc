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

std::string_view StatusText(int code) {
  switch (code) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Request Entity Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Entity";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

}  // namespace muster::net
