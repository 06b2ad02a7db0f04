#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/cli_testing.h"
#include "cost/history.h"

namespace muster::cli {
namespace {

constexpr char kLedgerPath[] = "/apis/cost.muster.dev/v1alpha1/costledgers";

// SimLoop begins on 2026-01-01 at 00:00:00; the commands below run at 02:00:00.
class CostCommandTest : public testing::Test {
 protected:
  CostCommandTest() {
    cluster_.api.Put("/api/v1/nodes", Yaml(R"(
metadata: {name: n1, uid: u1, creationTimestamp: '2026-01-01T00:00:00Z',
           annotations: {muster.dev/hourly-price: '10'}}
status: {capacity: {cpu: '10', memory: 10Gi, nvidia.com/gpu: '2'}})"));
    PutPod("a", "annotations: {cost-center: ml}", "01:00:00");
    PutPod("b", "labels: {tier: gold}", "01:30:00");
    cluster_.loop.RunFor(hours(2));
  }
  void PutPod(const std::string& name, const std::string& metadata, const std::string& start) {
    cluster_.api.Put("/api/v1/pods", Yaml(fmt::format(R"(
metadata: {{name: {}, namespace: default, uid: u-{}, {}}}
spec:
  nodeName: n1
  containers:
  - {{name: c, resources: {{requests: {{cpu: '1'}}, limits: {{nvidia.com/gpu: '1'}}}}}}
status: {{phase: Running, startTime: '2026-01-01T{}Z'}})",
                                                      name, name, metadata, start)));
  }
  // As if the cluster kept a history; `workload` held a GPU from 00:00 to 00:30.
  void PutHistory(const std::string& workload) {
    cost::PodRow row;
    row.machine = cost::NodeFactsOf(*cluster_.api.Find("/api/v1/nodes", "", "n1")).machine;
    row.ns = "default";
    row.workload = workload;
    row.labels["cost-center"] = "gone";
    row.time = {*ParseTime("2026-01-01T00:00:00Z"), *ParseTime("2026-01-01T00:30:00Z")};
    row.pods = 1;
    row.gpu_milli_seconds[""] = 1800 * 1000;
    cost::Ledger ledger;
    ledger.pods = {row};
    cluster_.api.Put(kLedgerPath,
                     cost::LedgerObject(cost::LedgerName::Level::kHour, "20260101-00", "", ledger));
  }
  json::Value Json(std::vector<std::string> words) {
    words.insert(words.end(), {"-o", "json"});
    const Outcome outcome = cluster_.Run("cost", words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::Parse(outcome.out).value_or(json::Value());
  }

  FakeCluster cluster_;
};

json::Value Of(const json::Value& report, const std::string& name) {
  for (const json::Value& each : report["allocations"].items())
    if (each["name"].AsString() == name) return each;
  return nullptr;
}

TEST_F(CostCommandTest, ByCostCenterWithIdleAndTotal) {
  PutHistory("job/old");
  const json::Value report = Json({"--since", "24h"});
  EXPECT_EQ(report["aggregate"].AsString(), "cost-center");
  EXPECT_DOUBLE_EQ(Of(report, "ml")["gpuHours"].AsDouble(), 1);
  EXPECT_DOUBLE_EQ(Of(report, "gone")["gpuHours"].AsDouble(), 0.5);
  EXPECT_DOUBLE_EQ(Of(report, "(no cost-center)")["gpuHours"].AsDouble(), 0.5);
  EXPECT_NEAR(report["total"]["totalCost"].AsDouble(), 20, 1e-4);
  EXPECT_EQ(report["idle"]["name"].AsString(), "__idle__");
  double sum = report["idle"]["totalCost"].AsDouble();
  for (const json::Value& each : report["allocations"].items()) sum += each["totalCost"].AsDouble();
  EXPECT_NEAR(sum, 20, 1e-3);
  EXPECT_EQ(report["window"]["end"].AsString(), "2026-01-01T02:00:00Z");
}

TEST_F(CostCommandTest, ByNamespaceJobAndAnyLabel) {
  PutHistory("job/old");
  EXPECT_EQ(Of(Json({"--by", "namespace"}), "default")["pods"].AsInt(), 3);
  const json::Value jobs = Json({"--by", "job"});
  EXPECT_EQ(Of(jobs, "default/job/old")["pods"].AsInt(), 1);
  EXPECT_EQ(Of(jobs, "default/pod/a")["pods"].AsInt(), 1);
  EXPECT_EQ(Of(Json({"--by", "tier"}), "gold")["pods"].AsInt(), 1);
  EXPECT_NE(cluster_.Run("cost", {"--by", "tier"}).err.find("of those that are gone"),
            std::string::npos);
  EXPECT_EQ(cluster_.Run("cost", {"--by", "team"}).err, "");
  PutPod("c", "annotations: {owner: jo}", "01:00:00");
  EXPECT_EQ(Of(Json({"--by", "user"}), "jo")["pods"].AsInt(), 1);
}

TEST_F(CostCommandTest, SinceThenOnly) {
  PutHistory("job/old");
  const json::Value report = Json({"--since", "30m"});
  EXPECT_TRUE(Of(report, "gone").IsNull());
  EXPECT_NEAR(report["total"]["totalCost"].AsDouble(), 5, 1e-4);
  for (const char* wrong : {"yesterday", "0", "-3h", "400d", "xd", "200h"}) {
    const Outcome outcome = cluster_.Run("cost", {"--since", wrong});
    EXPECT_EQ(outcome.code, 1) << wrong;
    EXPECT_NE(outcome.err.find("--since"), std::string::npos) << outcome.err;
  }
}

TEST_F(CostCommandTest, PricesOfTheClusterOrOfAFile) {
  cluster_.api.Put("/api/v1/nodes",
                   cluster_.api.Find("/api/v1/nodes", "", "n1")
                       ->RemovePath({"metadata", "annotations", "muster.dev/hourly-price"}));
  const std::string map =
      "metadata: {name: muster-prices, namespace: kube-system}\ndata:\n  prices.yaml: |\n";
  cluster_.api.Put("/api/v1/configmaps",
                   Yaml(map + "    {currency: EUR, cpu: 0, memory: 0, gpus: {default: 4}}\n"));
  const json::Value report = Json({});
  EXPECT_EQ(report["currency"].AsString(), "EUR");
  EXPECT_NEAR(report["total"]["totalCost"].AsDouble(), 16, 1e-4);
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("muster-prices-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(file) << "{cpu: 0, memory: 0, gpus: {default: 1}}";
  EXPECT_NEAR(Json({"--prices", file})["total"]["totalCost"].AsDouble(), 4, 1e-4);
  std::ofstream(file) << "{cpu: much}";
  const Outcome wrong = cluster_.Run("cost", {"--prices", file});
  EXPECT_NE(wrong.err.find(file.string() + ": cpu: expected a price"), std::string::npos)
      << wrong.err;
  std::filesystem::remove(file);
  cluster_.api.Put("/api/v1/configmaps", Yaml(map + "    gpu: 3\n"));
  EXPECT_NE(cluster_.Run("cost", {}).err.find("kube-system/muster-prices, prices.yaml: gpu:"),
            std::string::npos);
}

TEST_F(CostCommandTest, AClusterWithoutHistorySaysSo) {
  cluster_.api.before_handle = [](const net::Request& request,
                                  const net::ResponseWriterPtr& writer) {
    if (request.target.find("costledgers") == std::string::npos) return true;
    client::FakeApi::SendError(*writer, 404, "NotFound", "no such resource");
    return false;
  };
  const Outcome outcome = cluster_.Run("cost", {});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.err.find("keeps no history"), std::string::npos);
  EXPECT_NE(outcome.out.find("ml"), std::string::npos);
  EXPECT_NE(outcome.out.find("(idle)"), std::string::npos);
}

}  // namespace
}  // namespace muster::cli
