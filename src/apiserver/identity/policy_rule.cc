#include "apiserver/identity/policy_rule.h"

#include <algorithm>

#include "base/strings.h"

namespace muster::apiserver {
namespace {

using Words = std::vector<std::string>;

bool Has(const Words& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

bool HasOrAll(const Words& words, std::string_view word) {
  return Has(words, "*") || Has(words, word);
}

// `resource` may be "pods" or "pods/log".
bool HasResource(const Words& resources, std::string_view resource) {
  if (HasOrAll(resources, resource)) return true;
  const size_t slash = resource.find('/');
  return slash != std::string_view::npos &&
         Has(resources, "*" + std::string(resource.substr(slash)));
}

bool HasUrl(const Words& urls, std::string_view path) {
  return std::ranges::any_of(urls, [&](std::string_view url) {
    if (url == "*" || url == path) return true;
    if (!url.ends_with('*')) return false;
    while (url.ends_with('*')) url.remove_suffix(1);
    return path.starts_with(url);
  });
}

// Rules that say one thing each and together the same as `rule`.
std::vector<PolicyRule> BreakDown(const PolicyRule& rule) {
  std::vector<PolicyRule> parts;
  for (const std::string& verb : rule.verbs) {
    for (const std::string& group : rule.groups) {
      for (const std::string& resource : rule.resources) {
        if (rule.names.empty()) parts.push_back({{verb}, {group}, {resource}, {}, {}});
        for (const std::string& name : rule.names)
          parts.push_back({{verb}, {group}, {resource}, {name}, {}});
      }
    }
    for (const std::string& url : rule.urls) parts.push_back({{verb}, {}, {}, {}, {url}});
  }
  return parts;
}

// `part` is one that BreakDown() made.
bool Covers(const PolicyRule& rule, const PolicyRule& part) {
  if (!HasOrAll(rule.verbs, part.verbs[0])) return false;
  if (!part.urls.empty()) return HasUrl(rule.urls, part.urls[0]);
  const bool names = rule.names.empty() || (!part.names.empty() && Has(rule.names, part.names[0]));
  return names && HasOrAll(rule.groups, part.groups[0]) &&
         HasResource(rule.resources, part.resources[0]);
}

void AddMissing(std::vector<PolicyRule>& missing, PolicyRule part) {
  const auto same = std::ranges::find_if(missing, [&](const PolicyRule& rule) {
    return rule.groups == part.groups && rule.resources == part.resources &&
           rule.names == part.names && rule.urls == part.urls;
  });
  if (same == missing.end()) {
    missing.push_back(std::move(part));
  } else if (!Has(same->verbs, part.verbs[0])) {
    same->verbs.push_back(part.verbs[0]);
  }
}

}  // namespace

std::vector<PolicyRule> ReadRules(const json::Value& rules) {
  std::vector<PolicyRule> out;
  for (const json::Value& rule : rules.items()) {
    out.push_back({json::ToStrings(rule["verbs"]), json::ToStrings(rule["apiGroups"]),
                   json::ToStrings(rule["resources"]), json::ToStrings(rule["resourceNames"]),
                   json::ToStrings(rule["nonResourceURLs"])});
  }
  return out;
}

bool Allows(const PolicyRule& rule, const RequestInfo& info) {
  if (!HasOrAll(rule.verbs, info.verb)) return false;
  if (!info.is_resource) return HasUrl(rule.urls, info.path);
  if (!HasOrAll(rule.groups, info.group)) return false;
  if (!rule.names.empty() && !Has(rule.names, info.name)) return false;
  if (info.subresource.empty()) return HasOrAll(rule.resources, info.resource);
  return HasResource(rule.resources, info.resource + "/" + info.subresource);
}

std::vector<PolicyRule> Missing(const std::vector<PolicyRule>& held,
                                const std::vector<PolicyRule>& wanted) {
  std::vector<PolicyRule> missing;
  for (const PolicyRule& rule : wanted) {
    for (PolicyRule& part : BreakDown(rule)) {
      const bool covered =
          std::ranges::any_of(held, [&](const PolicyRule& own) { return Covers(own, part); });
      if (!covered) AddMissing(missing, std::move(part));
    }
  }
  return missing;
}

std::string Describe(const PolicyRule& rule) {
  std::string out;
  const auto add = [&out](const char* title, const Words& words) {
    if (words.empty()) return;
    out += fmt::format("{}{}:[", out.empty() ? "" : ", ", title);
    for (size_t i = 0; i < words.size(); ++i)
      out += fmt::format("{}\"{}\"", i == 0 ? "" : " ", words[i]);
    out += ']';
  };
  add("APIGroups", rule.groups);
  add("Resources", rule.resources);
  add("NonResourceURLs", rule.urls);
  add("ResourceNames", rule.names);
  add("Verbs", rule.verbs);
  return "{" + out + "}";
}

}  // namespace muster::apiserver
