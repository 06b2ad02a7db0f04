#include "cli/manifests.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/utf8.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

bool IsManifest(const fs::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml" || path.extension() == ".json";
}

template <class Iterator>
std::vector<std::string> FilesBelow(const std::string& dir) {
  std::vector<std::string> files;
  std::error_code error;
  for (Iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    if (it->is_regular_file() && IsManifest(it->path())) files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Status Take(const json::Value& value, const std::string& source, std::vector<ManifestObject>& out) {
  if (!value.IsObject() || value["kind"].AsString().empty() ||
      value["apiVersion"].AsString().empty()) {
    return Error(Reason::kInvalid,
                 "{}: an object needs apiVersion and kind, e.g. apiVersion: v1 and kind: Pod",
                 source);
  }
  const std::string_view kind = value["kind"].AsString();
  if (kind.ends_with("List") && value["items"].IsArray()) {
    for (const json::Value& item : value["items"].items()) RETURN_IF_ERROR(Take(item, source, out));
    return Status::Ok();
  }
  if (value["metadata"]["name"].AsString().empty()) {
    return Error(Reason::kInvalid,
                 "{}: a {} without metadata.name (generateName works with `kubectl create` only)",
                 source, kind);
  }
  out.push_back({.object = value, .source = source});
  return Status::Ok();
}

// The errors of files are the user's, never `Error from server`.
ErrorStatus OfFile(const std::string& source, const Status& why) {
  return Error(Reason::kInvalid, "{}: {}", source, why.message());
}

Result<std::vector<ManifestObject>> TakeDocuments(const std::string& text,
                                                  const std::string& source) {
  Result<std::vector<json::Value>> documents = json::ParseYaml(text);
  if (!documents) return OfFile(source, documents.error());
  std::vector<ManifestObject> out;
  for (size_t i = 0; i < documents->size(); ++i) {
    const json::Value& document = (*documents)[i];
    if (document.IsNull()) continue;
    const size_t before = out.size();
    RETURN_IF_ERROR(Take(document, source, out));
    for (size_t k = before; k < out.size() && documents->size() > 1; ++k) out[k].document = i + 1;
  }
  return out;
}

Result<std::string> ReadText(const std::string& path, bool input) {
  Result<std::string> text = input ? ReadAll(STDIN_FILENO, "standard input", kMaxManifestBytes)
                                   : ReadSmallFile(path, kMaxManifestBytes);
  if (!text) return Error(Reason::kInvalid, "{}", text.error().message());
  return text;
}

}  // namespace

Result<std::vector<ManifestObject>> ParseManifests(const std::string& text,
                                                   const std::string& source) {
  if (!json::IsValidUtf8(text) || text.find('\0') != std::string::npos) {
    return Error(Reason::kInvalid, "{}: not text in UTF-8, so neither YAML nor JSON; check -f",
                 source);
  }
  Result<std::vector<ManifestObject>> objects = TakeDocuments(text, source);
  if (!objects && source.ends_with(".json")) {  // most JSON is YAML too, but broken JSON is not
    if (Result<json::Value> strict = json::Parse(text); !strict)
      return OfFile(source, strict.error());
  }
  return objects;
}

Result<std::vector<ManifestObject>> ReadManifests(const std::vector<std::string>& files,
                                                  bool recursive) {
  std::vector<ManifestObject> out;
  for (const std::string& name : files) {
    if (name.empty()) return Error(Reason::kInvalid, "-f \"\": expected the name of a file");
    if (name.starts_with("http://") || name.starts_with("https://")) {
      return Error(Reason::kInvalid, "{}: download it first, e.g. curl -sL {} | muster apply -f -",
                   name, name);
    }
    std::vector<std::string> paths = {name};
    const bool directory = fs::is_directory(name);
    if (directory) {
      paths = recursive ? FilesBelow<fs::recursive_directory_iterator>(name)
                        : FilesBelow<fs::directory_iterator>(name);
      if (paths.empty())
        return Error(Reason::kInvalid, "{}: no .yaml, .yml or .json file in this directory", name);
    }
    for (const std::string& path : paths) {
      const bool input = path == "-" && !directory;
      ASSIGN_OR_RETURN(std::string text, ReadText(path, input));
      ASSIGN_OR_RETURN(std::vector<ManifestObject> objects,
                       ParseManifests(text, input ? "standard input" : path));
      out.insert(out.end(), std::make_move_iterator(objects.begin()),
                 std::make_move_iterator(objects.end()));
    }
  }
  if (out.empty()) {
    return Error(Reason::kInvalid,
                 "no object in {}: write at least apiVersion, kind and metadata.name",
                 Join(files, ", "));
  }
  return out;
}

}  // namespace muster::cli
