// muster apply: makes the server's objects what the files say.

#include "cli/command.h"
#include "cli/console.h"
#include "cli/errors.h"
#include "cli/manifests.h"
#include "cli/resource_finder.h"
#include "cli/session.h"
#include "cli/three_way.h"
#include "json/parse.h"
#include "json/patch.h"
#include "json/write.h"
#include "schema/registry.h"

namespace muster::cli {
namespace {

constexpr int kMaxConflictRetries = 5;
constexpr int kMaxKindRetries =
    50;  // a kind appears some moments after its CustomResourceDefinition
constexpr Duration kKindRetryDelay = milliseconds(100);

const schema::Schema* SchemaOf(const ApiResource& resource) {
  const schema::KindPtr kind = schema::Registry::BuiltIn().FindKind(
      resource.resource.group, resource.resource.version, resource.kind);
  return kind == nullptr ? nullptr : kind->schema.get();
}

class Applier {
 public:
  Applier(Session& session, Console& console, bool namespace_given)
      : session_(session), console_(console), finder_(session), namespace_given_(namespace_given) {}

  Status Apply(const ManifestObject& manifest) {
    ASSIGN_OR_RETURN(ApiResource resource, FindKind(manifest.object));
    ASSIGN_OR_RETURN(json::Value object, WithNamespace(manifest.object, resource));
    const std::string name = object["metadata"]["name"].Str();
    client::Target target{resource.resource, object["metadata"]["namespace"].Str(), name, ""};
    Result<std::string> outcome = Error(Reason::kConflict, "");
    for (int i = 0;
         i <= kMaxConflictRetries && !outcome && outcome.error().reason() == Reason::kConflict;
         ++i) {
      outcome = ApplyOnce(target, resource, object);
    }
    if (!outcome) return outcome.error();
    console_.Out(resource.ObjectName(name) + " " + *outcome + "\n");
    if (resource.kind == "CustomResourceDefinition") {
      finder_.Forget();
      applied_definition_ = true;
    }
    return Status::Ok();
  }

 private:
  Result<ApiResource> FindKind(const json::Value& object) {
    Result<ApiResource> found =
        finder_.FindKind(object["apiVersion"].AsString(), object["kind"].AsString());
    for (int i = 0; applied_definition_ && !found && i < kMaxKindRetries; ++i) {
      session_.Sleep(kKindRetryDelay);
      finder_.Forget();
      found = finder_.FindKind(object["apiVersion"].AsString(), object["kind"].AsString());
    }
    return found;
  }

  Result<json::Value> WithNamespace(const json::Value& object, const ApiResource& resource) const {
    const std::string_view own = object["metadata"]["namespace"].AsString();
    if (!resource.namespaced) return object.RemovePath({"metadata", "namespace"});
    if (own.empty()) return object.SetPath({"metadata", "namespace"}, session_.ns());
    if (namespace_given_ && own != session_.ns()) {
      return Error(
          Reason::kInvalid,
          "the namespace from the provided object \"{}\" does not match the namespace \"{}\". "
          "You must pass '--namespace={}' to perform this operation.",
          own, session_.ns(), own);
    }
    return object;
  }

  // A field that the server does not know is an error: most are misspelled.
  Result<json::Value> Write(const char* method, const client::Target& target,
                            const char* content_type, const json::Value& body) {
    net::Request request{.method = method,
                         .target = client::ApiClient::PathOf(target) +
                                   "?fieldManager=muster-cli&fieldValidation=Strict"};
    request.headers.Add("Content-Type", content_type);
    request.headers.Add("Accept", "application/json");
    request.body = json::Write(body);
    ASSIGN_OR_RETURN(net::Response answer, session_.Raw(std::move(request)));
    return json::Parse(answer.body);
  }

  // "created", "configured" or "unchanged".
  Result<std::string> ApplyOnce(const client::Target& target, const ApiResource& resource,
                                const json::Value& object) {
    const json::Value wanted = WithLastApplied(object);
    Result<json::Value> current = session_.Get(target);
    if (!current && current.error().reason() == Reason::kNotFound) {
      client::Target collection = target;
      collection.name.clear();
      Result<json::Value> created = Write("POST", collection, "application/json", wanted);
      if (created) return std::string("created");
      // Someone else was faster: the next round merges.
      if (created.error().reason() == Reason::kAlreadyExists)
        return Error(Reason::kConflict, "created meanwhile");
      return Error(created.error());
    }
    if (!current) return Error(current.error());
    const json::Value merged =
        ThreeWayMerge(LastAppliedOf(*current), wanted, *current, SchemaOf(resource));
    json::Value patch = json::CreateMergePatch(*current, merged);
    if (patch.empty()) return std::string("unchanged");
    const json::Value& version = (*current)["metadata"]["resourceVersion"];
    patch = patch.SetPath({"metadata", "resourceVersion"}, version);
    ASSIGN_OR_RETURN(json::Value after,
                     Write("PATCH", target, "application/merge-patch+json", patch));
    return std::string(after["metadata"]["resourceVersion"] == version ? "unchanged"
                                                                       : "configured");
  }

  Session& session_;
  Console& console_;
  ResourceFinder finder_;
  const bool namespace_given_;
  bool applied_definition_ = false;
};

Result<int> Run(Invocation& invocation) {
  std::vector<std::string> files = invocation.arguments.GetAll("filename");
  if (files.empty())
    return Error(Reason::kInvalid, "must specify -f FILE, -f DIRECTORY or -f - for standard input");
  ASSIGN_OR_RETURN(std::vector<ManifestObject> objects,
                   ReadManifests(files, invocation.arguments.Has("recursive")));
  Applier applier(invocation.session, invocation.console, invocation.arguments.Has("namespace"));
  int code = 0;
  for (const ManifestObject& object : objects) {
    Status status = applier.Apply(object);
    if (status.ok()) continue;
    // Without a server nothing else will work; otherwise the other objects are applied, as kubectl
    // does.
    if (status.message().starts_with("http")) return Error(status);
    // "The Pod ... is invalid" is a sentence; after a file name it is not one any more.
    const bool invalid = status.reason() == Reason::kInvalid && !status.details().kind.empty();
    status = status.WithPrefix(object.source + ": ");
    invocation.console.Err(invalid ? status.message() : DescribeError(status));
    code = 1;
  }
  return code;
}

}  // namespace

Command ApplyCommand() {
  Command command;
  command.name = "apply";
  command.summary = "create or change objects to what files say";
  command.usage = "-f FILE|DIRECTORY|- [flags]";
  command.details =
      "Fields that the files no longer name are removed if an earlier apply set them; what others "
      "wrote stays.\n"
      "Objects may be applied by kubectl and muster in turn.";
  command.flags = {{"filename",
                    'f',
                    "FILE",
                    "a file, a directory or - for standard input; may be repeated",
                    "",
                    {}},
                   {"recursive", 'R', "", "also the directories below", "", {}}};
  command.examples = {
      {"muster apply -f job.yaml", "all objects of one file"},
      {"muster apply -f manifests/ -n team", "a directory, into the namespace team"},
      {"cat job.yaml | muster apply -f -", "standard input"}};
  command.instead = "name files with -f";
  command.run = Run;
  return command;
}

}  // namespace muster::cli
