// muster wait: returns when objects have reached a state.

#include <memory>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/duration_flag.h"
#include "cli/object_watch.h"
#include "cli/resource_arguments.h"
#include "cli/session.h"
#include "cli/waiting.h"

namespace muster::cli {
namespace {

struct Goal {
  bool deleted = false;
  std::string condition;
  std::string value = "True";
};

Result<Goal> ParseGoal(const std::string& text) {
  Goal goal;
  if (text == "delete") {
    goal.deleted = true;
    return goal;
  }
  if (text.starts_with("condition=")) {
    const std::string rest = text.substr(10);
    const size_t equals = rest.find('=');
    goal.condition = rest.substr(0, equals);
    if (equals != std::string::npos) goal.value = rest.substr(equals + 1);
    if (!goal.condition.empty()) return goal;
  }
  return Error(Reason::kInvalid,
               "--for {:?}: expected condition=NAME, condition=NAME=VALUE or delete", text);
}

bool Reached(const Goal& goal, const json::Value& object) {
  if (goal.deleted) return object.IsNull();
  return EqualsIgnoreCase(FindCondition(object, goal.condition)["status"].AsString(), goal.value);
}

// Ok when the goal is reached.
Status WaitFor(Session& session, const ApiResource& resource, const std::string& name,
               const Goal& goal, Duration timeout) {
  Status outcome = Error(Reason::kInvalid, "timed out waiting for the condition on {}/{}",
                         resource.resource.plural, name);
  const std::string ns = NamespaceFor(resource, session);
  std::unique_ptr<ObjectWatch> watch;
  TimerId timer = 0;
  session.RunUntilDone([&](std::function<void()> done) {
    timer = session.loop().After(timeout, [done] { done(); });
    auto look = [&, done](const json::Value& object) {
      if (Reached(goal, object)) {
        outcome = Status::Ok();
        return done();
      }
      // What has failed for good will not succeed.
      const bool hopeless = !goal.deleted && goal.value == "True" && JobFinished(object) &&
                            goal.condition != "Failed";
      if (hopeless) {
        const json::Value& failed = FindCondition(object, "Failed");
        outcome = Error(Reason::kInvalid, "{} failed: {}", resource.ObjectName(name),
                        failed["message"].AsString());
        return done();
      }
    };
    watch = std::make_unique<ObjectWatch>(
        session, ObjectWatch::Selection{resource.resource, ns, "", "metadata.name=" + name},
        [look](const std::string&, const json::Value& object) { look(object); });
    watch->OnSync([&, done] {
      if (!watch->Find(name).IsNull()) return;
      outcome = goal.deleted ? Status::Ok()
                             : Status(Error(Reason::kNotFound, "{} \"{}\" not found",
                                            resource.resource.plural, name));
      done();
    });
    watch->OnError([&, done](const Status& status) {
      if (watch->synced()) return;
      outcome = status;
      done();
    });
  });
  session.loop().Cancel(timer);
  return outcome;
}

Result<int> Run(Invocation& invocation) {
  ASSIGN_OR_RETURN(const Goal goal, ParseGoal(invocation.arguments.Get("for")));
  ASSIGN_OR_RETURN(const Duration timeout,
                   ParseDurationFlag("timeout", invocation.arguments.Get("timeout")));
  Session& session = invocation.session;
  ResourceFinder finder(session);
  ASSIGN_OR_RETURN(std::vector<Wanted> wanted,
                   ParseWanted(finder, invocation.arguments.positionals));
  const std::string selector = invocation.arguments.Get("selector");
  const Time deadline = session.loop().Now() + timeout;
  for (Wanted& one : wanted) {
    if (one.names.empty()) {
      if (selector.empty() && !invocation.arguments.Has("all")) {
        return Error(Reason::kInvalid, "name objects, or select them with --selector or --all");
      }
      client::ListOptions options;
      options.label_selector = selector;
      ASSIGN_OR_RETURN(
          json::Value list,
          session.List(one.resource.resource, NamespaceFor(one.resource, session), options));
      for (const json::Value& item : list["items"].items())
        one.names.push_back(item["metadata"]["name"].Str());
      if (one.names.empty()) return Error(Reason::kInvalid, "no matching resources found");
    }
    for (const std::string& name : one.names) {
      RETURN_IF_ERROR(WaitFor(session, one.resource, name, goal, deadline - session.loop().Now()));
      invocation.console.Print("{} condition met\n", one.resource.ObjectName(name));
    }
  }
  return 0;
}

}  // namespace

Command WaitCommand() {
  Command command;
  command.name = "wait";
  command.summary = "wait until objects have reached a state";
  command.usage = "TYPE/NAME... --for=condition=NAME|delete [flags]";
  command.details =
      "A job that failed is not waited for: the command returns at once and says why it failed.";
  command.flags = {
      {"for", 0, "GOAL", "condition=NAME, condition=NAME=VALUE or delete", "", {}},
      {"timeout", 0, "DURATION", "give up after this time; negative = a week", "30s", {}},
      {"selector", 'l', "QUERY", "all objects of the type with these labels", "", {}},
      {"all", 0, "", "all objects of the type", "", {}}};
  command.examples = {
      {"muster wait pytorchjob/digits --for=condition=Succeeded --timeout=10m", "a job"},
      {"muster wait node --all --for=condition=Ready", "every node"},
      {"muster wait pod/web-0 --for=delete", "until it is gone"}};
  command.most_words = kAnyNumber;
  command.exclusive = {{kNames, "selector", "all"}};
  command.names_objects = true;
  command.run = Run;
  return command;
}

}  // namespace muster::cli
