#include "simulation/scenarios.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/strings.h"
#include "json/parse.h"
#include "simulation/disruption_budgets.h"
#include "simulation/world.h"

namespace muster::simulation {
namespace {

namespace resources = client::resources;

constexpr Duration kLimit = seconds(1200);
constexpr Duration kUserRetry = milliseconds(500);
constexpr char kPods[] = "/registry/core/pods/";
constexpr char kJobKey[] = "/registry/kubeflow.org/pytorchjobs/default/job";
constexpr Duration kForever = hours(10'000);

// A user who tries again until the server has decided.
class User {
 public:
  explicit User(World& world) : world_(world) {}

  void Create(const client::Resource& resource, const std::string& yaml) {
    const json::Value object = json::ParseYaml(yaml)->at(0);
    const client::ObjectKey key = client::KeyOf(object);
    Insist([this, target = client::Target{resource, key.ns, key.name, ""}, object](auto done) {
      world_.user().Create(target, object, std::move(done));
    });
  }
  void Patch(const std::string& yaml) {
    Insist([this, patch = json::ParseYaml(yaml)->at(0)](auto done) {
      world_.user().Patch(Job(), client::PatchType::kMerge, patch, std::move(done));
    });
  }
  void Delete(const client::Target& target, const std::string& policy) {
    Insist([this, target, policy](auto done) {
      world_.user().Delete(target, {.propagation_policy = policy}, std::move(done));
    });
  }
  static client::Target Job() { return {resources::kPyTorchJobs, "default", "job", ""}; }

 private:
  void Insist(const std::function<void(client::ApiClient::Done)>& send) {
    send([this, send](const Result<json::Value>& reply) {
      if (reply) return;
      const Reason reason = reply.error().reason();
      if (reason == Reason::kServiceUnavailable || reason == Reason::kInternalError)
        world_.At(kUserRetry, [this, send] { Insist(send); });
    });
  }

  World& world_;
};

std::string JobYaml(std::string_view name, std::string_view run_policy, std::string_view workers,
                    std::string_view more = "") {
  return fmt::format(R"(
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: {}, namespace: default}}
spec:
  runPolicy: {{{}}}
  {}
  pytorchReplicaSpecs:
    Worker:
      {}
      template:
        spec:
          containers:
          - name: pytorch
            image: train
            resources: {{limits: {{cpu: "1", nvidia.com/gpu: "2"}}}}
)",
                     name, run_policy, more, workers);
}

bool HasCondition(const json::Value& job, std::string_view type) {
  for (const json::Value& condition : job["status"]["conditions"].items()) {
    if (condition["type"].AsString() == type) return condition["status"].AsString() == "True";
  }
  return false;
}

bool JobIs(const World& world, std::string_view condition) {
  return HasCondition(world.Find(kJobKey), condition);
}

size_t PodsThatRun(const World& world) {
  const std::vector<json::Value> pods = world.FindAll(kPods);
  return static_cast<size_t>(std::count_if(pods.begin(), pods.end(), [](const json::Value& pod) {
    return pod["status"]["phase"].AsString() == "Running" &&
           !pod["metadata"].Has("deletionTimestamp");
  }));
}

bool RunsWith(const World& world, size_t pods) {
  return JobIs(world, "Running") && PodsThatRun(world) == pods &&
         world.FindAll(kPods).size() == pods;
}

std::string_view AnnotationOf(const json::Value& object, std::string_view name) {
  return object["metadata"]["annotations"][name].AsString();
}

Fate Endless(const json::Value&, int64_t) { return {.runs_for = kForever}; }
Fate Short(const json::Value&, int64_t) { return {.runs_for = seconds(8)}; }

// The first life of worker 0 ends in a failure that a restart cures.
Fate FailsOnce(const json::Value& pod, int64_t restarts) {
  const bool first = restarts == 0 && AnnotationOf(pod, "training.muster.dev/epoch") == "0";
  const bool fails = first && pod["metadata"]["name"].AsString() == "job-worker-0";
  return fails ? Fate{.runs_for = seconds(6), .exit_code = 137} : Fate{.runs_for = kForever};
}

struct Scenario {
  int64_t nodes = 2;
  FateFunction fate = Endless;
  // What users do and nodes suffer; returns when all of it has been told.
  std::function<void(World&, User&)> tell;
  std::function<bool(const World&)> over;
};

constexpr char kThree[] = "replicas: 3";
constexpr char kThreeExitCode[] = "replicas: 3\n      restartPolicy: ExitCode";

Scenario GangStart() {
  return {.tell =
              [](World& world, User& user) {
                user.Create(resources::kPyTorchJobs, JobYaml("job", "", kThree));
                world.RunFor(seconds(5));
              },
          .over = [](const World& world) { return RunsWith(world, 3); }};
}

// Room for one gang at a time.
Scenario TwoGangs() {
  return {.fate = Short,
          .tell =
              [](World& world, User& user) {
                user.Create(resources::kPyTorchJobs, JobYaml("job", "", kThree));
                user.Create(resources::kPyTorchJobs, JobYaml("other", "", kThree));
                world.RunFor(seconds(5));
              },
          .over =
              [](const World& world) {
                return JobIs(world, "Succeeded") &&
                       HasCondition(world.Find("/registry/kubeflow.org/pytorchjobs/default/other"),
                                    "Succeeded");
              }};
}

Scenario ElasticScale() {
  return {.nodes = 3,
          .tell =
              [](World& world, User& user) {
                user.Create(resources::kPyTorchJobs,
                            JobYaml("job", "", kThreeExitCode,
                                    "elasticPolicy: {minReplicas: 1, maxReplicas: 6}"));
                world.RunFor(seconds(5));
                user.Patch("spec: {pytorchReplicaSpecs: {Worker: {replicas: 5}}}");
                world.RunFor(seconds(10));
                user.Patch("spec: {pytorchReplicaSpecs: {Worker: {replicas: 2}}}");
                world.RunFor(seconds(5));
              },
          .over = [](const World& world) { return RunsWith(world, 2); }};
}

Scenario SuspendResume() {
  return {.tell =
              [](World& world, User& user) {
                user.Create(resources::kPyTorchJobs, JobYaml("job", "", kThree));
                world.RunFor(seconds(5));
                user.Patch("spec: {runPolicy: {suspend: true}}");
                world.RunFor(seconds(10));
                user.Patch("spec: {runPolicy: {suspend: false}}");
                world.RunFor(seconds(5));
              },
          .over = [](const World& world) { return RunsWith(world, 3); }};
}

Scenario FailureRestart() {
  return {.fate = FailsOnce,
          .tell =
              [](World& world, User& user) {
                user.Create(resources::kPyTorchJobs,
                            JobYaml("job", "backoffLimit: 1", kThreeExitCode));
                world.RunFor(seconds(15));
              },
          .over =
              [](const World& world) {
                return RunsWith(world, 3) &&
                       AnnotationOf(world.Find(kJobKey), "training.muster.dev/restarts") == "1";
              }};
}

Scenario CleanUpAfterTtl() {
  return {.fate = Short,
          .tell =
              [](World& world, User& user) {
                user.Create(
                    resources::kPyTorchJobs,
                    JobYaml("job", "cleanPodPolicy: All, ttlSecondsAfterFinished: 15", kThree));
                world.RunFor(seconds(20));
                if (!JobIs(world, "Succeeded") && world.Find(kJobKey).IsObject()) return;
                if (world.Find(kJobKey).IsNull()) world.Violation("the TTL is not over");
              },
          .over =
              [](const World& world) {
                return world.Find(kJobKey).IsNull() && world.FindAll(kPods).empty();
              }};
}

Scenario NamespaceDeletion() {
  return {.tell =
              [](World& world, User& user) {
                user.Create(resources::kNamespaces,
                            "{apiVersion: v1, kind: Namespace, metadata: {name: team}}");
                world.RunFor(seconds(1));
                std::string job = JobYaml("job", "", kThree);
                const size_t at = job.find("default");
                user.Create(resources::kPyTorchJobs, job.replace(at, 7, "team"));
                world.RunFor(seconds(6));
                user.Delete({resources::kNamespaces, "", "team", ""}, "");
                world.RunFor(seconds(5));
              },
          .over =
              [](const World& world) {
                return world.Find("/registry/core/namespaces/team").IsNull() &&
                       world.FindAll(kPods).empty();
              }};
}

Scenario Deletion(const std::string& policy) {
  const bool orphans = policy == "Orphan";
  return {.tell =
              [policy](World& world, User& user) {
                user.Create(resources::kPyTorchJobs, JobYaml("job", "", kThree));
                world.RunFor(seconds(5));
                user.Delete(User::Job(), policy);
                world.RunFor(seconds(5));
              },
          .over =
              [orphans](const World& world) {
                return world.Find(kJobKey).IsNull() &&
                       world.FindAll(kPods).size() == (orphans ? 3 : 0);
              }};
}

// A node loses power; later its object is deleted, and it comes back.
Scenario NodeLoss() {
  return {.nodes = 3,
          .tell =
              [](World& world, User& user) {
                user.Create(resources::kPyTorchJobs, JobYaml("job", "", kThree));
                world.RunFor(seconds(5));
                std::string node;
                for (const json::Value& pod : world.FindAll(kPods))
                  node = pod["spec"]["nodeName"].Str();
                for (size_t i = 0; i < world.nodes(); ++i) {
                  if (world.node_name(i) == node) world.PowerCut(i, seconds(30));
                }
                world.RunFor(seconds(3));
                user.Delete({resources::kNodes, "", node, ""}, "");
                world.RunFor(seconds(30));
              },
          .over = [](const World& world) { return RunsWith(world, 3); }};
}

std::string PodYaml(std::string_view name, std::string_view priority, std::string_view app,
                    std::string_view group = "") {
  return fmt::format(R"(
apiVersion: v1
kind: Pod
metadata:
  name: {}
  namespace: default
  labels: {{app: {}}}
  annotations: {{{}}}
spec:
  priorityClassName: {}
  restartPolicy: Never
  containers:
  - {{name: main, image: train, resources: {{limits: {{nvidia.com/gpu: "2"}}}}}}
)",
                     name, app,
                     group.empty() ? "" : fmt::format("scheduling.k8s.io/group-name: {}", group),
                     priority);
}

// A gang goes as a whole, and who waited and preempts nobody gets what is left; of two pods that a
// budget protects the one goes that may.
Scenario Preemption() {
  return {.tell =
              [](World& world, User& user) {
                MakePriorities(world);
                world.RunFor(seconds(5));
                MakeBudget(world, "kept", 1);
                for (const char* name : {"kept-0", "kept-1"}) {
                  user.Create(resources::kPods, PodYaml(name, "middle", "kept"));
                  world.RunFor(seconds(5));
                }
                user.Create(resources::kPodGroups, R"(
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: gang, namespace: default}
spec: {minMember: 2, priorityClassName: low}
)");
                for (const char* name : {"gang-0", "gang-1"})
                  user.Create(resources::kPods, PodYaml(name, "low", "none", "gang"));
                world.RunFor(seconds(5));
                user.Create(resources::kPods, PodYaml("polite", "polite", "none"));
                for (const char* name : {"high-0", "high-1"}) {
                  user.Create(resources::kPods, PodYaml(name, "high", "none"));
                  world.RunFor(seconds(5));
                }
              },
          .over =
              [](const World& world) {
                return PodsThatRun(world) == 4 && world.FindAll(kPods).size() == 4;
              }};
}

const std::map<std::string, Scenario>& Scenarios() {
  static const std::map<std::string, Scenario> kAll = {
      {"gang-start", GangStart()},
      {"two-gangs", TwoGangs()},
      {"elastic-scale", ElasticScale()},
      {"suspend-resume", SuspendResume()},
      {"failure-restart", FailureRestart()},
      {"clean-up-after-ttl", CleanUpAfterTtl()},
      {"namespace-deletion", NamespaceDeletion()},
      {"orphan-deletion", Deletion("Orphan")},
      {"foreground-deletion", Deletion("Foreground")},
      {"background-deletion", Deletion("Background")},
      {"node-loss", NodeLoss()},
      {"preemption", Preemption()}};
  return kAll;
}

struct Ending {
  Outcome outcome;
  std::map<std::string, std::string> digest;
  std::map<std::string, int64_t> writes;  // by part
};

Ending Tell(const Death& death, Counts& counts, bool verbose) {
  const Scenario& scenario = Scenarios().at(death.scenario);
  World world({.seed = 1,
               .nodes = scenario.nodes,
               .fate = scenario.fate,
               .store_takes_all = death.part == "process",
               .verbose = verbose},
              counts);
  if (death.when != CrashPoint::When::kNever) {
    CrashPoint& crash = world.CrashPointOf(death.part == "process" ? "store" : death.part);
    crash.when = death.when;
    crash.at = death.at;
  }
  User user(world);
  world.Start();
  world.RunFor(seconds(3));
  scenario.tell(world, user);
  if (world.Settle([&] { return scenario.over(world); }, kLimit)) world.Judge();
  Ending ending;
  ending.outcome = {world.oracles().trace_hash(), world.oracles().revisions(), world.loop().steps(),
                    world.violations()};
  ending.digest = world.Digest();
  for (const std::string& part : world.Parts()) ending.writes[part] = world.CrashPointOf(part).seen;
  return ending;
}

const Ending& Undisturbed(const std::string& scenario) {
  static std::map<std::string, Ending> known;
  const auto found = known.find(scenario);
  if (found != known.end()) return found->second;
  Counts ignored({});
  return known.emplace(scenario, Tell({.scenario = scenario}, ignored, false)).first->second;
}

void Compare(const Ending& undisturbed, Ending& ending) {
  std::vector<std::string>& violations = ending.outcome.violations;
  for (const auto& [key, text] : undisturbed.digest) {
    const auto found = ending.digest.find(key);
    if (found == ending.digest.end()) {
      violations.push_back("another end: no " + key);
    } else if (found->second != text) {
      violations.push_back(
          fmt::format("another end: {} is\n  {}\nand undisturbed\n  {}", key, found->second, text));
    }
  }
  for (const auto& [key, text] : ending.digest) {
    if (!undisturbed.digest.contains(key)) violations.push_back("another end: there is " + key);
  }
}

}  // namespace

std::string Death::ToString() const {
  if (when == CrashPoint::When::kNever) return scenario;
  return fmt::format("{}/{}/{}/{}", scenario, part,
                     when == CrashPoint::When::kBefore ? "before" : "after", at);
}

std::optional<Death> ParseDeath(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, '/');
  Death death{.scenario = std::string(parts[0])};
  if (!Scenarios().contains(death.scenario)) return std::nullopt;
  if (parts.size() == 1) return death;
  if (parts.size() != 4 || (parts[2] != "before" && parts[2] != "after")) return std::nullopt;
  death.part = std::string(parts[1]);
  death.when = parts[2] == "before" ? CrashPoint::When::kBefore : CrashPoint::When::kAfter;
  death.at = ParseInt(parts[3]).value_or(1);
  return death;
}

std::vector<std::string> ScenarioNames() {
  std::vector<std::string> names;
  for (const auto& [name, scenario] : Scenarios()) names.push_back(name);
  return names;
}

std::vector<Death> DeathsIn(const std::string& scenario) {
  std::vector<Death> deaths = {{.scenario = scenario}};
  std::map<std::string, int64_t> writes = Undisturbed(scenario).writes;
  writes["process"] = writes["store"];
  for (const auto& [part, count] : writes) {
    for (int64_t at = 1; at <= count; ++at) {
      for (const auto when : {CrashPoint::When::kBefore, CrashPoint::When::kAfter})
        deaths.push_back({scenario, part, when, at});
    }
  }
  return deaths;
}

Outcome RunScenario(const Death& death, Counts& counts, bool verbose) {
  Ending ending = Tell(death, counts, verbose);
  if (death.when != CrashPoint::When::kNever) Compare(Undisturbed(death.scenario), ending);
  return std::move(ending.outcome);
}

}  // namespace muster::simulation
