// Real pods with lifecycle hooks and sidecars: the order in which things begin and end.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "agent/pod_machine_test_support.h"
#include "agent/probes/exec_run.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

// A pod whose containers write one file in order.
std::string Ordered(const std::string& name, const std::string& init, const std::string& main,
                    const std::string& more = "") {
  return R"({"metadata":{"name":")" + name + R"("},"spec":{"restartPolicy":"Never",)" + more +
         R"("volumes":[{"name":"v","emptyDir":{}}],"initContainers":[)" + init +
         R"(],"containers":[)" + main + "]}}";
}

std::string Container(const std::string& name, const std::string& script,
                      const std::string& more = "") {
  std::string quoted;
  json::AppendString(quoted, script);
  return R"({"name":")" + name +
         R"(","image":"x","volumeMounts":[{"name":"v","mountPath":"/v"}],)"
         R"("command":["sh","-c",)" +
         quoted + "]" + more + "}";
}

constexpr const char* kSidecar = R"(,"restartPolicy":"Always")";

// Says `name` when it begins and when it is told to end.
std::string Server(const std::string& name) {
  return "trap 'echo -" + name + " >> /v/order; exit 0' TERM; echo +" + name +
         " >> /v/order; while true; do sleep 0.02; done";
}

bool HasEvent(const Machine& m, const std::string& reason, const std::string& message) {
  for (const auto& [key, object] : m.api->objects) {
    if (object["reason"].AsString() == reason && object["message"].AsString() == message)
      return true;
  }
  return false;
}

// In what `ls /proc` printed.
ptrdiff_t CountProcesses(const std::string& listing) {
  return std::ranges::count_if(SplitNonEmpty(listing, '\n'), [](std::string_view line) {
    return line.find_first_not_of("0123456789") == line.npos;
  });
}

void Delete(Machine& m, const std::string& name, int grace) {
  m.api->Put(kPods, m.Pod(name)
                        .SetPath({"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z")
                        .SetPath({"metadata", "deletionGracePeriodSeconds"}, grace)
                        .SetPath({"metadata", "finalizers"}, json::List({"keep"})));
}

std::string ReadVolume(const Machine& m, const std::string& name) {
  return ReadSmallFile(m.PodDirectory(name) + "/volumes/v/order").value_or("");
}

TEST(PodHooks, PreStopEndsBeforeTheStopSignal) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer(
        "p",
        "trap 'cat /tmp/said; echo term; exit 0' TERM; echo up; while true; do sleep 0.02; done",
        "Always",
        R"(,"lifecycle":{"preStop":{"exec":{"command":["sh","-c",)"
        R"("sleep 0.3; echo pre > /tmp/said"]}}})"));
    ASSERT_TRUE(m.Until([&] { return m.Log("p") == "up\n"; }));
    Delete(m, "p", 30);
    ASSERT_TRUE(m.UntilPhase("p", "Succeeded"));
    EXPECT_EQ(m.Log("p"), "up\npre\nterm\n");
    EXPECT_TRUE(m.Until([&] { return HasEvent(m, "Killing", "Stopping container main"); }));
  });
}

TEST(PodHooks, TheStopSignalIsThePods) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("p",
                          "trap 'echo term; exit 0' TERM; trap 'echo usr1; exit 0' USR1; echo up; "
                          "while true; do sleep 0.02; done",
                          "Always", R"(,"lifecycle":{"stopSignal":"SIGUSR1"})"));
    ASSERT_TRUE(m.Until([&] { return m.Log("p") == "up\n"; }));
    EXPECT_TRUE(m.Until([&] { return m.Status("p")["stopSignal"].AsString() == "SIGUSR1"; }));
    Delete(m, "p", 30);
    ASSERT_TRUE(m.UntilPhase("p", "Succeeded"));
    EXPECT_EQ(m.Log("p"), "up\nusr1\n");
  });
}

TEST(PodHooks, APodForAnotherSystemIsRefused) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("p", "exit 0", "Never", "", R"("os":{"name":"linux"},)"));
    EXPECT_TRUE(m.UntilPhase("p", "Succeeded"));
    m.Create(OneContainer("q", "exit 0", "Never", "", R"("os":{"name":"windows"},)"));
    ASSERT_TRUE(m.UntilPhase("q", "Failed"));
    EXPECT_EQ(m.Pod("q")["status"]["reason"].AsString(), "PodOSNotSupported");
  });
}

TEST(PodHooks, APreStopThatHangsCostsNoMoreThanTheGrace) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer(
        "p", "trap 'echo term; exit 0' TERM; echo up; while true; do sleep 0.02; done", "Always",
        R"(,"lifecycle":{"preStop":{"exec":{"command":["sleep","1000"]}}})"));
    ASSERT_TRUE(m.Until([&] { return m.Log("p") == "up\n"; }));
    Delete(m, "p", 1);
    ASSERT_TRUE(m.UntilPhase("p", "Succeeded"));
    EXPECT_EQ(m.Log("p"), "up\nterm\n");
  });
}

TEST(PodHooks, APreStopThatFailsIsAnEvent) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("p",
                          "trap 'echo term; exit 0' TERM; echo up; while true; do sleep 0.02; done",
                          "Always", R"(,"lifecycle":{"preStop":{"exec":{"command":["false"]}}})"));
    ASSERT_TRUE(m.Until([&] { return m.Log("p") == "up\n"; }));
    Delete(m, "p", 30);
    ASSERT_TRUE(m.UntilPhase("p", "Succeeded"));
    EXPECT_TRUE(m.Until([&] { return HasEvent(m, "FailedPreStopHook", "PreStopHook failed"); }));
  });
}

TEST(PodHooks, RunningIsShownWhenPostStartIsDone) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("p", "echo up; while true; do sleep 0.02; done", "Always",
                          R"(,"lifecycle":{"postStart":{"exec":{"command":["sh","-c",)"
                          R"("until [ -e /tmp/go ]; do sleep 0.02; done"]}}})"));
    ASSERT_TRUE(m.Until([&] { return m.Log("p") == "up\n"; }));
    ASSERT_TRUE(m.Until([&] { return !m.Status("p").IsNull(); }));
    EXPECT_EQ(m.Status("p")["state"]["waiting"]["reason"].AsString(), "ContainerCreating");
    EXPECT_EQ(m.Phase("p"), "Pending");
    int code = -1;
    m.node->runtime.Exec(
        m.Pod("p")["metadata"]["uid"].Str(), "main", {"touch", "/tmp/go"}, false, false,
        [](Result<ExecStreams>) {}, [&code](int c) { code = c; });
    ASSERT_TRUE(m.UntilPhase("p", "Running"));
    EXPECT_TRUE(m.Until([&] { return code == 0; }));
    EXPECT_TRUE(m.Status("p")["ready"].AsBool());
  });
}

TEST(PodHooks, APostStartThatFailsKillsTheContainer) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("p", "trap 'exit 3' TERM; while true; do sleep 0.02; done", "Never",
                          R"(,"lifecycle":{"postStart":{"exec":{"command":["sh","-c",)"
                          R"("sleep 0.2; exit 1"]}}})"));
    ASSERT_TRUE(m.UntilPhase("p", "Failed"));
    EXPECT_EQ(m.Status("p")["state"]["terminated"]["exitCode"].AsInt(), 3);
    EXPECT_TRUE(
        m.Until([&] { return HasEvent(m, "FailedPostStartHook", "PostStartHook failed"); }));
    EXPECT_TRUE(m.Until([&] { return HasEvent(m, "Killing", "FailedPostStartHook"); }));
  });
}

// What a command of a probe says is known while its run still exists: whatever gets the number of
// one of its descriptors then must not lose its watch with the run.
TEST(PodHooks, ACommandThatEndedLeavesOtherDescriptorsAlone) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("p", "sleep 1000", "Never", "", R"("terminationGracePeriodSeconds":0,)"));
    ASSERT_TRUE(m.UntilPhase("p", "Running"));
    HandlerAction action;
    action.command = {"sh", "-c", "echo out; echo err >&2; exit 3"};
    const HandlerTarget target = {m.Pod("p")["metadata"]["uid"].Str(), "main"};
    std::vector<UniqueFd> descriptors;
    std::vector<std::unique_ptr<FdWatch>> watches;
    int heard = 0;
    std::optional<HandlerResult> result;
    auto run =
        RunExec(m.loop, m.node->runtime, target, action, seconds(10), [&](HandlerResult answer) {
          result = std::move(answer);
          for (int i = 0; i < 4; ++i) {
            int ends[2];
            ASSERT_EQ(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
            watches.push_back(m.loop.WatchReadable(ends[0], [&heard, from = ends[0]] {
              char byte = 0;
              if (read(from, &byte, 1) == 1) ++heard;
            }));
            descriptors.emplace_back(ends[0]);
            descriptors.emplace_back(ends[1]);
          }
        });
    ASSERT_TRUE(m.Until([&] { return result.has_value(); }));
    EXPECT_EQ(result->is, HandlerResult::Is::kFailure);
    EXPECT_EQ(result->output.size(), std::string("out\nerr\n").size());
    run.reset();
    for (size_t i = 1; i < descriptors.size(); i += 2)
      ASSERT_EQ(write(descriptors[i].get(), "x", 1), 1);
    EXPECT_TRUE(m.Until([&] { return heard == 4; }, seconds(5))) << heard;
    watches.clear();
  });
}

TEST(PodHooks, ACommandThatHangsIsKilledWithItsGroup) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(OneContainer("p", "sleep 1000", "Never", "", R"("terminationGracePeriodSeconds":0,)"));
    ASSERT_TRUE(m.UntilPhase("p", "Running"));
    HandlerAction action;
    action.command = {"sh", "-c", "sleep 999 & sleep 998"};
    const HandlerTarget target = {m.Pod("p")["metadata"]["uid"].Str(), "main"};
    std::optional<HandlerResult> result;
    auto run = RunExec(m.loop, m.node->runtime, target, action, milliseconds(300),
                       [&](HandlerResult answer) { result = std::move(answer); });
    ASSERT_TRUE(m.Until([&] { return result.has_value(); }));
    EXPECT_EQ(result->is, HandlerResult::Is::kFailure);
    EXPECT_EQ(result->output, R"(command "sh -c sleep 999 & sleep 998" timed out)");
    run.reset();
    // What is left in the container: its own two processes, and the one that looks.
    action.command = {"ls", "/proc"};
    std::string left;
    EXPECT_TRUE(m.Until([&] {
      if (run == nullptr) {
        run = RunExec(m.loop, m.node->runtime, target, action, seconds(10),
                      [&](HandlerResult answer) {
                        left = answer.output;
                        run.reset();
                      });
      }
      return CountProcesses(left) == 3;
    })) << left;
    run.reset();
  });
}

TEST(PodHooks, SidecarsBeginFirstAndEndLastInReverseOrder) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(Ordered("p",
                     Container("one", Server("one"), kSidecar) + "," +
                         Container("between", "echo between >> /v/order") + "," +
                         Container("two", Server("two"), kSidecar),
                     Container("main", Server("main"))));
    ASSERT_TRUE(m.Until([&] { return ReadVolume(m, "p").ends_with("+main\n"); }));
    // A sidecar does not wait for what the one before it does.
    EXPECT_TRUE(ReadVolume(m, "p").find("between\n") != std::string::npos);
    ASSERT_TRUE(m.UntilPhase("p", "Running"));
    const std::string file = m.PodDirectory("p") + "/volumes/v/order";
    Delete(m, "p", 30);
    std::string order;
    ASSERT_TRUE(m.Until([&] {
      const std::string now = ReadSmallFile(file).value_or("");
      if (!now.empty()) order = now;
      return m.Phase("p") == "Succeeded";
    }));
    EXPECT_TRUE(order.ends_with("-main\n-two\n-one\n")) << order;
  });
}

TEST(PodHooks, APodWithSidecarsIsDoneWhenItsOthersAre) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(Ordered("good", Container("side", Server("side"), kSidecar),
                     Container("main", "sleep 0.3")));
    m.Create(Ordered("bad", Container("side", Server("side"), kSidecar),
                     Container("main", "sleep 0.3; exit 4")));
    ASSERT_TRUE(m.UntilPhase("good", "Succeeded"));
    ASSERT_TRUE(m.UntilPhase("bad", "Failed"));
    EXPECT_EQ(m.Pod("good")["status"]["initContainerStatuses"]
                  .At(0)["state"]["terminated"]["exitCode"]
                  .AsInt(-1),
              0);
  });
}

TEST(PodHooks, ASidecarThatCrashesStartsAgainAndHoldsUpNothing) {
  InNetworkNamespace([] {
    Machine m;
    m.Create(Ordered("p", Container("side", "exit 1", kSidecar), Container("main", "sleep 0.5"),
                     R"("terminationGracePeriodSeconds":1,)"));
    ASSERT_TRUE(m.UntilPhase("p", "Succeeded"));
    EXPECT_GE(m.Pod("p")["status"]["initContainerStatuses"].At(0)["restartCount"].AsInt(), 1);
  });
}

}  // namespace
}  // namespace muster::agent
