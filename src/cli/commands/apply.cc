// muster apply: makes the server's objects what the files say.

#include "cli/applier.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/errors.h"
#include "cli/manifests.h"
#include "cli/session.h"

namespace muster::cli {
namespace {

Result<int> Run(Invocation& invocation) {
  std::vector<std::string> files = invocation.arguments.GetAll("filename");
  if (files.empty())
    return Error(Reason::kInvalid, "must specify -f FILE, -f DIRECTORY or -f - for standard input");
  ASSIGN_OR_RETURN(std::vector<ManifestObject> objects,
                   ReadManifests(files, invocation.arguments.Has("recursive")));
  Applier applier(invocation.session, invocation.arguments.Has("namespace"));
  int code = 0;
  for (const ManifestObject& object : objects) {
    const Result<Applied> applied = applier.Apply(object.object);
    if (applied) {
      invocation.console.Print("{} {}\n", applied->name, applied->outcome);
      continue;
    }
    Status status = applied.error();
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
