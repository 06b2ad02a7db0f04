#include "cli/sync_plan.h"

#include <algorithm>
#include <iterator>

#include "base/strings.h"
#include "cli/three_way.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxNameLength = 50;  // a label's value has 63, and ConfigMaps get a prefix
constexpr size_t kMaxValueLength = 60;

std::string Shown(const json::Value& value) {
  std::string text = value.IsNull() ? "nothing" : json::Write(value);
  if (text.size() > kMaxValueLength) text = text.substr(0, kMaxValueLength) + "...";
  return text;
}

// The fields that a merge patch sets or takes away; without their values if those are secret.
void Leaves(const json::Value& before, const json::Value& patch, const std::string& path,
            bool secret, std::vector<std::string>& out) {
  for (const auto& [key, value] : patch.members()) {
    const std::string at = path.empty() ? key : path + "." + key;
    if (at == std::string("metadata.annotations.") + kLastApplied) continue;
    if (value.IsObject() && before[key].IsObject()) {
      Leaves(before[key], value, at, secret, out);
    } else if (secret) {
      out.push_back(at);
    } else {
      out.push_back(fmt::format("{}: {} -> {}", at, Shown(before[key]), Shown(value)));
    }
  }
}

}  // namespace

std::string SyncNameOf(const std::string& repository, const std::string& path) {
  std::string_view base = repository;
  while (base.ends_with('/')) base.remove_suffix(1);
  if (base.ends_with(".git")) base.remove_suffix(4);
  while (base.ends_with('/')) base.remove_suffix(1);
  base.remove_prefix(base.find_last_of("/:") + 1);
  std::string name;
  for (const char c : std::string(base) + "-" + path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    const bool upper = c >= 'A' && c <= 'Z';
    const char next = plain ? c : upper ? static_cast<char>(c - 'A' + 'a') : '-';
    if (next != '-' || (!name.empty() && name.back() != '-')) name.push_back(next);
  }
  if (name.size() > kMaxNameLength) {
    const uint64_t hash = Hash64(repository + " " + path);
    name = fmt::format("{}-{:08x}", name.substr(0, kMaxNameLength - 9), hash & 0xffffffff);
  }
  while (name.ends_with('-')) name.pop_back();
  return name.empty() ? "sync" : name;
}

std::string WithoutCredentials(const std::string& repository) {
  const size_t scheme = repository.find("://");
  if (scheme == std::string::npos) return repository;  // user@host:path has no password
  const size_t begin = scheme + 3;
  const size_t at = repository.substr(0, repository.find('/', begin)).rfind('@');
  return at == std::string::npos || at < begin
             ? repository
             : repository.substr(0, begin) + repository.substr(at + 1);
}

std::string EntryOf(const client::Target& target) {
  return Join({target.resource.group, target.resource.version, target.resource.plural, target.ns,
               target.name},
              "|");
}

client::Target TargetOf(const std::string& entry) {
  const std::vector<std::string_view> parts = Split(entry, '|');
  if (parts.size() != 5) return {};
  return {{std::string(parts[0]), std::string(parts[1]), std::string(parts[2])},
          std::string(parts[3]),
          std::string(parts[4]),
          ""};
}

Result<Entries> EntriesOf(std::string_view text) {
  const Result<json::Value> list = json::Parse(text);
  const bool whole =
      list && list->IsArray() && std::ranges::all_of(list->items(), [](const json::Value& entry) {
        return entry.IsString() && !TargetOf(entry.Str()).resource.plural.empty();
      });
  if (!whole) return Error(Reason::kInvalid, "expected a JSON list of entries that sync wrote");
  Entries entries;
  for (const json::Value& entry : list->items()) entries.insert(entry.Str());
  return entries;
}

std::string TextOf(const Entries& entries) {
  return json::Write(json::Strings({entries.begin(), entries.end()}));
}

std::vector<std::string> LeftOut(const Entries& before, const Entries& now) {
  std::vector<std::string> out;
  std::ranges::set_difference(before, now, std::back_inserter(out));
  return out;
}

std::vector<std::string> DriftOf(const Applied& applied, const json::Value& manifest) {
  if (applied.outcome != "configured") return {};
  json::Value wanted = LastAppliedOf(WithLastApplied(manifest));
  json::Value last = LastAppliedOf(applied.before);
  // Where the object lives is in one of them only if the manifest says it.
  wanted = wanted.RemovePath({"metadata", "namespace"});
  if (last.IsNull() || last.RemovePath({"metadata", "namespace"}) != wanted) return {};
  std::vector<std::string> lines;
  Leaves(applied.before, applied.patch, "", manifest["kind"].AsString() == "Secret", lines);
  if (lines.size() > kMaxDriftLines) {
    const size_t more = lines.size() - kMaxDriftLines;
    lines.resize(kMaxDriftLines);
    lines.push_back(fmt::format("and {} more", more));
  }
  return lines;
}

std::string StateOf(const json::Value& object) {
  const json::Value& status = object["status"];
  if (const std::string_view phase = status["phase"].AsString(); !phase.empty())
    return std::string(phase);
  std::set<std::string> holding;
  for (const json::Value& condition : status["conditions"].items())
    if (condition["status"].AsString() == "True") holding.insert(condition["type"].Str());
  // The end first, then what leads there.
  for (const char* type : {"Failed", "Succeeded", "Complete", "Completed", "Suspended", "Available",
                           "Ready", "Running", "Restarting", "Created", "Progressing"})
    if (holding.contains(type)) return type;
  return holding.empty() ? "" : *holding.begin();
}

}  // namespace muster::cli
