// muster kubeconfig: shows the kubeconfig in use, or puts it where kubectl looks.

#include <unistd.h>

#include "base/files.h"
#include "base/strings.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/kubeconfig_merge.h"
#include "cli/session.h"

namespace muster::cli {
namespace {

std::string OwnFile(const Arguments& arguments) {
  if (arguments.Has("kubeconfig")) return arguments.Get("kubeconfig");
  const std::string dir = arguments.Has("data-dir") ? arguments.Get("data-dir") : DefaultDataDir();
  return dir.empty() ? "" : dir + "/kubeconfig";
}

// The first file that exists: for --merge never those of $KUBECONFIG, which is where it goes.
Result<std::string> FindFile(const Arguments& arguments) {
  const bool own = arguments.Has("merge") || arguments.Has("data-dir");
  std::vector<std::string> looked_at;
  for (const std::vector<std::string>& files :
       own ? std::vector<std::vector<std::string>>{{OwnFile(arguments)}}
           : KubeconfigCandidates(arguments.Get("kubeconfig"))) {
    for (const std::string& file : files) {
      if (access(file.c_str(), F_OK) == 0) return file;
      looked_at.push_back(file);
    }
  }
  if (Join(looked_at, "").empty())
    return Error(Reason::kInvalid, "HOME is not set: name a directory with --data-dir");
  return Error(
      Reason::kInvalid,
      "there is no kubeconfig at {}. Start a cluster with: muster up (or name its directory: "
      "--data-dir)",
      Join(looked_at, " or "));
}

Result<int> Tell(const Result<std::string>& done, Console& console) {
  if (!done) return Error(done.error());
  console.Out(*done + "\n");
  return 0;
}

Result<int> Run(const Arguments& arguments, Console& console) {
  const MergeRequest request = {.own_file = OwnFile(arguments),
                                .into = arguments.Get("into"),
                                .name = arguments.Get("name"),
                                .switch_context = !arguments.Has("no-switch")};
  if (arguments.Has("unmerge")) return Tell(UnmergeCluster(request), console);
  ASSIGN_OR_RETURN(const std::string path, FindFile(arguments));
  if (arguments.Has("merge")) return Tell(MergeCluster(request), console);
  if (arguments.Has("path")) {
    console.Out(path + "\n");
    return 0;
  }
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path));
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
      {"data-dir", 0, "DIR", "of the cluster (default: as `muster up`)", "", {}},
      {"kubeconfig", 0, "FILE", "not that of a data directory", "", {}},
      {"path", 0, "", "only where it is", "", {}},
      {"merge", 0, "", "put the cluster where kubectl looks and make it the current one", "", {}},
      {"unmerge", 0, "", "take it away from there; the context before it is current again", "", {}},
      {"into", 0, "FILE", "with both: not $KUBECONFIG or ~/.kube/config", "", {}},
      {"name", 0, "NAME", "with both: what the cluster, user and context are called there", "", {}},
      {"no-switch", 0, "", "with --merge: leave the current context as it is", "", {}}};
  command.examples = {
      {"export KUBECONFIG=$(muster kubeconfig --path)", "for kubectl in this shell"},
      {"muster kubeconfig --merge", "for kubectl everywhere"},
      {"muster kubeconfig > lab.kubeconfig", "a copy"}};
  command.exclusive = {{"path", "merge", "unmerge"}, {"data-dir", "kubeconfig"}};
  command.needs = {
      {"into", {"merge", "unmerge"}}, {"name", {"merge", "unmerge"}}, {"no-switch", {"merge"}}};
  command.local = true;
  command.run_offline = Run;
  return command;
}

}  // namespace muster::cli
