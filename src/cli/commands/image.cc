// muster image: the images that a node has for the process runtime.

#include <filesystem>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/session.h"
#include "cli/table_printer.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::cli {
namespace {

using json::Value;

// The node that was named, or the only one that is not simulated.
Result<std::string> NodeOf(Invocation& run) {
  if (run.arguments.Has("node")) return run.arguments.Get("node");
  ASSIGN_OR_RETURN(const Value list, run.session.GetJson("/api/v1/nodes"));
  std::vector<std::string> names;
  for (const Value& node : list["items"].items()) {
    if (node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].AsInt() > 0)
      names.push_back(node["metadata"]["name"].Str());
  }
  if (names.size() == 1) return names[0];
  return Error(Reason::kInvalid, "the cluster has {} nodes with a kubelet: choose one with --node",
               names.size());
}

// One request to the node's image cache; what takes long is asked for again.
Result<Value> Ask(Invocation& run, const std::string& what, const Value& body) {
  ASSIGN_OR_RETURN(const std::string node, NodeOf(run));
  net::Request request;
  request.method = what.empty() ? "GET" : "POST";
  request.target = fmt::format("/api/v1/nodes/{}/proxy/images{}{}", PercentEncode(node),
                               what.empty() ? "" : "/", what);
  if (!what.empty()) {
    request.body = json::Write(body);
    request.headers.Set("Content-Type", "application/json");
  }
  while (true) {
    ASSIGN_OR_RETURN(const net::Response answer, run.session.Send(request));
    run.console.StatusLine(answer.status == 202 ? "still at work" : "");
    if (answer.status == 202) continue;
    if (answer.status == 200) return json::Parse(answer.body);
    const Result<Value> status = json::Parse(answer.body);
    const std::string_view message =
        status ? (*status)["message"].AsString() : std::string_view(Trim(answer.body));
    return Error(Status(ReasonFromName("", answer.status), std::string(message)));
  }
}

std::string Size(int64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1024 * 1024);
  return mib < 1024 ? fmt::format("{:.1f} MiB", mib) : fmt::format("{:.1f} GiB", mib / 1024);
}

std::string ShortId(const Value& image) {
  const std::string id = image["id"].Str();
  return id.substr(id.find(':') + 1, 12);
}

Result<int> PrintList(Invocation& run, const Value& answer) {
  if (run.arguments.Get("output") == "json") {
    run.console.Out(json::WritePretty(answer) + "\n");
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {{"IMAGE", "DIGEST", "ID", "SIZE", "USED BY"}};
  for (const Value& image : answer["images"].items()) {
    std::string digest = image["digests"].At(0).Str();
    digest = digest.substr(digest.find('@') + 1);
    const std::string users = Join(json::ToStrings(image["usedBy"]), ",");
    std::vector<std::string> names = json::ToStrings(image["names"]);
    if (names.empty()) names.emplace_back("<none>");
    for (const std::string& name : names) {
      rows.push_back({name, digest.empty() ? "<none>" : digest.substr(0, 19), ShortId(image),
                      Size(image["sizeBytes"].AsInt()), users.empty() ? "<none>" : users});
    }
  }
  run.console.Out(FormatColumns(rows));
  return 0;
}

Result<int> PrintNames(Invocation& run, const char* done, const Value& answer) {
  if (run.arguments.Get("output") == "json") return PrintList(run, answer);
  for (const Value& image : answer["images"].items()) {
    run.console.Print("{} {} ({}, {})\n", done, Join(json::ToStrings(image["names"]), ", "),
                      ShortId(image), Size(image["sizeBytes"].AsInt()));
  }
  return 0;
}

Result<int> Run(Invocation& run) {
  std::vector<std::string> words = run.arguments.positionals;
  const std::string what = words[0];
  words.erase(words.begin());
  if (what == "list") {
    ASSIGN_OR_RETURN(const Value answer, Ask(run, "", {}));
    return PrintList(run, answer);
  }
  for (const std::string& word : words) {
    if (what == "load") {
      // NAME:TAG of one image in a layout may follow its path; the node reads the file itself.
      std::error_code error;
      const std::string path = std::filesystem::absolute(word, error).lexically_normal().string();
      const Value body = json::Obj({{"path", path}, {"name", run.arguments.Get("name")}});
      ASSIGN_OR_RETURN(const Value answer, Ask(run, "load", body));
      ASSIGN_OR_RETURN([[maybe_unused]] const int code, PrintNames(run, "Loaded", answer));
    } else if (what == "pull") {
      ASSIGN_OR_RETURN(const Value answer, Ask(run, "pull", json::Obj({{"image", word}})));
      ASSIGN_OR_RETURN([[maybe_unused]] const int code, PrintNames(run, "Pulled", answer));
    } else {
      ASSIGN_OR_RETURN(const Value answer, Ask(run, "remove", json::Obj({{"image", word}})));
      run.console.Print("Removed {}\n", word);
    }
  }
  return 0;
}

}  // namespace

Command ImageCommand() {
  Command command;
  command.name = "image";
  command.summary = "pull, load, list and remove the images that a node has";
  command.usage = "pull IMAGE... | load FILE|FOLDER... | list | rm IMAGE|ID...";
  command.details =
      "Nodes need skopeo and umoci for it. `load` reads docker's and OCI's archives and OCI "
      "layouts "
      "of the node's own machine. An image that a pod uses is not removed.";
  command.flags = {{"node", 0, "NAME", "whose images (default: the only node)", "", {}},
                   {"name", 0, "NAME", "for `load`: of an image that has none in its file", "", {}},
                   {"output", 'o', "FORMAT", "json", "", {"json"}}};
  command.examples = {
      {"muster image pull pytorch/pytorch:2.2.0-cuda12.1-cudnn8-runtime", "before a pod needs it"},
      {"docker save web > web.tar; muster image load web.tar", "without a registry"},
      {"muster image list", "with sizes, and which pods use them"}};
  command.verbs = {{"pull", 1, kAnyNumber, {"output"}},
                   {"load", 1, kAnyNumber, {"output", "name"}},
                   {"list", 0, 0, {"output"}},
                   {"rm", 1, kAnyNumber}};
  command.run = Run;
  return command;
}

}  // namespace muster::cli
