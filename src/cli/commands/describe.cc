// muster describe: an object with everything that happened to it.

#include "cli/command.h"
#include "cli/console.h"
#include "cli/describe_text.h"
#include "cli/printable.h"
#include "cli/resource_arguments.h"
#include "cli/session.h"

namespace muster::cli {
namespace {

Result<std::string> Describe(Session& session, const ApiResource& resource, json::Value object) {
  if (!object.Has("kind"))
    object = object.Set("kind", resource.kind).Set("apiVersion", resource.ApiVersion());
  const std::string ns = object["metadata"]["namespace"].Str();
  client::ListOptions options;
  options.field_selector = "involvedObject.name=" + object["metadata"]["name"].Str() +
                           ",involvedObject.kind=" + resource.kind;
  // Events of cluster-scoped objects live in "default".
  Result<json::Value> events =
      session.List(client::resources::kEvents, ns.empty() ? "default" : ns, options);
  if (!events) return Error(events.error());
  const Time now = session.loop().Now();
  return DescribeObject(object, now) + DescribeEvents((*events)["items"], now);
}

Result<int> Run(Invocation& invocation) {
  Session& session = invocation.session;
  ResourceFinder finder(session);
  ASSIGN_OR_RETURN(std::vector<Wanted> wanted,
                   ParseWanted(finder, invocation.arguments.positionals));
  bool first = true;
  for (const Wanted& one : wanted) {
    const std::string ns = NamespaceFor(one.resource, session);
    std::vector<json::Value> objects;
    for (const std::string& name : one.names) {
      ASSIGN_OR_RETURN(json::Value object, session.Get({one.resource.resource, ns, name, ""}));
      objects.push_back(std::move(object));
    }
    if (one.names.empty()) {
      client::ListOptions options;
      options.label_selector = invocation.arguments.Get("selector");
      ASSIGN_OR_RETURN(json::Value list, session.List(one.resource.resource, ns, options));
      objects.assign(list["items"].items().begin(), list["items"].items().end());
    }
    for (json::Value& object : objects) {
      ASSIGN_OR_RETURN(const std::string text, Describe(session, one.resource, std::move(object)));
      if (!std::exchange(first, false)) invocation.console.Out("\n\n");
      invocation.console.Out(PrintableLines(text));
    }
  }
  if (first)
    invocation.console.Err(fmt::format("No resources found in {} namespace.", session.ns()));
  return 0;
}

}  // namespace

Command DescribeCommand() {
  Command command;
  command.name = "describe";
  command.summary = "show an object with everything that happened to it";
  command.usage = "TYPE [NAME...] | TYPE/NAME... [flags]";
  command.flags = {{"selector", 'l', "QUERY", "all objects of the type with these labels", "", {}}};
  command.examples = {{"muster describe pytorchjob digits", "a job: replicas, conditions, events"},
                      {"muster describe node", "every node"}};
  command.most_words = kAnyNumber;
  command.exclusive = {{kNames, "selector"}};
  command.names_objects = true;
  command.run = Run;
  return command;
}

}  // namespace muster::cli
