#include "cli/kubeconfig_merge.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fmt/core.h>

#include "base/files.h"
#include "base/strings.h"
#include "client/kubeconfig.h"
#include "json/parse.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;
using json::Value;

constexpr const char* kMark = "muster.dev/merged";

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string Canonical(const std::string& path) {
  std::error_code ignored;
  const fs::path out = fs::weakly_canonical(path, ignored);
  return out.empty() ? path : out.string();
}

// One kubeconfig; Null if it does not exist.
struct Document {
  std::string file;
  Value before, after;
};

Result<Document> Read(const std::string& file) {
  Document out{file, {}, {}};
  if (!Exists(file)) return out;
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(file));
  const Result<std::vector<Value>> documents = json::ParseYaml(text);
  if (!documents) {
    return Error(Reason::kInvalid, "{}: {}; nothing was changed", file,
                 documents.error().message());
  }
  out.before = documents->empty() ? Value() : documents->front();
  if (documents->size() > 1 || !(out.before.IsNull() || out.before.IsObject()))
    return Error(Reason::kInvalid, "{} is not a kubeconfig; nothing was changed", file);
  out.after = out.before;
  return out;
}

// Where kubectl looks, links followed.
Result<std::vector<std::string>> Files(const MergeRequest& request) {
  if (!request.into.empty()) return std::vector<std::string>{Canonical(request.into)};
  std::vector<std::string> out;
  if (const char* list = std::getenv("KUBECONFIG"); list != nullptr) {
    for (const std::string_view file : SplitNonEmpty(list, ':')) {
      const std::string path = Canonical(std::string(file));
      if (path != Canonical(request.own_file)) out.push_back(path);
    }
  }
  if (!out.empty()) return out;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0')
    return Error(Reason::kInvalid, "HOME is not set: cannot find ~/.kube/config; name --into");
  return std::vector<std::string>{Canonical(std::string(home) + "/.kube/config")};
}

Result<std::vector<Document>> ReadAllOf(const MergeRequest& request) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, Files(request));
  std::vector<Document> out;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(out.emplace_back(), Read(file));
  }
  return out;
}

Document& WithContext(std::vector<Document>& documents, const std::string& name) {
  for (Document& document : documents) {
    if (!client::FindEntry(document.before, "contexts", name).IsNull()) return document;
  }
  for (Document& document : documents) {
    if (!document.before.IsNull()) return document;
  }
  return documents.back();
}

// The one whose current-context counts: the first that has one.
Document& WithCurrent(std::vector<Document>& documents, Document& otherwise) {
  for (Document& document : documents) {
    if (!document.before["current-context"].Str().empty()) return document;
  }
  return otherwise;
}

// What the mark of a context says; Null if it has none.
Value MarkOf(const Value& context) {
  for (const Value& extension : context["context"]["extensions"].items()) {
    if (extension["name"].Str() == kMark) return extension["extension"];
  }
  return {};
}

Value Marked(const Value& context, const std::string& own_file, const std::string& former) {
  json::Array extensions;
  for (const Value& extension : context["extensions"].items()) {
    if (extension["name"].Str() != kMark) extensions.push_back(extension);
  }
  extensions.push_back(json::Obj(
      {{"name", kMark},
       {"extension", json::Obj({{"kubeconfig", own_file}, {"former-context", former}})}}));
  return context.Set("extensions", Value(std::move(extensions)));
}

// "muster", or what the data directory is called where it is not a usual one.
std::string NameOf(const MergeRequest& request) {
  if (!request.name.empty()) return request.name;
  const std::string dir = fs::path(Canonical(request.own_file)).parent_path().filename();
  return dir.empty() || dir == ".muster" ? "muster" : dir;
}

// The contexts that were merged of this cluster, whatever they are called: the latest first, since
// each knows which one was current before it.
std::vector<std::string> MergedNames(const std::vector<Document>& documents,
                                     const std::string& own_file) {
  std::vector<std::string> out;
  for (const Document& document : documents) {
    for (const Value& context : document.before["contexts"].items()) {
      if (MarkOf(context)["kubeconfig"].Str() == Canonical(own_file))
        out.insert(out.begin(), context["name"].Str());
    }
  }
  return out;
}

// What carries no mark of ours is somebody else's, such as the own file of another cluster.
bool IsMarked(const Document& document, const std::string& name) {
  return !MarkOf(client::FindEntry(document.before, "contexts", name)).IsNull();
}

// An entry of our name that is somebody else's stays, unless it is the very same cluster.
Status CheckFree(const Document& document, const std::string& name, const Value& cluster) {
  const Value other = client::FindEntry(document.before, "clusters", name);
  if (other.IsNull() || IsMarked(document, name) || other["cluster"] == cluster["cluster"])
    return Status::Ok();
  return Error(Reason::kInvalid,
               "{} has a cluster {:?} at {} already; choose another name: --name NAME",
               document.file, name, other["cluster"]["server"].Str());
}

// The cluster's entries under another name.
Result<Value> OwnEntries(const std::string& own_file, const std::string& name,
                         const Value& existing, const std::string& former) {
  ASSIGN_OR_RETURN(const Document own, Read(own_file));
  const Value& source = own.before;
  Value old = client::FindEntry(source, "contexts", client::kOwnEntry);
  if (old.IsNull()) old = client::FindEntry(source, "contexts", source["current-context"].Str());
  const auto entry = [&](const char* field, const char* member) {
    const Value found = client::FindEntry(source, field, old["context"][member].Str());
    return json::List({found.Set("name", name)});
  };
  Value context = json::Obj({{"cluster", name}, {"user", name}});
  // What was set by `kubectl config set-context --namespace` stays.
  const Value ns = client::FindEntry(existing, "contexts", name)["context"]["namespace"];
  if (!ns.IsNull()) context = context.Set("namespace", ns);
  context = Marked(context, Canonical(own_file), former);
  return json::Obj({{"clusters", entry("clusters", "cluster")},
                    {"users", entry("users", "user")},
                    {"contexts", json::List({json::Obj({{"name", name}, {"context", context}})})}});
}

Result<std::string> Write(const std::vector<Document>& documents, const Document& current) {
  std::vector<std::string> written;
  for (const Document& document : documents) {
    if (document.before == document.after) continue;
    const std::string folder = fs::path(document.file).parent_path();
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      return Error(Reason::kInvalid, "{}: {}", folder, std::strerror(errno));
    RETURN_IF_ERROR(client::WriteKubeconfig(document.file, document.after));
    written.push_back(document.file);
  }
  if (written.empty()) return current.file + ": nothing to change";
  const std::string name = current.after["current-context"].Str();
  return fmt::format("{}: the current context is {}", Join(written, ", "),
                     name.empty() ? "none now" : fmt::format("{:?}", name));
}

bool HasContext(const std::vector<Document>& documents, std::string_view name) {
  return std::ranges::any_of(documents, [name](const Document& document) {
    return !client::FindEntry(document.after, "contexts", name).IsNull();
  });
}

Result<std::string> UnmergeContext(const MergeRequest& request, const std::string& name) {
  ASSIGN_OR_RETURN(std::vector<Document> documents, ReadAllOf(request));
  Document& target = WithContext(documents, name);
  Document& current = WithCurrent(documents, target);
  const Value context = client::FindEntry(target.before, "contexts", name);
  if (context.IsNull()) return target.file + ": nothing to change";
  if (!IsMarked(target, name)) {
    return Error(Reason::kInvalid,
                 "{} has a context {:?} that muster kubeconfig --merge did not put there; to take "
                 "it away: kubectl config delete-context {:?}",
                 target.file, name, name);
  }
  target.after = client::UnmergeKubeconfig(target.before, name);
  if (current.before["current-context"].Str() == name) {
    const std::string former = MarkOf(context)["former-context"].Str();
    current.after =
        current.after.Set("current-context", HasContext(documents, former) ? former : "");
  }
  return Write(documents, current);
}

}  // namespace

Result<std::string> MergeCluster(const MergeRequest& request) {
  ASSIGN_OR_RETURN(std::vector<Document> documents, ReadAllOf(request));
  const std::string name = NameOf(request);
  Document& target = WithContext(documents, name);
  Document& current = WithCurrent(documents, target);
  const std::string before = current.before["current-context"].Str();
  const Value mark = MarkOf(client::FindEntry(target.before, "contexts", name));
  const std::string former = before == name ? mark["former-context"].Str() : before;
  ASSIGN_OR_RETURN(const Value added, OwnEntries(request.own_file, name, target.before, former));
  RETURN_IF_ERROR(CheckFree(target, name, added["clusters"].At(0)));
  target.after = client::MergeKubeconfig(
      target.before, added.Set("current-context", target.before["current-context"].Str()));
  if (request.switch_context) current.after = current.after.Set("current-context", name);
  return Write(documents, current);
}

Result<std::string> UnmergeCluster(const MergeRequest& request) {
  ASSIGN_OR_RETURN(const std::vector<Document> documents, ReadAllOf(request));
  if (!request.name.empty()) return UnmergeContext(request, request.name);
  const std::vector<std::string> names = MergedNames(documents, request.own_file);
  if (names.empty()) return UnmergeContext(request, NameOf(request));
  Result<std::string> done;
  for (const std::string& name : names) {
    done = UnmergeContext(request, name);
    if (!done) break;
  }
  return done;
}

bool IsMerged(const std::string& own_file) {
  const Result<std::vector<Document>> documents = ReadAllOf({.own_file = own_file});
  return documents && !MergedNames(*documents, own_file).empty();
}

}  // namespace muster::cli
