#include "cli/resource_finder.h"

#include <algorithm>

#include "base/strings.h"

namespace muster::cli {

std::string ApiResource::QualifiedSingular() const {
  const std::string name = singular.empty() ? ToLower(kind) : singular;
  return resource.group.empty() ? name : name + "." + resource.group;
}

std::string ApiResource::ObjectName(std::string_view name) const {
  return QualifiedSingular() + "/" + std::string(name);
}

void ResourceFinder::Forget() {
  known_.clear();
  core_loaded_ = groups_loaded_ = false;
}

void ResourceFinder::AddList(const json::Value& list, const std::string& group,
                             const std::string& version) {
  for (const json::Value& item : list["resources"].items()) {
    if (item["name"].AsString().find('/') != std::string_view::npos) continue;  // a subresource
    ApiResource resource;
    resource.resource = {group, version, item["name"].Str()};
    resource.kind = item["kind"].Str();
    resource.singular = item["singularName"].Str();
    resource.short_names = json::ToStrings(item["shortNames"]);
    resource.categories = json::ToStrings(item["categories"]);
    resource.namespaced = item["namespaced"].AsBool();
    known_.push_back(std::move(resource));
  }
}

Status ResourceFinder::LoadCore() {
  if (core_loaded_) return Status::Ok();
  ASSIGN_OR_RETURN(json::Value list, session_.GetJson("/api/v1"));
  AddList(list, "", "v1");
  core_loaded_ = true;
  return Status::Ok();
}

Status ResourceFinder::LoadGroups() {
  if (groups_loaded_) return Status::Ok();
  ASSIGN_OR_RETURN(json::Value groups, session_.GetJson("/apis"));
  std::vector<std::pair<std::string, std::string>> versions;  // preferred ones first
  std::vector<std::pair<std::string, std::string>> others;
  for (const json::Value& group : groups["groups"].items()) {
    const std::string name = group["name"].Str();
    for (const json::Value& version : group["versions"].items()) {
      const bool preferred = version["version"] == group["preferredVersion"]["version"];
      (preferred ? versions : others).emplace_back(name, version["version"].Str());
    }
  }
  versions.insert(versions.end(), others.begin(), others.end());
  std::vector<std::string> paths;
  for (const auto& [group, version] : versions) paths.push_back("/apis/" + group + "/" + version);
  std::vector<Result<json::Value>> lists = session_.GetJsons(paths);
  for (size_t i = 0; i < lists.size(); ++i) {
    // A group whose server is away does not hide the others.
    if (lists[i]) AddList(*lists[i], versions[i].first, versions[i].second);
  }
  groups_loaded_ = true;
  return Status::Ok();
}

const ApiResource* ResourceFinder::Match(std::string_view text) const {
  const std::string lower = ToLower(text);
  const size_t dot = lower.find('.');
  const std::string name = lower.substr(0, dot);
  std::string group = dot == std::string::npos ? "" : lower.substr(dot + 1);
  for (const ApiResource& resource : known_) {
    const bool named = resource.resource.plural == name || resource.singular == name ||
                       ToLower(resource.kind) == name ||
                       std::find(resource.short_names.begin(), resource.short_names.end(), name) !=
                           resource.short_names.end();
    if (!named) continue;
    const std::string& its = resource.resource.group;
    if (group.empty() || group == its || group == resource.resource.version + "." + its ||
        its.starts_with(group + ".")) {
      return &resource;
    }
  }
  return nullptr;
}

Result<ApiResource> ResourceFinder::Find(std::string_view name) {
  RETURN_IF_ERROR(LoadCore());
  if (const ApiResource* found = Match(name)) return *found;
  RETURN_IF_ERROR(LoadGroups());
  if (const ApiResource* found = Match(name)) return *found;
  return Error(Reason::kInvalid, "the server doesn't have a resource type \"{}\"",
               std::string(name));
}

Result<std::vector<ApiResource>> ResourceFinder::FindAll(std::string_view name) {
  if (name == "all") {
    RETURN_IF_ERROR(LoadCore());
    RETURN_IF_ERROR(LoadGroups());
    std::vector<ApiResource> out;
    for (const ApiResource& resource : known_) {
      const auto& categories = resource.categories;
      if (std::find(categories.begin(), categories.end(), name) == categories.end()) continue;
      // Preferred versions come first: the same objects are not listed once more in another one.
      const bool listed = std::ranges::any_of(out, [&](const ApiResource& one) {
        return one.resource.group == resource.resource.group &&
               one.resource.plural == resource.resource.plural;
      });
      if (!listed) out.push_back(resource);
    }
    if (!out.empty()) return out;
  }
  ASSIGN_OR_RETURN(ApiResource one, Find(name));
  return std::vector<ApiResource>{std::move(one)};
}

Result<ApiResource> ResourceFinder::FindKind(std::string_view api_version, std::string_view kind) {
  const bool core = api_version == "v1";
  auto match = [&]() -> const ApiResource* {
    for (const ApiResource& resource : known_) {
      if (resource.kind == kind && resource.ApiVersion() == api_version) return &resource;
    }
    return nullptr;
  };
  RETURN_IF_ERROR(core ? LoadCore() : LoadGroups());
  if (const ApiResource* found = match()) return *found;
  return Error(
      Reason::kInvalid,
      "no matches for kind \"{}\" in version \"{}\": is its CustomResourceDefinition installed?",
      std::string(kind), std::string(api_version));
}

}  // namespace muster::cli
