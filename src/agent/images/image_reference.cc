#include "agent/images/image_reference.h"

#include <algorithm>
#include <cctype>

#include "base/strings.h"

namespace muster::agent {
namespace {

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }
bool IsWord(char c) { return isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Lower-case letters and digits, in groups that one '.', '_', "__" or any number of '-' separate.
bool IsPathComponent(std::string_view text) {
  if (text.empty() || !IsLowerOrDigit(text.front()) || !IsLowerOrDigit(text.back())) return false;
  for (size_t i = 0; i < text.size();) {
    if (IsLowerOrDigit(text[i])) {
      ++i;
      continue;
    }
    const size_t end = static_cast<size_t>(
        std::find_if(text.begin() + static_cast<std::ptrdiff_t>(i), text.end(), IsLowerOrDigit) -
        text.begin());
    const std::string_view separator = text.substr(i, end - i);
    const bool dashes = separator.find_first_not_of('-') == std::string_view::npos;
    if (!dashes && separator != "." && separator != "_" && separator != "__") return false;
    i = end;
  }
  return true;
}

// HOST or HOST:PORT.
bool IsRegistry(std::string_view text) {
  const bool bracketed = text.starts_with('[') && text.find(']') != std::string_view::npos;
  const size_t colon = text.find(':', bracketed ? text.find(']') : 0);
  if (colon != std::string_view::npos) {
    const auto port = ParseInt(text.substr(colon + 1));
    if (!port || *port < 1 || *port > 65535) return false;
  }
  const std::string_view host = text.substr(0, colon);
  if (host.empty()) return false;
  return std::all_of(host.begin(), host.end(), [bracketed](char c) {
    return isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' ||
           (bracketed && (c == ':' || c == '[' || c == ']'));
  });
}

bool IsTag(std::string_view text) {
  return !text.empty() && text.size() <= kMaxImageTagBytes && IsWord(text[0]) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsWord(c) || c == '.' || c == '-'; });
}

ErrorStatus Unparsable(std::string_view name, std::string_view why) {
  return Error(Reason::kInvalid, "couldn't parse image name {:?}: {}", name, why);
}

}  // namespace

bool IsImageDigest(std::string_view text) {
  return text.size() == 71 && text.starts_with("sha256:") &&
         std::all_of(text.begin() + 7, text.end(), IsHex);
}

bool ImageReference::OnLoopback() const {
  std::string host = Registry();
  if (host.starts_with("[::1]")) return true;
  host = host.substr(0, host.find(':'));
  return host == "localhost" || host.starts_with("127.");
}

Result<ImageReference> ParseImageReference(std::string_view name) {
  ImageReference out;
  std::string_view rest = name;
  if (const size_t at = rest.find('@'); at != std::string_view::npos) {
    out.digest = std::string(rest.substr(at + 1));
    if (!IsImageDigest(out.digest)) return Unparsable(name, "invalid reference format");
    rest = rest.substr(0, at);
  }
  const size_t slash = rest.rfind('/');
  const size_t colon = rest.rfind(':');
  if (colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash)) {
    out.tag = std::string(rest.substr(colon + 1));
    if (!IsTag(out.tag)) return Unparsable(name, "invalid reference format");
    rest = rest.substr(0, colon);
  }
  const std::string_view first = rest.substr(0, rest.find('/'));
  const bool has_registry =
      first.size() < rest.size() &&
      (first.find_first_of(".:") != std::string_view::npos || first == "localhost");
  std::string_view path = has_registry ? rest.substr(first.size() + 1) : rest;
  if (has_registry && !IsRegistry(first)) return Unparsable(name, "invalid reference format");
  std::string registry = has_registry ? std::string(first) : "docker.io";
  if (registry == "index.docker.io") registry = "docker.io";
  for (std::string_view component : Split(path, '/')) {
    if (IsPathComponent(component)) continue;
    const bool upper = std::any_of(component.begin(), component.end(),
                                   [](char c) { return c >= 'A' && c <= 'Z'; });
    return Unparsable(name, upper ? "invalid reference format: repository name (" +
                                        std::string(path) + ") must be lowercase"
                                  : "invalid reference format");
  }
  const bool official = registry == "docker.io" && path.find('/') == std::string_view::npos;
  out.repository = fmt::format("{}/{}{}", registry, official ? "library/" : "", path);
  if (out.repository.size() > kMaxImageNameBytes)
    return Unparsable(name, "repository name must not be more than 255 characters");
  if (!out.digest.empty()) {
    out.tag.clear();
  } else if (out.tag.empty()) {
    out.tag = "latest";
  }
  return out;
}

}  // namespace muster::agent
