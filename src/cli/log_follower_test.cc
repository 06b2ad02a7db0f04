#include "cli/log_follower.h"

#include <gtest/gtest.h>

#include "cli/cli_testing.h"
#include "cli/exec_session.h"
#include "cli/object_watch.h"
#include "cli/resource_finder.h"
#include "cli/waiting.h"

namespace muster::cli {
namespace {

json::Value RunningPod(const std::string& name, const std::string& uid, int restarts = 0) {
  return Yaml(fmt::format(
      "{{metadata: {{name: {}, namespace: default, uid: {}}}, spec: {{containers: [{{name: c}}]}},"
      " status: {{containerStatuses: [{{name: c, restartCount: {}, state: {{running: {{}}}}}}]}}}}",
      name, uid, restarts));
}

class LogFollowerTest : public testing::Test {
 protected:
  void SetUp() override {
    cluster_.api.before_handle = [this](const net::Request& request,
                                        const net::ResponseWriterPtr& writer) {
      if (request.target.find("/log?") == std::string::npos) return true;
      targets_.push_back(request.target);
      writer->StartStream(200, {});
      writers_.push_back(writer);
      return false;
    };
  }
  void Say(size_t stream, const std::string& text) {
    writers_[stream]->Write(std::make_shared<const std::string>(text));
    cluster_.loop.RunFor(seconds(1));
  }
  void End(size_t stream) {
    writers_[stream]->End();
    cluster_.loop.RunFor(seconds(1));
  }

  FakeCluster cluster_;
  Session session_{cluster_.loop, cluster_.pump, cluster_.transport, "default"};
  Console console_{Console::Capture{}};
  std::vector<std::string> targets_;
  std::vector<net::ResponseWriterPtr> writers_;
};

TEST_F(LogFollowerTest, PrintsWholeLinesWithTheirPod) {
  LogFollower logs(session_, console_, {.follow = true, .prefix = true, .strip = "job-"});
  logs.OnPod(RunningPod("job-worker-0", "u"));
  cluster_.loop.RunFor(seconds(1));
  ASSERT_EQ(writers_.size(), 1u);
  EXPECT_NE(targets_[0].find("follow=true"), std::string::npos);
  Say(0, "2026-01-01T00:00:00.000000001Z hel");
  EXPECT_EQ(console_.out, "");
  Say(0, "lo\n2026-01-01T00:00:00.000000001Z  indented\n2026-01-01T00:00:00.5Z last");
  EXPECT_EQ(console_.out, "[worker-0] hello\n[worker-0]  indented\n");
  EXPECT_FALSE(logs.Idle());
  End(0);
  EXPECT_EQ(console_.out, "[worker-0] hello\n[worker-0]  indented\n[worker-0] last\n");
  EXPECT_TRUE(logs.Idle());
}

TEST_F(LogFollowerTest, GoesOnAfterABreakWithoutRepeatingLines) {
  LogFollower logs(session_, console_, {.follow = true});
  logs.OnPod(RunningPod("p", "u"));
  cluster_.loop.RunFor(seconds(1));
  Say(0, "2026-01-01T00:00:00.1Z one\n2026-01-01T00:00:00.2Z two\n2026-01-01T00:00:00.2Z twin\n");
  writers_[0].reset();  // dropped without End: the connection broke
  cluster_.loop.RunFor(seconds(1));
  ASSERT_EQ(writers_.size(), 2u);
  EXPECT_NE(targets_[1].find("sinceTime=2026-01-01T00%3A00%3A00.2Z"), std::string::npos)
      << targets_[1];
  Say(1,
      "2026-01-01T00:00:00.1Z one\n2026-01-01T00:00:00.2Z two\n2026-01-01T00:00:00.2Z twin\n"
      "2026-01-01T00:00:00.2Z triplet\n2026-01-01T00:00:00.3Z three\n");
  EXPECT_EQ(console_.out, "one\ntwo\ntwin\ntriplet\nthree\n");
}

TEST_F(LogFollowerTest, ALineThatABreakCutIsGivenOnceAndWhole) {
  LogFollower logs(session_, console_, {.follow = true});
  logs.OnPod(RunningPod("p", "u"));
  cluster_.loop.RunFor(seconds(1));
  Say(0, "2026-01-01T00:00:00.1Z one\n2026-01-01T00:00:00.2Z tw");
  writers_[0].reset();
  cluster_.loop.RunFor(seconds(1));
  ASSERT_EQ(writers_.size(), 2u);
  Say(1, "2026-01-01T00:00:00.1Z one\n2026-01-01T00:00:00.2Z two\n");
  EXPECT_EQ(console_.out, "one\ntwo\n");
}

TEST_F(LogFollowerTest, PrintsEndlessLinesInPieces) {
  LogFollower logs(session_, console_, {.follow = true});
  logs.OnPod(RunningPod("p", "u"));
  cluster_.loop.RunFor(seconds(1));
  Say(0, "2026-01-01T00:00:00.1Z " + std::string(kMaxPartialLineBytes, 'x'));
  EXPECT_EQ(console_.out, std::string(kMaxPartialLineBytes, 'x') + "\n");
}

TEST_F(LogFollowerTest, GivesUpOnALogThatCannotBeRead) {
  cluster_.api.before_handle = [](const net::Request&, const net::ResponseWriterPtr& writer) {
    client::FakeApi::SendError(*writer, 400, "BadRequest", "container \"c\" is waiting to start");
    return false;
  };
  LogFollower logs(session_, console_, {.unconditional = true});
  Status failure;
  logs.OnError([&](const Status& status) { failure = status; });
  logs.OnPod(RunningPod("p", "u"));
  cluster_.loop.RunFor(seconds(1));
  EXPECT_EQ(failure.message(), "container \"c\" is waiting to start");
  EXPECT_TRUE(logs.Idle());
}

TEST_F(LogFollowerTest, ReadsTheNextRunOfARestartedContainer) {
  LogFollower logs(session_, console_, {.follow = true});
  logs.OnPod(RunningPod("p", "u", 0));
  cluster_.loop.RunFor(seconds(1));
  Say(0, "2026-01-01T00:00:05Z first\n");
  End(0);
  EXPECT_TRUE(logs.Idle());
  logs.OnPod(RunningPod("p", "u", 1));
  EXPECT_FALSE(logs.Idle());
  cluster_.loop.RunFor(seconds(1));
  ASSERT_EQ(writers_.size(), 2u);
  logs.OnPod(RunningPod("p", "another", 0));
  End(1);
  EXPECT_EQ(writers_.size(), 3u) << "a pod that was replaced";
}

TEST_F(LogFollowerTest, WaitsForContainersThatHaveNotStarted) {
  LogFollower logs(session_, console_, {.follow = true});
  logs.OnPod(Yaml(
      "{metadata: {name: p, uid: u}, spec: {containers: [{name: c}]}, status: {phase: Pending}}"));
  cluster_.loop.RunFor(seconds(1));
  EXPECT_TRUE(writers_.empty());
  EXPECT_TRUE(logs.Idle());
}

TEST(Waiting, PrefersTheSchedulersSentence) {
  const json::Value starting = Yaml(
      "{spec: {nodeName: n1}, status: {phase: Pending, containerStatuses: [{name: c, state: "
      "{waiting:"
      " {reason: ImageUnavailable, message: no command}}}]}}");
  const json::Value pending = Yaml(
      "{status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', message: 0/1 "
      "nodes}]}}");
  EXPECT_EQ(WhyPodWaits(starting), "container c: ImageUnavailable: no command");
  EXPECT_EQ(WhyPodWaits(pending), "0/1 nodes");
  EXPECT_EQ(WhyPodsWait({{"a", starting}, {"b", pending}}), "0/1 nodes");
  EXPECT_EQ(WhyPodsWait({{"a", starting}}), "a: container c: ImageUnavailable: no command");
  EXPECT_EQ(WhyPodWaits(Yaml("{spec: {nodeName: n1}, status: {phase: Running}}")), "");
  const json::Value crashing = Yaml(
      "{spec: {nodeName: n1}, status: {phase: Running, containerStatuses: [{name: c, state: "
      "{waiting: {reason: CrashLoopBackOff, message: back-off}}, lastState: {terminated: "
      "{exitCode: 128, reason: StartError, message: 'exec: nope'}}}]}}");
  EXPECT_EQ(WhyPodWaits(crashing),
            "container c: CrashLoopBackOff: back-off; it ended with exit code 128 (StartError: "
            "exec: nope)");
}

TEST(Waiting, SaysWhereAProgramThatWasNotFoundHasToBe) {
  const auto crashing = [](int code) {
    return WhyPodWaits(Yaml(fmt::format(
        "{{spec: {{nodeName: n1}}, status: {{phase: Running, containerStatuses: [{{name: c, state: "
        "{{waiting: {{reason: CrashLoopBackOff}}}}, lastState: {{terminated: {{exitCode: {}, "
        "reason: Error}}}}}}]}}}}",
        code)));
  };
  EXPECT_EQ(crashing(127),
            "container c: CrashLoopBackOff; it ended with exit code 127 (Error): a program was not "
            "found; it must be in the image or, with --images machine, installed on this machine");
  EXPECT_EQ(crashing(1), "container c: CrashLoopBackOff; it ended with exit code 1 (Error)");
}

TEST(Waiting, OfWhatAContainerLeftTheLastLineIsSaid) {
  EXPECT_EQ(HowContainerEnded(Yaml("{exitCode: 137, reason: OOMKilled}")),
            "exit code 137 (OOMKilled)");
  EXPECT_EQ(HowContainerEnded(
                Yaml("{exitCode: 1, reason: Error, message: \"Traceback:\\n  x\\nNo GPU\\n\"}")),
            "exit code 1 (Error: No GPU)");
}

TEST(ObjectWatch, TellsTheDifferenceAfterABreak) {
  FakeCluster cluster;
  const auto put = [&](const char* name, const char* value) {
    cluster.api.Put(
        "/api/v1/configmaps",
        Yaml(fmt::format("{{metadata: {{name: {}, namespace: default}}, data: {{v: {}}}}}", name,
                         value)));
  };
  put("a", "one");
  put("b", "one");
  Session session(cluster.loop, cluster.pump, cluster.transport, "default");
  std::vector<std::string> changes;
  ObjectWatch watch(session, {client::resources::kConfigMaps, "default", "", ""},
                    [&](const std::string& name, const json::Value& object) {
                      changes.push_back(name + " " + object["data"]["v"].Str("gone"));
                    });
  cluster.loop.RunFor(seconds(1));
  EXPECT_EQ(changes, (std::vector<std::string>{"a one", "b one"}));
  changes.clear();
  cluster.api.CutWatches(true);
  cluster.api.Remove("/api/v1/configmaps", "default", "a");
  put("b", "two");
  put("c", "one");
  cluster.loop.RunFor(seconds(2));
  EXPECT_EQ(changes, (std::vector<std::string>{"b two", "c one", "a gone"}));
}

TEST(ResourceFinder, KnowsResourcesByEveryName) {
  FakeCluster cluster;
  Session session(cluster.loop, cluster.pump, cluster.transport, "default");
  ResourceFinder finder(session);
  for (const char* name : {"pytorchjobs", "pytorchjob", "PyTorchJob", "pytorchjobs.kubeflow.org",
                           "pytorchjobs.v1.kubeflow.org"}) {
    Result<ApiResource> found = finder.Find(name);
    ASSERT_TRUE(found.has_value()) << name;
    EXPECT_EQ(found->ObjectName("x"), "pytorchjob.kubeflow.org/x");
  }
  EXPECT_EQ(finder.Find("po")->kind, "Pod");
  EXPECT_FALSE(finder.Find("pods.kubeflow.org").has_value());
  EXPECT_TRUE(finder.FindKind("kubeflow.org/v1", "PyTorchJob").has_value());
  EXPECT_FALSE(finder.FindKind("kubeflow.org/v2", "PyTorchJob").has_value());
}

TEST(ExecSession, ReadsExitCodes) {
  EXPECT_EQ(ExitCodeFrom(R"({"status":"Success"})").value_or(-1), 0);
  EXPECT_EQ(
      ExitCodeFrom(
          R"({"status":"Failure","reason":"NonZeroExitCode","message":"m","details":{"causes":[)"
          R"({"reason":"ExitCode","message":"3"}]}})")
          .value_or(-1),
      3);
  EXPECT_EQ(ExitCodeFrom(R"({"status":"Failure","message":"no such program"})").error().message(),
            "no such program");
  EXPECT_FALSE(ExitCodeFrom("nonsense").has_value());
}

}  // namespace
}  // namespace muster::cli
