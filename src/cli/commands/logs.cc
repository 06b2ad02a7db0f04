// muster logs: what the containers of pods and jobs wrote.

#include <memory>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/job_follower.h"
#include "cli/log_follower.h"
#include "cli/object_watch.h"
#include "cli/resource_arguments.h"
#include "cli/session.h"
#include "cli/waiting.h"
#include "schema/pod_phase.h"

namespace muster::cli {
namespace {

// "5s", "2m", "3h" -> seconds.
Result<std::string> SinceSeconds(const std::string& text) {
  if (text.empty()) return std::string();
  int64_t unit = 1;
  std::string_view digits = text;
  if (digits.ends_with('s') || digits.ends_with('m') || digits.ends_with('h')) {
    unit = digits.back() == 'h' ? 3600 : digits.back() == 'm' ? 60 : 1;
    digits.remove_suffix(1);
  }
  const std::optional<int64_t> number = ParseInt(digits);
  if (!number || *number <= 0 || *number > INT32_MAX) {
    return Error(Reason::kInvalid, "--since {:?}: expected a duration such as 30s, 5m or 1h", text);
  }
  return std::to_string(*number * unit);
}

Result<LogOptions> OptionsFrom(const Arguments& arguments) {
  LogOptions options;
  options.container = arguments.Get("container");
  options.follow = arguments.Has("follow");
  options.previous = arguments.Has("previous");
  options.timestamps = arguments.Has("timestamps");
  options.prefix = arguments.Has("prefix");
  ASSIGN_OR_RETURN(const int64_t tail, arguments.GetInt("tail", -1));
  if (tail >= 0) options.tail_lines = std::to_string(tail);
  ASSIGN_OR_RETURN(options.since_seconds, SinceSeconds(arguments.Get("since")));
  return options;
}

// Each pod's log as it is now, one after the other.
Result<int> PrintOnce(Invocation& invocation, const std::vector<json::Value>& pods,
                      LogOptions options) {
  options.unconditional = true;
  options.prefix = options.prefix || pods.size() > 1;
  Status failure;
  for (const json::Value& pod : pods) {
    LogFollower follower(invocation.session, invocation.console, options);
    follower.OnError([&failure](const Status& status) { failure = status; });
    invocation.session.RunUntilDone([&](std::function<void()> done) {
      follower.OnIdle(std::move(done));
      follower.OnPod(pod);
    });
    if (!failure.ok() && pods.size() > 1) {
      invocation.console.Err(
          fmt::format("{}: {}", pod["metadata"]["name"].AsString(), failure.message()));
      failure = Status::Ok();
    }
  }
  if (!failure.ok()) return Error(failure);
  return 0;
}

// Until every pod that matches is over and read; waits for pods that have not started.
Result<int> FollowPods(Invocation& invocation, ObjectWatch::Selection selection,
                       LogOptions options) {
  Session& session = invocation.session;
  Console& console = invocation.console;
  const bool single = !selection.field_selector.empty();
  options.restarts = false;
  LogFollower logs(session, console, options);
  Status failure;
  std::function<void()> look;
  std::unique_ptr<ObjectWatch> pods;
  session.RunUntilDone([&](std::function<void()> done) {
    look = [&, done] {
      if (!pods || !pods->synced()) return;
      bool over = true;
      for (const auto& [name, pod] : pods->objects()) {
        const std::string_view phase = pod["status"]["phase"].AsString();
        const bool ended = schema::IsFinalPhase(phase) || logs.Finished(name);
        over = over && ended;
      }
      console.StatusLine(WhyPodsWait(pods->objects()));
      if (over && logs.Idle()) done();
    };
    pods = std::make_unique<ObjectWatch>(session, selection,
                                         [&](const std::string&, const json::Value& pod) {
                                           logs.OnPod(pod);
                                           if (pods) look();
                                         });
    pods->OnSync([&] { look(); });
    pods->OnError([&, done](const Status& status) {
      if (pods->synced()) return console.StatusLine("waiting for the server: " + status.message());
      failure = status;
      done();
    });
    logs.OnIdle([&] { look(); });
    logs.OnError([&](const Status& status) { failure = status; });
  });
  console.StatusLine("");
  if (!failure.ok() && single) return Error(failure);
  return 0;
}

Result<int> FollowJob(Invocation& invocation, const ApiResource& resource, const json::Value& job,
                      LogOptions options) {
  std::unique_ptr<JobFollower> follower;
  invocation.session.RunUntilDone([&](std::function<void()> done) {
    follower =
        std::make_unique<JobFollower>(invocation.session, invocation.console, resource, job,
                                      std::move(options), [done](const json::Value&) { done(); });
  });
  return 0;
}

Result<std::vector<json::Value>> ListPods(Session& session, const std::string& selector) {
  client::ListOptions options;
  options.label_selector = selector;
  ASSIGN_OR_RETURN(json::Value list, session.List(client::resources::kPods, session.ns(), options));
  return std::vector<json::Value>(list["items"].items().begin(), list["items"].items().end());
}

Result<int> LogsOfSelector(Invocation& invocation, const std::string& selector,
                           LogOptions options) {
  ASSIGN_OR_RETURN(std::vector<json::Value> pods, ListPods(invocation.session, selector));
  if (pods.empty()) {
    invocation.console.Err(
        fmt::format("No resources found in {} namespace.", invocation.session.ns()));
    return 0;
  }
  if (!options.follow) return PrintOnce(invocation, pods, std::move(options));
  options.prefix = options.prefix || pods.size() > 1;
  return FollowPods(invocation, {client::resources::kPods, invocation.session.ns(), selector, ""},
                    std::move(options));
}

Result<int> Run(Invocation& invocation) {
  ASSIGN_OR_RETURN(LogOptions options, OptionsFrom(invocation.arguments));
  const std::string selector = invocation.arguments.Get("selector");
  const std::vector<std::string>& positionals = invocation.arguments.positionals;
  if (!selector.empty()) {
    if (!positionals.empty()) return Error(Reason::kInvalid, "give either a name or --selector");
    return LogsOfSelector(invocation, selector, std::move(options));
  }
  ResourceFinder finder(invocation.session);
  ASSIGN_OR_RETURN(OneObject wanted, ParseOne(finder, positionals, "pods"));
  const std::string ns = NamespaceFor(wanted.resource, invocation.session);
  ASSIGN_OR_RETURN(json::Value object,
                   invocation.session.Get({wanted.resource.resource, ns, wanted.name, ""}));
  if (wanted.resource.kind == "Pod") {
    if (!options.follow) return PrintOnce(invocation, {object}, std::move(options));
    return FollowPods(invocation,
                      {wanted.resource.resource, ns, "", "metadata.name=" + wanted.name},
                      std::move(options));
  }
  if (options.follow) return FollowJob(invocation, wanted.resource, object, std::move(options));
  ASSIGN_OR_RETURN(std::vector<json::Value> pods,
                   ListPods(invocation.session, PodSelectorOf(wanted.resource, object)));
  if (pods.empty())
    return Error(Reason::kInvalid, "{} has no pods", wanted.resource.ObjectName(wanted.name));
  options.strip = wanted.name + "-";
  return PrintOnce(invocation, pods, std::move(options));
}

}  // namespace

Command LogsCommand() {
  Command command;
  command.name = "logs";
  command.summary = "show what pods and jobs wrote";
  command.usage = "POD | TYPE/NAME | -l QUERY [flags]";
  command.details =
      "Of a job with several pods every line begins with the pod it comes from. With --follow, "
      "muster waits for pods\n"
      "that have not started, goes on after restarts, and ends when the job does.";
  command.flags = {{"follow", 'f', "", "go on until the end", "", {}},
                   {"container", 'c', "NAME", "of this container (default: the first)", "", {}},
                   {"selector", 'l', "QUERY", "of all pods with these labels", "", {}},
                   {"tail", 0, "N", "only the last N lines", "", {}},
                   {"since", 0, "DURATION", "only what is newer, e.g. 30s, 5m, 1h", "", {}},
                   {"previous", 'p', "", "of the container's run before the last restart", "", {}},
                   {"timestamps", 0, "", "the time before each line", "", {}},
                   {"prefix", 0, "", "the pod before each line, also for one pod", "", {}}};
  command.examples = {{"muster logs -f pytorchjob/digits", "all ranks of a job, until it ends"},
                      {"muster logs web-0 --tail 20", "the last lines of one pod"},
                      {"muster logs -l app=web --since 5m", "several pods"}};
  command.most_words = 2;
  command.exclusive = {{kNames, "selector"}};
  command.names_objects = true;
  command.run = Run;
  return command;
}

}  // namespace muster::cli
