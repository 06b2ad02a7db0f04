#include "agent/pod_workers/pod_status.h"

#include <gtest/gtest.h>

#include "agent/pod_workers/backoff.h"
#include "json/parse.h"

namespace muster::agent {
namespace {

using Is = ContainerRuntimeState::Is;
constexpr Time kNow = Time(seconds(1767225600));

json::Value Pod(const std::string& policy = "Always", const std::string& status = "{}") {
  return *json::Parse(
      R"({"metadata":{"name":"p","namespace":"d","uid":"u"},"spec":{"restartPolicy":")" + policy +
      R"(","containers":[{"name":"a","image":"i"},{"name":"b"}]},"status":)" + status + "}");
}

ContainerRuntimeState Running(const std::string& name) {
  return {.name = name, .is = Is::kRunning, .attempt = 0, .started_at = FormatNanoTime(kNow)};
}
ContainerRuntimeState Ended(const std::string& name, int code) {
  ContainerRuntimeState state{.name = name, .is = Is::kTerminated, .attempt = 0};
  state.exit = ContainerExit{
      code, 0, code == 0 ? "Completed" : "Error", "", FormatNanoTime(kNow), FormatNanoTime(kNow)};
  state.exit_attempt = 0;
  return state;
}
ContainerRuntimeState Waiting(const std::string& name) { return {.name = name}; }

PodRuntimeState With(std::vector<ContainerRuntimeState> containers) {
  PodRuntimeState state;
  state.containers = std::move(containers);
  state.pod_ip = "10.42.0.2";
  state.host_ip = "1.2.3.4";
  state.start_time = FormatTime(kNow);
  state.sandbox_ready = true;
  return state;
}

std::string ConditionOf(const json::Value& status, const std::string& type) {
  for (const json::Value& condition : status["conditions"].items()) {
    if (condition["type"].AsString() == type) {
      return condition["status"].Str() + " " + condition["reason"].Str();
    }
  }
  return "absent";
}

TEST(PodStatus, PhaseIsTheKubelets) {
  EXPECT_EQ(PodPhase(Pod(), With({Waiting("a"), Waiting("b")})), "Pending");
  EXPECT_EQ(PodPhase(Pod(), With({Running("a"), Waiting("b")})), "Pending");
  EXPECT_EQ(PodPhase(Pod(), With({Running("a"), Running("b")})), "Running");
  EXPECT_EQ(PodPhase(Pod(), With({Running("a"), Ended("b", 1)})), "Running");
  EXPECT_EQ(PodPhase(Pod("Never"), With({Running("a"), Ended("b", 1)})), "Running");
  EXPECT_EQ(PodPhase(Pod("Never"), With({Ended("a", 0), Ended("b", 1)})), "Failed");
  EXPECT_EQ(PodPhase(Pod("Never"), With({Ended("a", 0), Ended("b", 0)})), "Succeeded");
  EXPECT_EQ(PodPhase(Pod("OnFailure"), With({Ended("a", 0), Ended("b", 1)})), "Running");
  EXPECT_EQ(PodPhase(Pod("OnFailure"), With({Ended("a", 0), Ended("b", 0)})), "Succeeded");
  EXPECT_EQ(PodPhase(Pod("Always"), With({Ended("a", 0), Ended("b", 0)})), "Running");
}

TEST(PodStatus, AFinishedPhaseNeverChanges) {
  EXPECT_EQ(
      PodPhase(Pod("Never", R"({"phase":"Succeeded"})"), With({Ended("a", 1), Ended("b", 1)})),
      "Succeeded");
}

TEST(PodStatus, AnEndedPodIsSucceededOrFailed) {
  PodRuntimeState state = With({Ended("a", 143), Ended("b", 0)});
  state.terminal = true;
  EXPECT_EQ(PodPhase(Pod(), state), "Failed");
  state.containers[0] = Ended("a", 0);
  EXPECT_EQ(PodPhase(Pod(), state), "Succeeded");
  state.containers[0] = Waiting("a");
  EXPECT_EQ(PodPhase(Pod(), state), "Failed");
}

TEST(PodStatus, InitContainersComeFirst) {
  ContainerRuntimeState init = Running("i");
  init.init = true;
  json::Value pod =
      Pod("Never").SetPath({"spec", "initContainers"}, json::List({json::Obj({{"name", "i"}})}));
  EXPECT_EQ(PodPhase(pod, With({init, Waiting("a"), Waiting("b")})), "Pending");
  const json::Value status =
      BuildPodStatus(pod, With({init, Waiting("a"), Waiting("b")}), {}, kNow);
  EXPECT_EQ(ConditionOf(status, "Initialized"), "False ContainersNotInitialized");
  EXPECT_EQ(status["initContainerStatuses"].size(), 1u);
  init = Ended("i", 1);
  init.init = true;
  EXPECT_EQ(PodPhase(pod, With({init, Waiting("a"), Waiting("b")})), "Failed");
}

TEST(PodStatus, SaysWhichSignalEndsAContainer) {
  const auto signal = [](const char* of_pod, const char* of_image) {
    ContainerRuntimeState container = Running("a");
    container.image_stop_signal = of_image;
    json::Value pod = Pod("Never");
    if (*of_pod != 0) {
      pod = pod.SetPath({"spec", "containers"},
                        json::List({json::Obj(
                            {{"name", "a"}, {"lifecycle", json::Obj({{"stopSignal", of_pod}})}})}));
    }
    return BuildPodStatus(pod, With({container}), {}, kNow)["containerStatuses"]
        .At(0)["stopSignal"]
        .Str("none");
  };
  EXPECT_EQ(signal("", ""), "none");
  EXPECT_EQ(signal("", "QUIT"), "SIGQUIT");
  EXPECT_EQ(signal("", "3"), "SIGQUIT");
  EXPECT_EQ(signal("", "nonsense"), "none");
  EXPECT_EQ(signal("SIGUSR1", "QUIT"), "SIGUSR1");
}

TEST(PodStatus, ConditionsFollowTheContainers) {
  const json::Value running = BuildPodStatus(Pod(), With({Running("a"), Running("b")}), {}, kNow);
  EXPECT_EQ(ConditionOf(running, "Ready"), "True ");
  EXPECT_EQ(ConditionOf(running, "ContainersReady"), "True ");
  EXPECT_EQ(ConditionOf(running, "PodScheduled"), "True ");
  EXPECT_EQ(ConditionOf(running, "PodReadyToStartContainers"), "True ");
  const json::Value half = BuildPodStatus(Pod(), With({Running("a"), Waiting("b")}), {}, kNow);
  EXPECT_EQ(ConditionOf(half, "Ready"), "False ContainersNotReady");
  const json::Value done =
      BuildPodStatus(Pod("Never"), With({Ended("a", 0), Ended("b", 0)}), {}, kNow);
  EXPECT_EQ(ConditionOf(done, "Ready"), "False PodCompleted");
  EXPECT_EQ(ConditionOf(done, "Initialized"), "True PodCompleted");
}

ContainerRuntimeState Sidecar(ContainerRuntimeState state) {
  state.init = state.sidecar = true;
  return state;
}

json::Value PodWithSidecar(const std::string& policy = "Never") {
  return Pod(policy).SetPath({"spec", "initContainers"},
                             json::List({json::Obj({{"name", "s"}, {"restartPolicy", "Always"}})}));
}

TEST(PodStatus, ProbesDecideWhatIsStartedAndReady) {
  ContainerRuntimeState starting = Running("a");
  starting.started = false;
  ContainerRuntimeState unready = Running("b");
  unready.ready = false;
  const json::Value status = BuildPodStatus(Pod(), With({starting, unready}), {}, kNow);
  EXPECT_EQ(status["phase"].AsString(), "Running");
  const json::Value& a = status["containerStatuses"].At(0);
  EXPECT_FALSE(a["started"].AsBool(true));
  EXPECT_FALSE(a["ready"].AsBool(true)) << "not before it has started";
  const json::Value& b = status["containerStatuses"].At(1);
  EXPECT_TRUE(b["started"].AsBool());
  EXPECT_FALSE(b["ready"].AsBool(true));
  EXPECT_EQ(ConditionOf(status, "Ready"), "False ContainersNotReady");
  EXPECT_EQ(status["conditions"].At(3)["message"].AsString(),
            "containers with unready status: [a b]");
}

TEST(PodStatus, IsNotShownAsRunningBeforePostStartIsDone) {
  ContainerRuntimeState hook = Running("a");
  hook.post_start_runs = true;
  const json::Value status = BuildPodStatus(Pod(), With({hook, Running("b")}), {}, kNow);
  EXPECT_EQ(status["phase"].AsString(), "Pending");
  EXPECT_TRUE(status["containerStatuses"].At(0)["state"].Has("waiting"));
  EXPECT_FALSE(status["containerStatuses"].At(0)["started"].AsBool(true));
}

TEST(PodStatus, SidecarsCountForReadyAndEndWithoutBlame) {
  ContainerRuntimeState slow = Sidecar(Running("s"));
  slow.started = false;
  const json::Value pod = PodWithSidecar();
  json::Value status = BuildPodStatus(pod, With({slow, Waiting("a"), Waiting("b")}), {}, kNow);
  EXPECT_EQ(status["phase"].AsString(), "Pending");
  EXPECT_EQ(ConditionOf(status, "Initialized"), "False ContainersNotInitialized");
  slow.started = true;
  slow.ready = false;
  status = BuildPodStatus(pod, With({slow, Running("a"), Running("b")}), {}, kNow);
  EXPECT_EQ(status["phase"].AsString(), "Running");
  EXPECT_EQ(ConditionOf(status, "Initialized"), "True ");
  EXPECT_EQ(ConditionOf(status, "Ready"), "False ContainersNotReady");
  // Its others are done, and it is not yet.
  EXPECT_EQ(PodPhase(pod, With({slow, Ended("a", 0), Ended("b", 0)})), "Running");
  EXPECT_EQ(PodPhase(pod, With({Sidecar(Ended("s", 137)), Ended("a", 0), Ended("b", 0)})),
            "Succeeded");
  // One that starts again does not take the pod back.
  EXPECT_EQ(PodPhase(pod, With({Sidecar(Ended("s", 1)), Running("a"), Running("b")})), "Running");
}

TEST(PodStatus, ReadinessGatesAreConditionsOfOthers) {
  const auto gated = [](const std::string& conditions) {
    return Pod("Always", R"({"conditions":[)" + conditions + "]}")
        .SetPath({"spec", "readinessGates"}, json::List({json::Obj({{"conditionType", "x/y"}})}));
  };
  const auto ready = [&](const std::string& conditions) {
    return BuildPodStatus(gated(conditions), With({Running("a"), Running("b")}), {}, kNow);
  };
  json::Value status = ready("");
  EXPECT_EQ(ConditionOf(status, "Ready"), "False ReadinessGatesNotReady");
  EXPECT_EQ(ConditionOf(status, "ContainersReady"), "True ");
  EXPECT_EQ(status["conditions"].At(2)["message"].AsString(),
            "corresponding condition of pod readiness gate \"x/y\" does not exist.");
  status = ready(R"({"type":"x/y","status":"False"})");
  EXPECT_EQ(status["conditions"].At(2)["message"].AsString(),
            "the status of pod readiness gate \"x/y\" is not \"True\", but False");
  EXPECT_EQ(ConditionOf(ready(R"({"type":"x/y","status":"True"})"), "Ready"), "True ");
}

TEST(PodStatus, ARejectedPodShowsNoContainers) {
  PodRuntimeState state = With({Waiting("a"), Waiting("b")});
  state.rejected = true;
  state.failed_reason = "NodePorts";
  state.failed_message = "Pod was rejected: no";
  const json::Value status = BuildPodStatus(Pod(), state, {}, kNow);
  EXPECT_EQ(status["phase"].AsString(), "Failed");
  EXPECT_TRUE(status["containerStatuses"].IsNull());
  EXPECT_TRUE(status.Has("containerStatuses")) << "the patch takes away what was shown before";
}

TEST(PodStatus, KeepsTransitionTimesAndForeignConditions) {
  const json::Value pod = Pod("Always", R"({"conditions":[
      {"type":"Ready","status":"True","lastTransitionTime":"2020-01-01T00:00:00Z"},
      {"type":"PodScheduled","status":"True","lastTransitionTime":"2020-01-01T00:00:00Z"},
      {"type":"DisruptionTarget","status":"True"}]})");
  const json::Value status = BuildPodStatus(pod, With({Running("a"), Running("b")}), {}, kNow);
  EXPECT_EQ(ConditionOf(status, "DisruptionTarget"), "True ");
  for (const json::Value& condition : status["conditions"].items()) {
    if (condition["type"].AsString() == "Ready" || condition["type"].AsString() == "PodScheduled") {
      EXPECT_EQ(condition["lastTransitionTime"].AsString(), "2020-01-01T00:00:00Z");
    }
  }
  const json::Value again = BuildPodStatus(Pod(), With({Running("a"), Running("b")}),
                                           status["conditions"], kNow + hours(1));
  EXPECT_EQ(again["conditions"].At(0), status["conditions"].At(0));
}

TEST(PodStatus, ContainerStatesAreComplete) {
  ContainerRuntimeState crashing = Waiting("a");
  crashing.waiting_reason = "CrashLoopBackOff";
  crashing.attempt = 2;
  crashing.last_exit =
      ContainerExit{1, 0, "Error", "boom", FormatNanoTime(kNow), FormatNanoTime(kNow)};
  crashing.last_exit_attempt = 2;
  const json::Value status = BuildPodStatus(Pod(), With({crashing, Running("b")}), {}, kNow);
  const json::Value& a = status["containerStatuses"].At(0);
  EXPECT_EQ(a["state"]["waiting"]["reason"].AsString(), "CrashLoopBackOff");
  EXPECT_EQ(a["lastState"]["terminated"]["exitCode"].AsInt(), 1);
  EXPECT_EQ(a["restartCount"].AsInt(), 2);
  EXPECT_EQ(a["image"].AsString(), "i");
  EXPECT_FALSE(a["ready"].AsBool(true));
  EXPECT_FALSE(a["started"].AsBool(true));
  EXPECT_EQ(a["containerID"].AsString().size(), std::string("muster://").size() + 64);
  const json::Value& b = status["containerStatuses"].At(1);
  EXPECT_EQ(b["state"]["running"]["startedAt"].AsString(), "2026-01-01T00:00:00Z");
  EXPECT_EQ(status["phase"].AsString(), "Running");
  EXPECT_EQ(status["podIPs"].At(0)["ip"].AsString(), "10.42.0.2");
}

TEST(Backoff, DoublesToFiveMinutesAndForgets) {
  CrashBackoff backoff;
  Time now = kNow;
  const Duration none{};
  EXPECT_EQ(backoff.OnExit(none, now), now) << "the first end costs nothing";
  for (int wait : {10, 20, 40, 80, 160, 300, 300}) {
    EXPECT_EQ(backoff.OnExit(none, now) - now, seconds(wait));
  }
  EXPECT_EQ(backoff.OnExit(minutes(11), now), now) << "a long run is forgiven";
  EXPECT_EQ(backoff.OnExit(none, now) - now, seconds(10));
}

TEST(Backoff, CountsOnTheLoopsClockWhateverTheWallClockSays) {
  for (const Duration jump : {Duration(hours(1)), Duration(hours(-1))}) {
    const std::string stamp = FormatNanoTime(kNow + jump);
    EXPECT_EQ(EndedAt(stamp, kNow, /*just_now=*/true), kNow);
    EXPECT_LE(EndedAt(stamp, kNow, /*just_now=*/false), kNow);
  }
  const std::string minute_ago = FormatNanoTime(kNow - minutes(1));
  EXPECT_EQ(EndedAt(minute_ago, kNow, false), kNow - minutes(1))
      << "the wait goes on while we are away";
  EXPECT_EQ(EndedAt("", kNow, false), kNow);
}

}  // namespace
}  // namespace muster::agent
