// muster delete: removes objects and waits until they are gone.

#include <memory>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/manifests.h"
#include "cli/object_watch.h"
#include "cli/resource_arguments.h"
#include "cli/session.h"

namespace muster::cli {
namespace {

struct DeleteFlags {
  client::DeleteOptions options;
  bool wait = true;
  bool ignore_not_found = false;
};

Result<DeleteFlags> FlagsFrom(const Arguments& arguments) {
  DeleteFlags flags;
  flags.ignore_not_found = arguments.Has("ignore-not-found");
  flags.wait = arguments.Get("wait") != "false";
  const std::string cascade = arguments.Get("cascade");
  flags.options.propagation_policy = cascade == "foreground" ? "Foreground"
                                     : cascade == "orphan"   ? "Orphan"
                                                             : "Background";
  ASSIGN_OR_RETURN(const int64_t grace, arguments.GetInt("grace-period", -1));
  if (grace >= 0) flags.options.grace_period_seconds = grace;
  if (arguments.Has("now")) flags.options.grace_period_seconds = 1;
  if (arguments.Has("force")) flags.options.grace_period_seconds = 0;
  return flags;
}

struct Doomed {
  ApiResource resource;
  std::string ns, name, uid;
};

// Until the object, or the one with this uid, is no more.
void WaitUntilGone(Session& session, const Doomed& doomed) {
  std::unique_ptr<ObjectWatch> watch;
  session.RunUntilDone([&](std::function<void()> done) {
    auto look = [&doomed, done](const json::Value& object) {
      if (object.IsNull() ||
          (!doomed.uid.empty() && object["metadata"]["uid"].AsString() != doomed.uid))
        done();
    };
    watch = std::make_unique<ObjectWatch>(
        session,
        ObjectWatch::Selection{doomed.resource.resource, doomed.ns, "",
                               "metadata.name=" + doomed.name},
        [look](const std::string&, const json::Value& object) { look(object); });
    watch->OnSync([&, look] { look(watch->Find(doomed.name)); });
  });
}

class Deleter {
 public:
  Deleter(Invocation& invocation, DeleteFlags flags)
      : session_(invocation.session), console_(invocation.console), flags_(std::move(flags)) {}

  Status Delete(const ApiResource& resource, const std::string& ns, const std::string& name) {
    Result<json::Value> answer = session_.Delete({resource.resource, ns, name, ""}, flags_.options);
    if (!answer) {
      const bool missing = answer.error().reason() == Reason::kNotFound;
      return missing && flags_.ignore_not_found ? Status::Ok() : answer.error();
    }
    console_.Print("{} \"{}\" {}\n", resource.QualifiedSingular(), name,
                   flags_.options.grace_period_seconds == 0 ? "force deleted" : "deleted");
    // The answer is the object that goes, or a Status that names its uid.
    std::string uid = (*answer)["metadata"]["uid"].Str();
    if (uid.empty()) uid = (*answer)["details"]["uid"].Str();
    doomed_.push_back({resource, ns, name, uid});
    return Status::Ok();
  }

  void Wait() {
    if (!flags_.wait) return;
    for (const Doomed& doomed : doomed_) WaitUntilGone(session_, doomed);
  }

 private:
  Session& session_;
  Console& console_;
  const DeleteFlags flags_;
  std::vector<Doomed> doomed_;
};

Status DeleteNamed(Invocation& invocation, ResourceFinder& finder, Deleter& deleter) {
  const Arguments& arguments = invocation.arguments;
  Session& session = invocation.session;
  ASSIGN_OR_RETURN(std::vector<Wanted> wanted, ParseWanted(finder, arguments.positionals));
  for (Wanted& one : wanted) {
    const std::string ns = NamespaceFor(one.resource, session);
    if (one.names.empty()) {
      if (!arguments.Has("selector") && !arguments.Has("all")) {
        return Error(Reason::kInvalid,
                     "name what to delete, or select it with --selector or --all");
      }
      client::ListOptions options;
      options.label_selector = arguments.Get("selector");
      ASSIGN_OR_RETURN(json::Value list, session.List(one.resource.resource, ns, options));
      for (const json::Value& item : list["items"].items())
        one.names.push_back(item["metadata"]["name"].Str());
      if (one.names.empty()) invocation.console.Out("No resources found\n");
    }
    for (const std::string& name : one.names)
      RETURN_IF_ERROR(deleter.Delete(one.resource, ns, name));
  }
  return Status::Ok();
}

Status DeleteFromFiles(Invocation& invocation, ResourceFinder& finder, Deleter& deleter) {
  ASSIGN_OR_RETURN(std::vector<ManifestObject> objects,
                   ReadManifests(invocation.arguments.GetAll("filename"),
                                 invocation.arguments.Has("recursive")));
  for (const ManifestObject& manifest : objects) {
    const json::Value& object = manifest.object;
    ASSIGN_OR_RETURN(ApiResource resource,
                     finder.FindKind(object["apiVersion"].AsString(), object["kind"].AsString()));
    const std::string own = object["metadata"]["namespace"].Str();
    const std::string ns =
        own.empty() || !resource.namespaced ? NamespaceFor(resource, invocation.session) : own;
    RETURN_IF_ERROR(deleter.Delete(resource, ns, object["metadata"]["name"].Str()));
  }
  return Status::Ok();
}

Result<int> Run(Invocation& invocation) {
  ASSIGN_OR_RETURN(DeleteFlags flags, FlagsFrom(invocation.arguments));
  ResourceFinder finder(invocation.session);
  Deleter deleter(invocation, std::move(flags));
  const bool files = invocation.arguments.Has("filename");
  if (files && !invocation.arguments.positionals.empty()) {
    return Error(Reason::kInvalid, "give either -f or names");
  }
  Status status = files ? DeleteFromFiles(invocation, finder, deleter)
                        : DeleteNamed(invocation, finder, deleter);
  deleter.Wait();
  if (!status.ok()) return Error(status);
  return 0;
}

}  // namespace

Command DeleteCommand() {
  Command command;
  command.name = "delete";
  command.summary = "remove objects and wait until they are gone";
  command.usage = "TYPE NAME... | TYPE/NAME... | -f FILE [flags]";
  command.flags = {
      {"filename", 'f', "FILE", "what a file, a directory or - (standard input) names", "", {}},
      {"recursive", 'R', "", "also the directories below", "", {}},
      {"selector", 'l', "QUERY", "all objects of the type with these labels", "", {}},
      {"all", 0, "", "all objects of the type", "", {}},
      {"ignore-not-found", 0, "", "a missing object is no error", "", {}},
      {"cascade",
       0,
       "HOW",
       "what happens to what it owns",
       "background",
       {"background", "foreground", "orphan"}},
      {"grace-period", 0, "SECONDS", "how long pods may take to end", "", {}},
      {"now", 0, "", "as --grace-period 1", "", {}},
      {"force", 0, "", "as --grace-period 0: do not wait for the node", "", {}},
      {"wait", 0, "BOOL", "wait until they are gone", "true", {"true", "false"}}};
  command.examples = {
      {"muster delete pytorchjob digits", "a job with its pods"},
      {"muster delete -f job.yaml --ignore-not-found", "everything that a file made"},
      {"muster delete pods -l app=web --wait=false", "several, without waiting"}};
  command.most_words = kAnyNumber;
  command.exclusive = {{kNames, "filename", "selector", "all"}, {"grace-period", "now", "force"}};
  command.needs = {{"recursive", {"filename"}}};
  command.names_objects = true;
  command.run = Run;
  return command;
}

}  // namespace muster::cli
