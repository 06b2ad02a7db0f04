#include "cli/resource_arguments.h"

#include "base/strings.h"

namespace muster::cli {
namespace {

Result<std::vector<Wanted>> ParseSlashed(ResourceFinder& finder,
                                         const std::vector<std::string>& positionals) {
  std::vector<Wanted> out;
  for (const std::string& text : positionals) {
    const size_t slash = text.find('/');
    if (slash == std::string::npos || slash == 0 || slash + 1 == text.size()) {
      return Error(Reason::kInvalid, "{:?}: expected TYPE/NAME, like the other arguments", text);
    }
    ASSIGN_OR_RETURN(ApiResource resource, finder.Find(text.substr(0, slash)));
    const std::string name = text.substr(slash + 1);
    if (!out.empty() && out.back().resource.resource == resource.resource) {
      out.back().names.push_back(name);
    } else {
      out.push_back({std::move(resource), {name}});
    }
  }
  return out;
}

}  // namespace

Result<std::vector<Wanted>> ParseWanted(ResourceFinder& finder,
                                        const std::vector<std::string>& positionals) {
  if (positionals.empty()) {
    return Error(Reason::kInvalid, "name what you mean, e.g. pods, pod/NAME, pytorchjobs");
  }
  if (positionals[0].find('/') != std::string::npos) return ParseSlashed(finder, positionals);
  const std::vector<std::string> names(positionals.begin() + 1, positionals.end());
  std::vector<Wanted> out;
  for (std::string_view type : SplitNonEmpty(positionals[0], ',')) {
    ASSIGN_OR_RETURN(std::vector<ApiResource> resources, finder.FindAll(type));
    for (ApiResource& resource : resources) out.push_back({std::move(resource), names});
  }
  for (const std::string& name : names) {
    if (name.find('/') != std::string::npos) {
      return Error(Reason::kInvalid,
                   "{:?}: a name has no \"/\"; write either TYPE NAME or TYPE/NAME", name);
    }
  }
  return out;
}

Result<OneObject> ParseOne(ResourceFinder& finder, const std::vector<std::string>& positionals,
                           std::string_view otherwise) {
  if (positionals.size() == 1 && positionals[0].find('/') == std::string::npos) {
    ASSIGN_OR_RETURN(ApiResource resource, finder.Find(otherwise));
    return OneObject{std::move(resource), positionals[0]};
  }
  ASSIGN_OR_RETURN(std::vector<Wanted> wanted, ParseWanted(finder, positionals));
  if (wanted.size() != 1 || wanted[0].names.size() != 1) {
    return Error(Reason::kInvalid, "expected exactly one object: NAME, TYPE/NAME or TYPE NAME");
  }
  return OneObject{std::move(wanted[0].resource), wanted[0].names[0]};
}

std::string NamespaceFor(const ApiResource& resource, const Session& session) {
  return resource.namespaced ? session.ns() : "";
}

}  // namespace muster::cli
