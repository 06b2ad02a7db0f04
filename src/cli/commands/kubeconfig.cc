// muster kubeconfig: shows the kubeconfig in use, or puts it where kubectl looks.

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
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
  ASSIGN_OR_RETURN(std::vector<json::Value> documents, json::ParseYaml(text));
  return documents.empty() ? json::Value() : documents.front();
}

Result<int> Merge(const std::string& from, Console& console) {
  const char* home = std::getenv("HOME");
  if (home == nullptr)
    return Error(Reason::kInvalid, "HOME is not set: cannot find ~/.kube/config");
  const std::string dir = std::string(home) + "/.kube";
  const std::string to = dir + "/config";
  if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
    return Error(Reason::kInvalid, "{}: {}", dir, strerror(errno));
  }
  json::Value existing;
  if (access(to.c_str(), F_OK) == 0) {
    ASSIGN_OR_RETURN(existing, ReadDocument(to));
  }
  ASSIGN_OR_RETURN(const json::Value added, ReadDocument(from));
  RETURN_IF_ERROR(client::WriteKubeconfig(to, client::MergeKubeconfig(existing, added)));
  console.Print("{}: the current context is now {:?}\n", to, added["current-context"].Str());
  return 0;
}

Result<int> Run(const Arguments& arguments, Console& console) {
  ASSIGN_OR_RETURN(const std::string path, FindFile(arguments));
  if (arguments.Has("merge")) return Merge(path, console);
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
      {"merge", 0, "", "put the cluster into ~/.kube/config and make it the current one", "", {}}};
  command.examples = {
      {"export KUBECONFIG=$(muster kubeconfig --path)", "for kubectl in this shell"},
      {"muster kubeconfig --merge", "for kubectl everywhere"},
      {"muster kubeconfig > lab.kubeconfig", "a copy"}};
  command.run_offline = Run;
  return command;
}

}  // namespace muster::cli
