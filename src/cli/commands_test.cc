#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/cli_testing.h"
#include "cli/three_way.h"
#include "net/pki.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

class CommandsTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / ("muster-cli-test-" + std::to_string(getpid()));
    fs::create_directories(dir_ / "below");
  }
  void TearDown() override { fs::remove_all(dir_); }
  std::string File(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
    return dir_ / name;
  }

  fs::path dir_;
  FakeCluster cluster_;
};

constexpr const char* kMap =
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: '1', b: '2'}}";

TEST_F(CommandsTest, ApplyCreatesConfiguresAndLeavesAlone) {
  const std::string file = File("x.yaml", kMap);
  EXPECT_EQ(cluster_.Run("apply", {"-f", file}).out, "configmap/x created\n");
  EXPECT_EQ(cluster_.Run("apply", {"-f", file}).out, "configmap/x unchanged\n");
  File("x.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: '3'}}");
  EXPECT_EQ(cluster_.Run("apply", {"-f", file}).out, "configmap/x configured\n");
  const json::Value* stored = cluster_.api.Find("/api/v1/configmaps", "default", "x");
  ASSERT_NE(stored, nullptr);
  EXPECT_EQ((*stored)["data"], Yaml("{a: '3'}"));
  EXPECT_EQ(LastAppliedOf(*stored)["data"], Yaml("{a: '3'}"));
}

TEST_F(CommandsTest, ApplyAsksTheServerToRefuseUnknownFields) {
  cluster_.Run("apply", {"-f", File("x.yaml", kMap)});
  EXPECT_NE(cluster_.api.requests.back().find("fieldValidation=Strict"), std::string::npos);
}

TEST_F(CommandsTest, ApplyTriesAgainAfterAConflict) {
  const std::string file = File("x.yaml", kMap);
  cluster_.Run("apply", {"-f", file});
  File("x.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: '3'}}");
  int conflicts = 2;
  cluster_.api.before_handle = [&](const net::Request& request,
                                   const net::ResponseWriterPtr& writer) {
    if (request.method != "PATCH" || conflicts-- <= 0) return true;
    client::FakeApi::SendError(*writer, 409, "Conflict", "the object has been modified");
    return false;
  };
  EXPECT_EQ(cluster_.Run("apply", {"-f", file}).out, "configmap/x configured\n");
}

TEST_F(CommandsTest, ApplyReadsDirectoriesListsAndManyDocuments) {
  File("a.yaml", std::string(kMap) +
                     "\n---\n{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j}}");
  File("b.json",
       R"({"apiVersion":"v1","kind":"List","items":[
            {"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}]})");
  File("notes.txt", "not a manifest");
  File("below/c.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: deep}}");
  EXPECT_EQ(cluster_.Run("apply", {"-f", dir_}).out,
            "configmap/x created\npytorchjob.kubeflow.org/j created\nnamespace/n created\n");
  EXPECT_NE(cluster_.Run("apply", {"-R", "-f", dir_}).out.find("configmap/deep created"),
            std::string::npos);
}

TEST_F(CommandsTest, ApplySaysWhatIsWrongWithAFileAndGoesOn) {
  fs::create_directories(dir_ / "empty");
  const std::string map = kMap;
  const struct {
    std::string name, text, want;
  } kBad[] = {
      {"absent.yaml", "", "No such file or directory"},
      {"broken.yaml", "a:\n  b: 1\n c: 2\n", "invalid YAML at line 3 column 2"},
      {"flow.yaml", "a: [", "invalid YAML at line 1"},
      {"tab.yaml", "a:\n\tb: 1\n", "line 2"},
      {"broken.json", "{\"apiVersion\": \"v1\",\n \"kind\": }", "at line 2 column 10"},
      {"half.json", "{\"apiVersion\": \"v1\",", "at line 1 column 21"},
      {"binary.yaml",
       std::string("\x7f"
                   "ELF\x02\0\0",
                   7),
       "not text in UTF-8"},
      {"latin1.yaml", "a: \xe9", "not text in UTF-8"},
      {"empty.yaml", "", "write at least apiVersion, kind and metadata.name"},
      {"comment.yaml", "# nothing\n---\n", "write at least apiVersion, kind and metadata.name"},
      {"empty", "", "no .yaml, .yml or .json file in this directory"},
      {"text.yaml", "just text", "needs apiVersion and kind"},
      {"noversion.yaml", "kind: ConfigMap", "needs apiVersion and kind"},
      {"noname.yaml", map + "\n---\n{apiVersion: v1, kind: ConfigMap}",
       "a ConfigMap without metadata.name"},
  };
  for (const auto& bad : kBad) {
    const bool written = bad.name != "absent.yaml" && bad.name != "empty";
    const std::string file = written ? File(bad.name, bad.text) : std::string(dir_ / bad.name);
    const Outcome outcome = cluster_.Run("apply", {"-f", file});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.err.starts_with("error: ")) << outcome.err;
    EXPECT_NE(outcome.err.find(file), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(bad.want), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(cluster_.api.Count("/api/v1/configmaps"), 0u);
  Outcome mixed = cluster_.Run(
      "apply",
      {"-f", File("mixed.yaml", "{apiVersion: v9, kind: Nothing, metadata: {name: q}}\n---\n" +
                                    std::string(kMap))});
  EXPECT_EQ(mixed.code, 1);
  EXPECT_EQ(mixed.out, "configmap/x created\n");
  EXPECT_NE(mixed.err.find("no matches for kind \"Nothing\""), std::string::npos) << mixed.err;
}

TEST_F(CommandsTest, ApplySaysWhichObjectOfWhichFileIsInvalid) {
  cluster_.api.before_handle = [](const net::Request& request,
                                  const net::ResponseWriterPtr& writer) {
    if (request.method != "POST") return true;
    net::Response response;
    response.status = 422;
    response.body = R"({"kind":"Status","status":"Failure","reason":"Invalid","code":422,
        "message":"ConfigMap \"x\" is invalid: data: no","details":{"kind":"ConfigMap"}})";
    writer->Send(std::move(response));
    return false;
  };
  const std::string file = File("invalid.yaml", kMap);
  EXPECT_EQ(cluster_.Run("apply", {"-f", file}).err,
            file + ": ConfigMap \"x\" is invalid: data: no\n");
}

TEST_F(CommandsTest, ApplyRefusesAnotherNamespaceThanAskedFor) {
  const std::string file =
      File("x.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: other}}");
  // The session of this test is in "default".
  EXPECT_NE(cluster_.Run("apply", {"-n", "default", "-f", file}).err.find("does not match"),
            std::string::npos);
  EXPECT_EQ(cluster_.Run("apply", {"-f", file}).code, 0);
}

TEST_F(CommandsTest, DeleteWaitsUntilTheObjectIsGone) {
  cluster_.api.Put("/api/v1/configmaps",
                   Yaml("{metadata: {name: x, namespace: default, finalizers: [f]}}"));
  cluster_.loop.After(seconds(3),
                      [&] { cluster_.api.Remove("/api/v1/configmaps", "default", "x"); });
  const Time start = cluster_.loop.Now();
  Outcome outcome = cluster_.Run("delete", {"cm", "x"});
  EXPECT_EQ(outcome.out, "configmap \"x\" deleted\n");
  EXPECT_GE(cluster_.loop.Now() - start, seconds(3));
  EXPECT_EQ(cluster_.api.Count("/api/v1/configmaps"), 0u);
}

TEST_F(CommandsTest, DeleteReportsMissingObjectsUnlessToldNotTo) {
  Outcome missing = cluster_.Run("delete", {"pod", "nope"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.err.find("not found"), std::string::npos);
  EXPECT_EQ(cluster_.Run("delete", {"pod", "nope", "--ignore-not-found"}).code, 0);
  EXPECT_EQ(cluster_.Run("delete", {"pods"}).code, 1) << "not everything by mistake";
}

TEST_F(CommandsTest, WaitReturnsWhenTheConditionHolds) {
  const std::string jobs = "/apis/kubeflow.org/v1/pytorchjobs";
  cluster_.api.Put(jobs, Yaml("{metadata: {name: j, namespace: default}}"));
  cluster_.loop.After(seconds(5), [&] {
    cluster_.api.Put(jobs, Yaml("{metadata: {name: j, namespace: default},"
                                " status: {conditions: [{type: Succeeded, status: 'True'}]}}"));
  });
  EXPECT_EQ(cluster_.Run("wait", {"pytorchjob/j", "--for=condition=Succeeded"}).out,
            "pytorchjob.kubeflow.org/j condition met\n");
}

TEST_F(CommandsTest, WaitGivesUpInTimeOrWhenThereIsNoHope) {
  const std::string jobs = "/apis/kubeflow.org/v1/pytorchjobs";
  cluster_.api.Put(jobs, Yaml("{metadata: {name: j, namespace: default}}"));
  Outcome late =
      cluster_.Run("wait", {"pytorchjob/j", "--for=condition=Succeeded", "--timeout=2s"});
  EXPECT_EQ(late.code, 1);
  EXPECT_NE(late.err.find("timed out waiting for the condition on pytorchjobs/j"),
            std::string::npos)
      << late.err;
  cluster_.api.Put(
      jobs, Yaml("{metadata: {name: j, namespace: default},"
                 " status: {conditions: [{type: Failed, status: 'True', message: exit code 3}]}}"));
  EXPECT_NE(
      cluster_.Run("wait", {"pytorchjob/j", "--for=condition=Succeeded"}).err.find("exit code 3"),
      std::string::npos);
  EXPECT_EQ(cluster_.Run("wait", {"pytorchjob/none", "--for=condition=Succeeded"}).code, 1);
  EXPECT_EQ(cluster_.Run("wait", {"pytorchjob/none", "--for=delete"}).code, 0);
}

TEST_F(CommandsTest, GetPrintsTablesAndWholeObjects) {
  json::Value table = *json::Parse(
      R"({"kind":"Table",
          "columnDefinitions":[{"name":"Name"},{"name":"Status"},{"name":"IP","priority":1}],
          "rows":[{"cells":["web","Running","10.0.0.1"],
                   "object":{"metadata":{"namespace":"default","labels":{"a":"b"}}}},
                  {"cells":["database","Pending",null],
                   "object":{"metadata":{"namespace":"default"}}}]})");
  cluster_.api.static_answers["/api/v1/namespaces/default/pods"] = table;
  EXPECT_EQ(cluster_.Run("get", {"po"}).out,
            "NAME       STATUS\nweb        Running\ndatabase   Pending\n");
  EXPECT_EQ(cluster_.Run("get", {"pods", "-o", "wide", "--show-labels"}).out,
            "NAME       STATUS    IP         LABELS\n"
            "web        Running   10.0.0.1   a=b\n"
            "database   Pending   <none>     <none>\n");
  cluster_.api.static_answers.erase("/api/v1/namespaces/default/pods");
  cluster_.api.Put("/api/v1/pods",
                   Yaml("{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: default}}"));
  EXPECT_EQ(cluster_.Run("get", {"pods", "-o", "name"}).out, "pod/web\n");
  EXPECT_EQ(cluster_.Run("get", {"pod/web", "-o", "json"}).out.substr(0, 2), "{\n");
  EXPECT_NE(cluster_.Run("get", {"pod", "nope"}).err.find("Error from server (NotFound)"),
            std::string::npos);
  EXPECT_NE(cluster_.Run("get", {"gizmos"})
                .err.find("the server doesn't have a resource type \"gizmos\""),
            std::string::npos);
}

TEST_F(CommandsTest, ExplainNamesTheReasonOfAWaitingJobOnce) {
  cluster_.api.Put("/apis/kubeflow.org/v1/pytorchjobs",
                   Yaml("{metadata: {name: j, namespace: default}}"));
  cluster_.api.Put("/apis/scheduling.volcano.sh/v1beta1/podgroups",
                   Yaml("{metadata: {name: j, namespace: default}, spec: {minMember: 2},"
                        " status: {conditions: [{type: Unschedulable, status: 'True', message: 0/1 "
                        "nodes are available}]}}"));
  for (const char* pod : {"j-master-0", "j-worker-0"}) {
    cluster_.api.Put(
        "/api/v1/pods",
        Yaml(std::string("{metadata: {name: ") + pod +
             ", namespace: default}, status: {phase: Pending, conditions: [{type: PodScheduled,"
             " status: 'False', message: 0/1 nodes are available}]}}"));
  }
  Outcome outcome = cluster_.Run("explain", {"job", "j"});
  EXPECT_EQ(outcome.out,
            "PyTorchJob j has not started\n"
            "  It waits as a gang of 2: 0/1 nodes are available\n"
            "  j-master-0, j-worker-0: waits with its gang\n");
}

TEST_F(CommandsTest, ExplainSaysOnceWhyAnImageIsNotThere) {
  cluster_.api.Put("/api/v1/pods",
                   Yaml("{metadata: {name: p, namespace: default}, spec: {nodeName: n1}, status: "
                        "{phase: Pending, containerStatuses: [{name: a, state: {waiting: {reason: "
                        "ImagePullBackOff, message: 'Back-off pulling image \"x:1\": ErrImagePull: "
                        "manifest unknown'}}}]}}"));
  const auto event = [&](const char* name, const char* reason, const char* message) {
    cluster_.api.Put(
        "/api/v1/events",
        Yaml(fmt::format("{{metadata: {{name: {}, namespace: default}}, involvedObject: {{name: "
                         "p}}, type: Warning, reason: {}, message: '{}'}}",
                         name, reason, message)));
  };
  event("p.1", "Failed", "Failed to pull image \"x:1\": manifest unknown");
  event("p.2", "Slow", "the disk is slow");
  event("p.3", "Slow", "the disk is slow");
  EXPECT_EQ(cluster_.Run("explain", {"pod", "p"}).out,
            "Pod p waits: container a: ImagePullBackOff: Back-off pulling image \"x:1\": "
            "ErrImagePull: manifest unknown\n  Slow: the disk is slow\n");
}

TEST_F(CommandsTest, ExplainSaysWhatEndedInAPodThatIsStillRunning) {
  const auto explain = [&](const std::string& containers) {
    cluster_.api.Put("/api/v1/pods",
                     Yaml("{metadata: {name: p, namespace: default}, spec: {nodeName: n1}, status: "
                          "{phase: Running, containerStatuses: [" +
                          containers + "]}}"));
    return cluster_.Run("explain", {"pod", "p"}).out;
  };
  const std::string lost = "{terminated: {exitCode: 137, reason: ContainerStatusUnknown}}";
  EXPECT_EQ(explain("{name: a, state: {running: {}}}"), "Pod p runs on node n1\n");
  EXPECT_EQ(explain("{name: a, state: {running: {}}}, {name: b, state: " + lost + "}"),
            "Pod p runs on node n1; container b ended with exit code 137 "
            "(ContainerStatusUnknown)\n");
  EXPECT_EQ(explain("{name: a, state: " + lost + "}"),
            "Pod p does not run at the moment on node n1; container a ended with exit code 137 "
            "(ContainerStatusUnknown)\n");
  EXPECT_EQ(explain("{name: a, restartCount: 1, state: {running: {}}, lastState: " + lost + "}"),
            "Pod p runs on node n1; container a was restarted once, after exit code "
            "137 (ContainerStatusUnknown)\n");
}

// A pod says how it ended in its own words.
TEST_F(CommandsTest, WhatAPodSaysDoesNotMoveTheCursor) {
  cluster_.api.Put("/api/v1/pods",
                   Yaml("{metadata: {name: p, namespace: default}, spec: {nodeName: n1}, status: "
                        "{phase: Running, containerStatuses: [{name: a, state: {waiting: {reason: "
                        "Back, message: \"\\e[2J\"}}}], conditions: [{type: Ready, status: "
                        "'False', reason: R, message: \"\\e[A\"}]}}"));
  for (const char* command : {"explain", "describe"}) {
    const Outcome outcome = cluster_.Run(command, {"pod", "p"});
    EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("\\x1b["), std::string::npos) << outcome.out;
  }
}

TEST_F(CommandsTest, ExplainSaysThatAPodRunsAndIsNotReady) {
  const auto explain = [&](const std::string& state, const std::string& ready) {
    cluster_.api.Put(
        "/api/v1/pods",
        Yaml("{metadata: {name: p, namespace: default}, spec: {nodeName: n1}, status: {phase: "
             "Running, containerStatuses: [{name: a, state: " +
             state + "}], conditions: [{type: Ready, " + ready + "}]}}"));
    return cluster_.Run("explain", {"pod", "p"}).out;
  };
  const std::string unready =
      "status: 'False', reason: ContainersNotReady, message: 'containers with unready status: "
      "[a]'";
  EXPECT_EQ(explain("{running: {}}", unready),
            "Pod p runs on node n1; it is not ready: containers with unready status: [a]\n");
  EXPECT_EQ(explain("{running: {}}", "status: 'True'"), "Pod p runs on node n1\n");
  // What has ended is said already.
  EXPECT_EQ(explain("{terminated: {exitCode: 1, reason: Error}}", unready),
            "Pod p does not run at the moment on node n1; container a ended with exit code 1 "
            "(Error)\n");
}

TEST_F(CommandsTest, ExplainSaysWhatANodeHasFreeAndWhyItTakesNoPods) {
  const auto put = [&](const std::string& spec, const std::string& ready) {
    cluster_.api.Put(
        "/api/v1/nodes",
        Yaml("{metadata: {name: n1}, spec: {" + spec + "}, status: {conditions: [" + ready +
             "], allocatable: {cpu: '4', memory: 8Gi, pods: '10', nvidia.com/gpu: '8'}}}"));
  };
  cluster_.api.Put(
      "/api/v1/pods",
      Yaml("{metadata: {name: a, namespace: default}, spec: {nodeName: n1, containers: [{name: c,"
           " resources: {requests: {cpu: 500m, memory: 1Gi, nvidia.com/gpu: '1'}}}]}}"));
  put("", "{type: Ready, status: 'True'}");
  const std::string free =
      "  free: 3500m of 4 cpu\n  free: 7Gi of 8Gi memory\n  free: 7 of 8 nvidia.com/gpu\n"
      "  free: 9 of 10 pods\n"
      "  the largest pod that fits: 7 nvidia.com/gpu, 3500m cpu, 7Gi memory\n"
      "  pod default/a has 1 pod with 500m cpu, 1Gi memory, 1 nvidia.com/gpu\n";
  EXPECT_EQ(cluster_.Run("explain", {"node", "n1"}).out, "Node n1 is Ready\n" + free);
  put("unschedulable: true, taints: [{key: a, value: b, effect: NoSchedule}]",
      "{type: Ready, status: 'True'}, {type: DiskPressure, status: 'True', message: full}");
  cluster_.api.Put("/api/v1/events",  // says again what the condition says
                   Yaml("{metadata: {name: e, namespace: default}, type: Warning, reason: "
                        "DiskPressure, message: full, involvedObject: {name: n1}}"));
  EXPECT_EQ(cluster_.Run("explain", {"node/n1"}).out,
            "Node n1 is Ready, but unschedulable: new pods do not go there until it is "
            "uncordoned\n"
            "  DiskPressure: full\n"
            "  taint a=b:NoSchedule, only for pods that tolerate it\n" +
                free);
  cluster_.api.Remove("/api/v1/events", "default", "e");
  put("", "{type: Ready, status: Unknown, reason: NodeStatusUnknown, message: silent}");
  EXPECT_EQ(cluster_.Run("explain", {"node", "n1"}).out,
            "Node n1 is not Ready: NodeStatusUnknown: silent\n" + free);
}

TEST_F(CommandsTest, GetWatchOutlivesTheServer) {
  const auto put = [&](const std::string& name) {
    cluster_.api.Put("/api/v1/pods", Yaml("{apiVersion: v1, kind: Pod, metadata: {name: " + name +
                                          ", namespace: default}}"));
  };
  put("a");
  cluster_.loop.After(seconds(1), [&] {
    cluster_.api.before_handle = [](const net::Request&, const net::ResponseWriterPtr& writer) {
      client::FakeApi::SendError(*writer, 503, "ServiceUnavailable", "starting");
      return false;
    };
    cluster_.api.CutWatches(false);
    put("b");
  });
  cluster_.loop.After(seconds(3), [&] { cluster_.api.before_handle = nullptr; });
  cluster_.loop.After(seconds(5), [&] { put("c"); });
  // Then the history is gone: a new list, of which only the news is printed.
  cluster_.loop.After(seconds(6), [&] {
    cluster_.api.CutWatches(true);
    put("d");
  });
  cluster_.loop.After(seconds(8), [&] {
    cluster_.api.before_handle = [](const net::Request&, const net::ResponseWriterPtr& writer) {
      client::FakeApi::SendError(*writer, 403, "Forbidden", "no more");
      return false;
    };
    cluster_.api.CutWatches(false);
  });
  const Outcome outcome = cluster_.Run("get", {"pods", "-w", "-o", "name"});
  EXPECT_EQ(outcome.out, "pod/a\npod/b\npod/c\npod/d\n");
  EXPECT_NE(outcome.err.find("waiting for the server"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("refused to watch (403)"), std::string::npos) << outcome.err;
}

TEST_F(CommandsTest, DescribeShowsContainersAndEvents) {
  cluster_.api.Put(
      "/api/v1/pods",
      Yaml("{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: default, labels: {app: "
           "web}},"
           " spec: {nodeName: n1, containers: [{name: c, image: i, command: [sleep, '1']}]},"
           " status: {phase: Running, containerStatuses: [{name: c, restartCount: 3,"
           " state: {waiting: {reason: CrashLoopBackOff, message: back-off}}}]}}"));
  cluster_.api.Put("/api/v1/events",
                   Yaml("{metadata: {name: e, namespace: default}, type: Warning, reason: BackOff,"
                        " message: again, count: 4, source: {component: kubelet}}"));
  const std::string text = cluster_.Run("describe", {"pod", "web"}).out;
  for (const char* part : {"Name:             web\n", "app=web", "n1", "CrashLoopBackOff",
                           "Restart Count:  3", "sleep 1", "BackOff", "(x4)", "kubelet"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

TEST_F(CommandsTest, DescribePutsTheContainersOfAJobBelowTheirReplicas) {
  cluster_.api.Put(
      "/apis/kubeflow.org/v1/pytorchjobs",
      Yaml(
          "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j, namespace: default},"
          " spec: {pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{name: c, image: "
          "i,"
          " resources: {requests: {cpu: 1, memory: 1Gi}}}]}}}}}}"));
  const std::string text = cluster_.Run("describe", {"pytorchjob", "j"}).out;
  const std::string block =
      "    Containers:\n"
      "      c:\n"
      "        Image:          i\n"
      "        Requests:       cpu: 1\n"
      "                        memory: 1Gi\n";
  EXPECT_NE(text.find(block), std::string::npos) << text;
}

TEST_F(CommandsTest, RunMakesAJobAndReturnsTheProgramsExitCode) {
  const std::string jobs = "/apis/kubeflow.org/v1/pytorchjobs";
  const auto finish = [&](const char* type, int exit_code) {
    cluster_.loop.After(seconds(1), [this, jobs, type, exit_code] {
      const json::Value* job = cluster_.api.Find(jobs, "default", "t");
      ASSERT_NE(job, nullptr);
      cluster_.api.Put(
          "/api/v1/pods",
          Yaml(fmt::format("{{metadata: {{name: t-master-0, namespace: default}},"
                           " status: {{phase: Failed, containerStatuses: [{{name: pytorch,"
                           " state: {{terminated: {{exitCode: {}}}}}}}]}}}}",
                           exit_code)));
      cluster_.api.Put(
          jobs, job->Set("status", Yaml(fmt::format(
                                       "{{conditions: [{{type: {}, status: 'True'}}]}}", type))));
    });
  };
  finish("Failed", 7);
  Outcome failed = cluster_.Run("run", {"--name", "t", "--", "sh", "-c", "exit 7"});
  EXPECT_EQ(failed.code, 7) << failed.err;
  EXPECT_NE(cluster_.Run("run", {"--name", "t", "--", "true"}).err.find("choose another --name"),
            std::string::npos);
  cluster_.api.Remove(jobs, "default", "t");
  finish("Succeeded", 0);
  EXPECT_EQ(cluster_.Run("run", {"--name", "t", "--rm", "--", "true"}).code, 0);
  EXPECT_EQ(cluster_.api.Count(jobs), 0u) << "--rm";
  EXPECT_EQ(cluster_.Run("run", {"--name", "t"}).code, 1);
  EXPECT_EQ(cluster_.Run("run", {"--name", "Not_A_Name", "--", "true"}).code, 1);
}

TEST_F(CommandsTest, RunSaysWhyAProgramDidNotStart) {
  const std::string jobs = "/apis/kubeflow.org/v1/pytorchjobs";
  const auto run = [&](const std::string& message) {
    cluster_.loop.After(seconds(1), [&, message] {
      const json::Value* job = cluster_.api.Find(jobs, "default", "t");
      ASSERT_NE(job, nullptr);
      json::Value pod = Yaml(
          "{metadata: {name: t-master-0, namespace: default}, status: {phase: Failed,"
          " containerStatuses: [{name: pytorch, state: {terminated: {exitCode: 128,"
          " reason: StartError}}}]}}");
      pod = pod.SetPath({"status", "containerStatuses"},
                        json::List({pod["status"]["containerStatuses"].At(0).SetPath(
                            {"state", "terminated", "message"}, message)}));
      cluster_.api.Put("/api/v1/pods", pod);
      cluster_.api.Put(jobs, job->Set("status", Yaml("{conditions: [{type: Failed, status: "
                                                     "'True'}]}")));
    });
    const Outcome outcome = cluster_.Run("run", {"--name", "t", "--", "x"});
    EXPECT_NE(outcome.err.find("muster: t-master-0: container pytorch: StartError: " + message),
              std::string::npos)
        << outcome.err;
    cluster_.api.Remove(jobs, "default", "t");
    cluster_.api.Remove("/api/v1/pods", "default", "t-master-0");
    return outcome.code;
  };
  EXPECT_EQ(run("exec: \"x\": executable file not found in $PATH"), 127);
  EXPECT_EQ(run("exec: \"./x\": No such file or directory"), 127);
  EXPECT_EQ(run("exec: \"./x\": Permission denied"), 126);
  EXPECT_EQ(run("cannot mount /data"), 128);
}

TEST_F(CommandsTest, TopShowsGpusWithWhatTheyDoAndWhoHasThem) {
  EXPECT_EQ(cluster_.Run("top", {}).code, 2);
  cluster_.api.before_handle = [](const net::Request& request,
                                  const net::ResponseWriterPtr& writer) {
    if (request.target != "/metrics") return true;
    net::Response response;
    response.body =
        "# HELP DCGM_FI_DEV_GPU_UTIL x\n"
        "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",pod=\"p\"} 37\n"
        "DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"GPU-a\",pod=\"p\"} 512\n"
        "DCGM_FI_DEV_POWER_USAGE{UUID=\"GPU-a\"} 123.456\n"
        "DCGM_FI_DEV_GPU_TEMP{broken\n";
    writer->Send(std::move(response));
    return false;
  };
  EXPECT_EQ(cluster_.Run("top", {"gpus"}).out, "No node offers GPUs\n");
  cluster_.api.Put("/api/v1/nodes", Yaml(R"({metadata: {name: n1, annotations: {
      muster.dev/devices: '{"nvidia.com/gpu":[
        {"id":"GPU-a","index":0,"model":"NVIDIA H200","memory":150754820096},
        {"id":"GPU-b","index":1,"model":"NVIDIA H200","unhealthy":"GPU is lost"}]}'}}})"));
  const auto pod = [&](const std::string& name, const std::string& phase) {
    cluster_.api.Put("/api/v1/pods", Yaml("{metadata: {name: " + name +
                                          R"(, namespace: default, annotations: {
      muster.dev/assigned-devices: '{"c":{"nvidia.com/gpu":["GPU-a"]}}'}}, spec: {nodeName: n1},
      status: {phase: )" + phase + "}}"));
  };
  pod("p", "Running");
  pod("q", "Succeeded");
  const Outcome top = cluster_.Run("top", {"gpus"});
  EXPECT_EQ(top.out,
            "NODE   GPU   MODEL         UTIL   MEMORY           TEMP   POWER   HEALTH        POD\n"
            "n1     0     NVIDIA H200   37 %   512/143771 MiB   -      123 W   ok            "
            "default/p\n"
            "n1     1     NVIDIA H200   -      -                -      -       GPU is lost   -\n");
}

TEST_F(CommandsTest, SaysWhatToDoAboutACertificateThatDoesNotHold) {
  const Time now = RealClock().Wall();
  const net::Pki pki = *net::Pki::Create(now);
  const std::string pem = pki.IssueClient("admin", {}, now)->certificate_pem;
  EXPECT_EQ(DescribeCertificate(pem, now), "");
  EXPECT_EQ(DescribeCertificate("", now), "") << "a token, not a certificate";
  const std::string late = DescribeCertificate(pem, now + net::kCertificateLifetime + hours(1));
  EXPECT_NE(late.find("expired at " + FormatTime(now + net::kCertificateLifetime)), late.npos)
      << late;
  EXPECT_NE(late.find("muster kubeconfig --merge"), late.npos) << late;
  const std::string early = DescribeCertificate(pem, now - hours(1));
  EXPECT_NE(early.find("set the clock"), early.npos) << early;
}

TEST_F(CommandsTest, RunTellsOnceWhatAPodWaitsFor) {
  const std::string jobs = "/apis/kubeflow.org/v1/pytorchjobs";
  const auto wait = [&](const std::string& name, const std::string& waiting) {
    cluster_.api.Put("/api/v1/pods",
                     Yaml("{metadata: {name: " + name +
                          ", namespace: default}, spec: {nodeName: n1}, status: {phase: Pending,"
                          " containerStatuses: [{name: c, state: {waiting: {reason: "
                          "ContainerCreating" +
                          waiting + "}}}]}}"));
  };
  cluster_.loop.After(seconds(1), [&] { wait("t-worker-0", ""); });
  cluster_.loop.After(seconds(2), [&] { wait("t-worker-0", ", message: /x is no directory"); });
  cluster_.loop.After(seconds(3), [&] { wait("t-worker-1", ", message: /x is no directory"); });
  cluster_.loop.After(seconds(4), [&] { wait("t-worker-0", ", message: /y is no directory"); });
  cluster_.loop.After(seconds(5), [&] { cluster_.api.Remove(jobs, "default", "t"); });
  EXPECT_EQ(cluster_.Run("run", {"--name", "t", "--", "x"}).err,
            "muster: t-worker-0 waits: container c: ContainerCreating: /x is no directory\n"
            "muster: t-worker-0 waits: container c: ContainerCreating: /y is no directory\n"
            "Job t was deleted\n");
}

}  // namespace
}  // namespace muster::cli
