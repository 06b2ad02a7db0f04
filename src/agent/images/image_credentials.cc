#include "agent/images/image_credentials.h"

#include <algorithm>

#include "base/strings.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::agent {
namespace {

// "https://index.docker.io/v1/" -> "docker.io".
std::string PlainKey(std::string_view key) {
  for (std::string_view scheme : {"https://", "http://"}) {
    if (key.starts_with(scheme)) key.remove_prefix(scheme.size());
  }
  while (key.ends_with('/')) key.remove_suffix(1);
  for (std::string_view version : {"/v1", "/v2"}) {
    if (key.ends_with(version)) key.remove_suffix(version.size());
  }
  const size_t slash = std::min(key.find('/'), key.size());
  const std::string_view host = key.substr(0, slash);
  const bool hub = host == "index.docker.io" || host == "registry-1.docker.io";
  return (hub ? "docker.io" : std::string(host)) + std::string(key.substr(slash));
}

// '*' stands for any characters within one label.
bool LabelMatches(std::string_view pattern, std::string_view label) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == label;
  if (!label.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t from = star; from <= label.size(); ++from) {
    if (LabelMatches(rest, label.substr(from))) return true;
  }
  return false;
}

bool HostMatches(std::string_view pattern, std::string_view host) {
  const std::vector<std::string_view> wanted = Split(pattern, '.');
  const std::vector<std::string_view> have = Split(host, '.');
  return wanted.size() == have.size() &&
         std::equal(wanted.begin(), wanted.end(), have.begin(), LabelMatches);
}

bool Matches(const std::string& key, const std::string& repository) {
  const size_t key_slash = std::min(key.find('/'), key.size());
  const size_t slash = repository.find('/');
  if (!HostMatches(key.substr(0, key_slash), repository.substr(0, slash))) return false;
  const std::string path = key.substr(key_slash);
  const std::string wanted = repository.substr(slash);
  return path.empty() || wanted == path || wanted.starts_with(path + "/");
}

std::string AuthOf(const json::Value& entry) {
  if (const std::string_view auth = entry["auth"].AsString(); !auth.empty())
    return std::string(auth);
  if (entry["username"].AsString().empty()) return "";
  return Base64Encode(
      fmt::format("{}:{}", entry["username"].AsString(), entry["password"].AsString()));
}

// The "auths" of a Secret, whichever of the two forms it has.
json::Value AuthsOf(const json::Value& secret) {
  for (const auto& [key, wrapped] : {std::pair{".dockerconfigjson", true}, {".dockercfg", false}}) {
    const auto text = Base64Decode(secret["data"][key].AsString());
    if (!text || text->empty()) continue;
    const auto parsed = json::Parse(*text);
    if (parsed) return wrapped ? (*parsed)["auths"] : *parsed;
  }
  return {};
}

}  // namespace

std::vector<std::string> CredentialsFor(const ImageReference& reference,
                                        const std::vector<json::Value>& secrets) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const json::Value& secret : secrets) {
    const json::Value auths = AuthsOf(secret);
    for (const json::Member& entry : auths.members()) {
      const std::string key = PlainKey(entry.first);
      std::string auth = AuthOf(entry.second);
      if (!auth.empty() && Matches(key, reference.repository))
        found.emplace_back(key, std::move(auth));
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  std::vector<std::string> out;
  for (auto& [key, auth] : found) out.push_back(std::move(auth));
  return out;
}

std::string AuthFile(const ImageReference& reference, const std::string& auth) {
  return json::Write(
      json::Obj({{"auths", json::Obj({{reference.Registry(), json::Obj({{"auth", auth}})}})}}));
}

}  // namespace muster::agent
