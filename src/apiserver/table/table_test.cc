#include "apiserver/table/table.h"

#include <gtest/gtest.h>

#include "apiserver/table/json_path.h"
#include "json/parse.h"
#include "json/write.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

const Time kNow = *ParseTime("2026-01-01T01:00:00Z");

json::Value Read(const std::string& text) {
  Result<json::Value> value = json::Parse(text);
  EXPECT_TRUE(value.has_value()) << text;
  return value.value_or(json::Value());
}

json::Array Cells(const char* plural, const std::string& object, const char* group = "") {
  const schema::KindPtr kind = schema::Registry::BuiltIn().Find(group, "v1", plural);
  const std::shared_ptr<const TablePrinter> printer = PrinterFor(kind);
  json::Array cells = printer->Cells(Read(object), kNow);
  EXPECT_EQ(cells.size(), printer->columns().size());
  return cells;
}

// READY, STATUS and RESTARTS of a pod with the given status and containers a, b.
std::string Pod(const std::string& status, const std::string& metadata = "",
                const std::string& init = "") {
  const json::Array cells =
      Cells("pods", "{\"metadata\":{\"name\":\"p\"" + metadata +
                        "},\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}]" + init +
                        "},\"status\":" + status + "}");
  return cells[1].Str() + " " + cells[2].Str() + " " + cells[3].Str();
}

TEST(PodTable, PhaseAloneWhenNothingElseIsKnown) {
  EXPECT_EQ(Pod(R"({"phase":"Pending"})"), "0/2 Pending 0");
  EXPECT_EQ(Pod(R"({"phase":"Failed","reason":"Evicted"})"), "0/2 Evicted 0");
  EXPECT_EQ(Pod(R"({"phase":"Pending","conditions":[{"type":"PodScheduled",
        "reason":"SchedulingGated"}]})"),
            "0/2 SchedulingGated 0");
}

TEST(PodTable, WaitingAndTerminatedReasons) {
  EXPECT_EQ(Pod(R"({"phase":"Pending",
        "containerStatuses":[{"state":{"waiting":{"reason":"ContainerCreating"}}}]})"),
            "0/2 ContainerCreating 0");
  EXPECT_EQ(Pod(R"({"phase":"Running","containerStatuses":[{"restartCount":3,
        "state":{"waiting":{"reason":"CrashLoopBackOff"}},
                    "lastState":{"terminated":{"finishedAt":"2026-01-01T00:55:00Z"}}}]})"),
            "0/2 CrashLoopBackOff 3 (5m ago)");
  EXPECT_EQ(
      Pod(R"({"phase":"Failed","containerStatuses":[{"state":{"terminated":{"reason":"OOMKilled",
        "exitCode":137}}}]})"),
      "0/2 OOMKilled 0");
  EXPECT_EQ(
      Pod(R"({"phase":"Failed","containerStatuses":[{"state":{"terminated":{"exitCode":3}}}]})"),
      "0/2 ExitCode:3 0");
  EXPECT_EQ(
      Pod(R"({"phase":"Failed","containerStatuses":[{"state":{"terminated":{"signal":9}}}]})"),
      "0/2 Signal:9 0");
}

TEST(PodTable, CompletedBesideRunning) {
  const std::string statuses =
      R"("containerStatuses":[{"state":{"terminated":{"reason":"Completed"}}},
                                   {"ready":true,"state":{"running":{}}}])";
  EXPECT_EQ(
      Pod("{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]," +
          statuses + "}"),
      "1/2 Running 0");
  EXPECT_EQ(Pod("{\"phase\":\"Running\"," + statuses + "}"), "1/2 NotReady 0");
  EXPECT_EQ(Pod(R"({"phase":"Succeeded",
        "containerStatuses":[{"state":{"terminated":{"reason":"Completed"}}}]})"),
            "0/2 Completed 0");
}

TEST(PodTable, Terminating) {
  const std::string deleted = R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")";
  EXPECT_EQ(Pod(R"({"phase":"Running"})", deleted), "0/2 Terminating 0");
  EXPECT_EQ(Pod(R"({"phase":"Running","reason":"NodeLost"})", deleted), "0/2 Unknown 0");
  EXPECT_EQ(Pod(R"({"phase":"Succeeded"})", deleted), "0/2 Succeeded 0");
}

TEST(PodTable, InitContainers) {
  const std::string init = R"(,"initContainers":[{"name":"i"},{"name":"j"}])";
  const std::string done =
      R"({"name":"i","state":{"terminated":{"exitCode":0,"reason":"Completed"}}})";
  EXPECT_EQ(Pod("{\"phase\":\"Pending\",\"initContainerStatuses\":[" + done +
                    R"(,{"name":"j","state":{"running":{}}}]})",
                "", init),
            "0/2 Init:1/2 0");
  EXPECT_EQ(Pod(R"({"phase":"Pending","initContainerStatuses":[{"name":"i",
        "state":{"waiting":{"reason":"PodInitializing"}}}]})",
                "", init),
            "0/2 Init:0/2 0");
  EXPECT_EQ(Pod(R"({"phase":"Pending","initContainerStatuses":[{"name":"i","restartCount":2,
        "state":{"terminated":{"exitCode":1,"reason":"Error"}}}]})",
                "", init),
            "0/2 Init:Error 2");
  EXPECT_EQ(Pod(R"({"phase":"Failed","initContainerStatuses":[{"name":"i",
        "state":{"terminated":{"exitCode":7}}}]})",
                "", init),
            "0/2 Init:ExitCode:7 0");
}

TEST(PodTable, SidecarsCountAsContainers) {
  EXPECT_EQ(
      Pod(R"({"phase":"Running","initContainerStatuses":[{"name":"s","started":true,"ready":true,
        "state":{"running":{}}}],
                    "containerStatuses":[{"ready":true,"state":{"running":{}}},{"ready":true,
        "state":{"running":{}}}]})",
          "", R"(,"initContainers":[{"name":"s","restartPolicy":"Always"}])"),
      "3/3 Running 0");
}

TEST(Tables, Nodes) {
  const json::Array cells = Cells(
      "nodes", R"({"metadata":{"name":"n","labels":{"node-role.kubernetes.io/control-plane":"",
      "kubernetes.io/role":"gpu"},"creationTimestamp":"2026-01-01T00:00:00Z"},
        "spec":{"unschedulable":true},
      "status":{"conditions":[{"type":"Ready","status":"True"}],"nodeInfo":{"kubeletVersion":"v1"},
      "addresses":[{"type":"InternalIP","address":"10.0.0.1"}]}})");
  EXPECT_EQ(json::Write(json::Value(cells)),
            "[\"n\",\"Ready,SchedulingDisabled\",\"control-plane,gpu\",\"60m\",\"v1\",\"10.0.0.1\","
            "\"\\u003cnone\\u003e\","
            "\"\\u003cunknown\\u003e\",\"\\u003cunknown\\u003e\",\"\\u003cunknown\\u003e\"]");
}

TEST(Tables, ServicesOfEveryType) {
  const auto row = [](const std::string& spec, const std::string& status = "{}") {
    const json::Array cells = Cells("services", "{\"metadata\":{\"name\":\"s\"},\"spec\":" + spec +
                                                    ",\"status\":" + status + "}");
    return cells[1].Str() + " " + cells[2].Str() + " " + cells[3].Str() + " " + cells[4].Str();
  };
  EXPECT_EQ(row(R"({"type":"ClusterIP","clusterIP":"None"})"), "ClusterIP None <none> <none>");
  EXPECT_EQ(row(R"({"type":"NodePort","clusterIP":"10.43.0.9","ports":[{"port":80,"nodePort":30080,
        "protocol":"TCP"}]})"),
            "NodePort 10.43.0.9 <none> 80:30080/TCP");
  EXPECT_EQ(row(R"({"type":"LoadBalancer","clusterIP":"10.43.0.9"})"),
            "LoadBalancer 10.43.0.9 <pending> <none>");
  EXPECT_EQ(row(R"({"type":"ExternalName","externalName":"example.com"})"),
            "ExternalName <none> example.com <none>");
}

TEST(Tables, EndpointSlicesListAFew) {
  const json::Array cells = Cells(
      "endpointslices", R"({"metadata":{"name":"e"},"addressType":"IPv4","ports":[{"port":80}],
      "endpoints":[{"addresses":["1"]},{"addresses":["2"]},{"addresses":["3"]},
        {"addresses":["4"]},{"addresses":["5"]}]})",
      "discovery.k8s.io");
  EXPECT_EQ(cells[2].AsString(), "80");
  EXPECT_EQ(cells[3].AsString(), "1,2,3 + 2 more...");
}

TEST(Tables, EndpointsListAFewAddressesWithTheirPorts) {
  const auto shown = [](const std::string& subsets) {
    return Cells("endpoints", R"({"metadata":{"name":"e"})" + subsets + "}")[1].Str();
  };
  EXPECT_EQ(shown(""), "<none>");
  EXPECT_EQ(
      shown(R"(,"subsets":[{"notReadyAddresses":[{"ip":"10.0.0.1"}],"ports":[{"port":80}]}])"), "");
  EXPECT_EQ(shown(R"(,"subsets":[{"addresses":[{"ip":"10.0.0.1"}]}])"), "10.0.0.1");
  EXPECT_EQ(shown(R"(,"subsets":[{"addresses":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}],
                     "ports":[{"port":80},{"port":81}]}])"),
            "10.0.0.1:80,[fd00::1]:80,10.0.0.1:81 + 1 more...");
}

// STATUS, COMPLETIONS and DURATION of a job.
std::string Job(const std::string& status, const std::string& spec = R"({"completions":3})",
                const std::string& metadata = "{}") {
  const json::Array cells = Cells(
      "jobs", R"({"metadata":)" + metadata + R"(,"spec":)" + spec + R"(,"status":)" + status + "}",
      "batch");
  return cells[1].Str() + " " + cells[2].Str() + " " + cells[3].Str();
}

TEST(Tables, JobsSayHowFarTheyAre) {
  const auto with = [](const std::string& type, const std::string& metadata = "{}") {
    return Job(R"({"conditions":[{"type":")" + type + R"(","status":"True"}]})",
               R"({"completions":3})", metadata);
  };
  const std::string deleted = R"({"deletionTimestamp":"2026-01-01T00:00:00Z"})";
  EXPECT_EQ(with("Complete", deleted), "Complete 0/3 ");
  EXPECT_EQ(with("Failed", deleted), "Failed 0/3 ");
  EXPECT_EQ(with("Suspended", deleted), "Terminating 0/3 ");
  EXPECT_EQ(with("Suspended"), "Suspended 0/3 ");
  EXPECT_EQ(with("FailureTarget"), "FailureTarget 0/3 ");
  EXPECT_EQ(with("SuccessCriteriaMet"), "SuccessCriteriaMet 0/3 ");
  EXPECT_EQ(Job(R"({"conditions":[{"type":"Complete","status":"False"}]})"), "Running 0/3 ");
}

TEST(Tables, JobsCountTheirCompletions) {
  EXPECT_EQ(Job(R"({"succeeded":2,"startTime":"2026-01-01T00:58:00Z"})"), "Running 2/3 2m");
  EXPECT_EQ(Job(R"({"startTime":"2026-01-01T00:00:00Z","completionTime":"2026-01-01T00:00:42Z"})"),
            "Running 0/3 42s");
  EXPECT_EQ(Job(R"({"succeeded":1})", R"({"parallelism":4})"), "Running 1/1 of 4 ");
  EXPECT_EQ(Job("{}", R"({"parallelism":1})"), "Running 0/1 ");
}

TEST(Tables, CronJobsSayWhenTheyWereLastDue) {
  const json::Array cells =
      Cells("cronjobs", R"({"metadata":{"name":"c"},"spec":{"schedule":"@daily"},
      "status":{"active":[{},{}],"lastScheduleTime":"2026-01-01T00:00:00Z"}})",
            "batch");
  EXPECT_EQ(cells[2].AsString(), "<none>");
  EXPECT_EQ(cells[3].AsString(), "False");
  EXPECT_EQ(cells[4].AsInt(), 2);
  EXPECT_EQ(cells[5].AsString(), "60m");
}

TEST(Tables, SelectorsOfWorkloads) {
  const auto selector = [](const std::string& text) {
    return Cells("replicasets", R"({"spec":{"selector":)" + text + "}}", "apps")[7].Str();
  };
  EXPECT_EQ(selector(R"({"matchLabels":{"b":"c","a":"b"}})"), "a=b,b=c");
  EXPECT_EQ(selector("{}"), "<none>");
  EXPECT_EQ(selector("null"), "<none>");
  EXPECT_EQ(selector(R"({"matchExpressions":[{"key":"a","operator":"Near"}]})"), "<error>");
}

TEST(JsonPath, FindsWhatColumnsNeed) {
  const json::Value root =
      Read(R"({"a":{"b.c":[{"type":"x","v":1},{"type":"y","v":2},{"type":"z","v":3}]}})");
  const auto find = [&](std::string_view path) {
    const Result<JsonPath> parsed = JsonPath::Parse(path);
    EXPECT_TRUE(parsed.has_value()) << path;
    return json::Write(json::Value(parsed->Find(root)));
  };
  EXPECT_EQ(find(R"(.a.b\.c[?(@.type=="y")].v)"), "[2]");
  EXPECT_EQ(find("{.a['b.c'][*].v}"), "[1,2,3]");
  EXPECT_EQ(find("$.a['b.c'][-1].v"), "[3]");
  EXPECT_EQ(find(".a['b.c'][-1:].type"), "[\"z\"]");
  EXPECT_EQ(find(".a['b.c'][0:2].v"), "[1,2]");
  EXPECT_EQ(find(".a['b.c'][?(@.v>1)].type"), "[\"y\",\"z\"]");
  EXPECT_EQ(find(".a['b.c'][?(@.none)].v"), "[]");
  EXPECT_EQ(find(".a.nothing[7]"), "[]");
}

TEST(JsonPath, RefusesWhatItDoesNotUnderstand) {
  for (const char* path : {".a[", ".a[b]", ".a[?(b)]", ".a[?(@.x==)]", ".a..b"}) {
    EXPECT_FALSE(JsonPath::Parse(path).has_value()) << path;
  }
  std::string longest;
  for (size_t i = 0; i <= kMaxJsonPathSteps; ++i) longest += ".a";
  EXPECT_FALSE(JsonPath::Parse(longest).has_value());
}

TEST(AgeCell, UnknownWithoutATime) {
  EXPECT_EQ(AgeCell(json::Value(), kNow), "<unknown>");
  EXPECT_EQ(AgeCell(json::Value("2026-01-01T00:59:18Z"), kNow), "42s");
}

}  // namespace
}  // namespace muster::apiserver
