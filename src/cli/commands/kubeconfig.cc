// muster kubeconfig: shows the kubeconfig in use, or puts it where kubectl looks.

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/session.h"
#include "client/kubeconfig.h"
#include "json/parse.h"

namespace muster::cli {
namespace {

// The files of the first candidate that exists: for --merge never those of $KUBECONFIG, which is
// where it goes.
Result<std::string> FindFile(const Arguments& arguments) {
  std::vector<std::string> looked_at;
  std::vector<std::vector<std::string>> candidates =
      KubeconfigCandidates(arguments.Get("kubeconfig"));
  if (arguments.Has("merge") && !arguments.Has("kubeconfig"))
    candidates = {{DefaultDataDir() + "/kubeconfig"}};
  for (const std::vector<std::string>& files : candidates) {
    for (const std::string& file : files) {
      if (access(file.c_str(), F_OK) == 0) return file;
      looked_at.push_back(file);
    }
  }
  return Error(Reason::kInvalid,
               "no kubeconfig: none of {} exists. Start a cluster with: muster up",
               Join(looked_at, ", "));
}

Result<std::string> ReadText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return Error(Reason::kInvalid, "{}: {}", path, strerror(errno));
  return text.str();
}

Result<json::Value> ReadDocument(const std::string& path) {
  ASSIGN_OR_RETURN(std::string text, ReadText(path));
  Result<std::vector<json::Value>> documents = json::ParseYaml(text);
  if (!documents) {
    return Error(Reason::kInvalid, "{}: {}; nothing was changed", path,
                 documents.error().message());
  }
  const json::Value document = documents->empty() ? json::Value() : documents->front();
  if (documents->size() > 1 || !(document.IsNull() || document.IsObject()))
    return Error(Reason::kInvalid, "{} is not a kubeconfig; nothing was changed", path);
  return document;
}

// Where kubectl looks: --into, the first file of $KUBECONFIG that is not the cluster's own, or
// ~/.kube/config. Links are followed: what they name is written.
Result<std::string> TargetFile(const Arguments& arguments, const std::string& own) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::string target = arguments.Get("into");
  if (const char* list = std::getenv("KUBECONFIG"); target.empty() && list != nullptr) {
    for (const std::string_view file : SplitNonEmpty(list, ':')) {
      if (!target.empty() ||
          fs::weakly_canonical(file, ignored) == fs::weakly_canonical(own, ignored))
        continue;
      target = file;
    }
  }
  if (target.empty()) {
    const char* home = std::getenv("HOME");
    if (home == nullptr)
      return Error(Reason::kInvalid, "HOME is not set: cannot find ~/.kube/config; name --into");
    target = std::string(home) + "/.kube/config";
  }
  const fs::path path = fs::weakly_canonical(target, ignored);
  if (mkdir(path.parent_path().c_str(), 0700) != 0 && errno != EEXIST)
    return Error(Reason::kInvalid, "{}: {}", path.parent_path().string(), strerror(errno));
  return path.empty() ? target : path.string();
}

// "muster", or what the data directory is called where it is not the usual one.
std::string ContextName(const Arguments& arguments) {
  if (arguments.Has("name")) return arguments.Get("name");
  const char* named = std::getenv("MUSTER_DATA_DIR");
  if (named == nullptr || *named == '\0') return "muster";
  const std::string last = std::filesystem::absolute(named).lexically_normal().filename();
  return last.empty() || last == ".muster" ? "muster" : last;
}

bool IsLoopback(const std::string& server) {
  return server.starts_with("https://127.") || server.starts_with("https://localhost:") ||
         server.starts_with("https://[::1]");
}

// An entry of our name that leads to another machine is somebody else's.
Status CheckOwn(const json::Value& existing, const std::string& name, const std::string& server,
                const std::string& file) {
  const json::Value cluster = client::FindEntry(existing, "clusters", name);
  const std::string other(cluster["cluster"]["server"].Str());
  if (cluster.IsNull() || other == server || IsLoopback(other)) return Status::Ok();
  return Error(Reason::kInvalid,
               "{} has a cluster {:?} at {} already; choose another name: --name NAME", file, name,
               other);
}

Result<json::Value> OwnEntries(const std::string& from, const std::string& name,
                               const json::Value& existing) {
  ASSIGN_OR_RETURN(const json::Value source, ReadDocument(from));
  const json::Value old = client::FindEntry(source, "contexts", source["current-context"].Str());
  const auto entry = [&](const char* field, const char* member) {
    const json::Value found = client::FindEntry(source, field, old["context"][member].Str());
    return json::List({found.Set("name", name)});
  };
  json::Value context = json::Obj({{"cluster", name}, {"user", name}});
  // What was set by `kubectl config set-context --namespace` stays.
  const json::Value before = client::FindEntry(existing, "contexts", name);
  const json::Value ns = before["context"]["namespace"];
  if (!ns.IsNull()) context = context.Set("namespace", ns);
  return json::Obj({{"clusters", entry("clusters", "cluster")},
                    {"users", entry("users", "user")},
                    {"contexts", json::List({json::Obj({{"name", name}, {"context", context}})})},
                    {"current-context", name}});
}

Result<int> WriteTarget(const std::string& file, const json::Value& before,
                        const json::Value& after, Console& console) {
  if (before == after) {
    console.Print("{}: nothing to change\n", file);
    return 0;
  }
  RETURN_IF_ERROR(client::WriteKubeconfig(file, after));
  const std::string current(after["current-context"].Str());
  console.Print("{}: the current context is {}\n", file,
                current.empty() ? "none now" : fmt::format("{:?}", current));
  return 0;
}

Result<json::Value> ReadTarget(const std::string& file) {
  return access(file.c_str(), F_OK) == 0 ? ReadDocument(file) : Result<json::Value>(json::Value());
}

Result<int> Merge(const Arguments& arguments, const std::string& from, Console& console) {
  ASSIGN_OR_RETURN(const std::string file, TargetFile(arguments, from));
  ASSIGN_OR_RETURN(const json::Value existing, ReadTarget(file));
  const std::string name = ContextName(arguments);
  ASSIGN_OR_RETURN(const json::Value added, OwnEntries(from, name, existing));
  const std::string server(added["clusters"].At(0)["cluster"]["server"].Str());
  RETURN_IF_ERROR(CheckOwn(existing, name, server, file));
  json::Value merged = client::MergeKubeconfig(existing, added);
  const json::Value current = existing["current-context"];
  if (arguments.Has("no-switch"))
    merged = merged.Set("current-context", current.IsNull() ? json::Value("") : current);
  return WriteTarget(file, existing, merged, console);
}

Result<int> Unmerge(const Arguments& arguments, Console& console) {
  ASSIGN_OR_RETURN(const std::string file, TargetFile(arguments, DefaultDataDir() + "/kubeconfig"));
  ASSIGN_OR_RETURN(const json::Value existing, ReadTarget(file));
  const std::string name = ContextName(arguments);
  RETURN_IF_ERROR(CheckOwn(existing, name, "", file));
  return WriteTarget(file, existing, client::UnmergeKubeconfig(existing, name), console);
}

Result<int> Run(const Arguments& arguments, Console& console) {
  if (arguments.Has("unmerge")) return Unmerge(arguments, console);
  ASSIGN_OR_RETURN(const std::string path, FindFile(arguments));
  if (arguments.Has("merge")) return Merge(arguments, path, console);
  if (arguments.Has("path")) {
    console.Out(path + "\n");
    return 0;
  }
  ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  console.Out(text);
  return 0;
}

}  // namespace

Command KubeconfigCommand() {
  Command command;
  command.name = "kubeconfig";
  command.summary = "show the kubeconfig, or give it to kubectl";
  command.usage = "[flags]";
  command.details = "It holds a private key that may do everything: keep it to yourself.";
  command.flags = {
      {"path", 0, "", "only where it is", "", {}},
      {"merge", 0, "", "put the cluster where kubectl looks and make it the current one", "", {}},
      {"unmerge", 0, "", "take it away from there", "", {}},
      {"into", 0, "FILE", "with both: not $KUBECONFIG or ~/.kube/config", "", {}},
      {"name", 0, "NAME", "with both: what the cluster, user and context are called there", "", {}},
      {"no-switch", 0, "", "with --merge: leave the current context as it is", "", {}}};
  command.examples = {
      {"export KUBECONFIG=$(muster kubeconfig --path)", "for kubectl in this shell"},
      {"muster kubeconfig --merge", "for kubectl everywhere"},
      {"muster kubeconfig > lab.kubeconfig", "a copy"}};
  command.run_offline = Run;
  return command;
}

}  // namespace muster::cli
