#include "gateway/graph_run.h"

#include <set>

#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::gateway {
namespace {

using json::Value;

Value Yaml(std::string_view text) { return (*json::ParseYaml(text))[0]; }

// Services that answer {"from": NAME, "got": BODY}; those called "bad..." with 500.
struct Graph {
  std::vector<std::string> asked;
  std::set<Body> bodies;  // by address
  std::string Run(std::string_view nodes, const std::string& body = R"({"x":1})",
                  uint64_t seed = 0) {
    std::string said;
    RunGraphNodes(
        Yaml(nodes), std::make_shared<const std::string>(body), seed,
        [this](const Value& step, const Body& input, Function<void(net::Response)> done) {
          const std::string name = step["serviceName"].Str();
          asked.push_back(name);
          bodies.insert(input);
          net::Response response;
          response.status = name.starts_with("bad") ? 500 : 200;
          response.body = fmt::format(R"({{"from":"{}","got":{}}})", name, *input);
          done(std::move(response));
        },
        [&](net::Response response) {
          said = fmt::format("{} {}", response.status, response.body);
        });
    return said;
  }
};

TEST(GraphRun, ASequenceHandsOnTheRequestOrWhatWasSaidLast) {
  Graph graph;
  EXPECT_EQ(graph.Run("root: {routerType: Sequence, steps: [{serviceName: a}, {serviceName: b, "
                      "data: $response}, {serviceName: c, data: $request}]}"),
            R"(200 {"from":"c","got":{"x":1}})");
  EXPECT_EQ(graph.Run("root: {routerType: Sequence, steps: [{serviceName: a}, {serviceName: b, "
                      "data: $response}]}"),
            R"(200 {"from":"b","got":{"from":"a","got":{"x":1}}})");
}

TEST(GraphRun, AHardStepThatFailsEndsASequenceASoftOneDoesNot) {
  Graph graph;
  EXPECT_EQ(graph.Run("root: {routerType: Sequence, steps: [{serviceName: bad, dependency: Hard}, "
                      "{serviceName: b}]}"),
            R"(500 {"from":"bad","got":{"x":1}})");
  EXPECT_EQ(graph.asked, std::vector<std::string>{"bad"});
  EXPECT_EQ(graph.Run("root: {routerType: Sequence, steps: [{serviceName: bad}, {serviceName: b, "
                      "data: $response}]}"),
            R"(200 {"from":"b","got":{"from":"bad","got":{"x":1}}})");
}

TEST(GraphRun, AConditionThatDoesNotHoldEndsASequenceWithWhatWasSaidLast) {
  Graph graph;
  EXPECT_EQ(graph.Run("root: {routerType: Sequence, steps: [{serviceName: a}, {serviceName: b, "
                      "condition: '[@this].#(from==\"z\")'}]}"),
            R"(200 {"from":"a","got":{"x":1}})");
}

TEST(GraphRun, ASwitchTakesTheFirstThatFitsAndGoesIntoOtherNodes) {
  const char* nodes = R"(
root: {routerType: Switch, steps: [{serviceName: a, condition: '[@this].#(x==2)'},
                                  {nodeName: all, condition: x}]}
all: {routerType: Ensemble, steps: [{serviceName: b, name: first}, {serviceName: c}]}
)";
  Graph graph;
  EXPECT_EQ(graph.Run(nodes, R"({"x":2})"), R"(200 {"from":"a","got":{"x":2}})");
  graph.bodies.clear();
  EXPECT_EQ(graph.Run(nodes),
            R"(200 {"first":{"from":"b","got":{"x":1}},"1":{"from":"c","got":{"x":1}}})");
  EXPECT_EQ(graph.bodies.size(), 1u);  // not one for each step
  EXPECT_EQ(graph.Run(nodes, R"({"y":2})").substr(0, 4), "404 ");
  EXPECT_EQ(graph.Run(nodes, "no json").substr(0, 4), "404 ");
}

TEST(GraphRun, AnEnsembleFailsWithAHardStepAndOnlyOnce) {
  Graph graph;
  EXPECT_EQ(graph.Run("root: {routerType: Ensemble, steps: [{serviceName: bad1, dependency: Hard}, "
                      "{serviceName: bad2, dependency: Hard}]}"),
            R"(500 {"from":"bad1","got":{"x":1}})");
}

TEST(GraphRun, ASplitterFollowsItsWeights) {
  const char* nodes =
      "root: {routerType: Splitter, steps: [{serviceName: a, weight: 20}, "
      "{serviceName: b, weight: 80}]}";
  Graph graph;
  for (uint64_t seed = 0; seed < 1000; ++seed) graph.Run(nodes, "1", seed);
  EXPECT_EQ(std::ranges::count(graph.asked, "a"), 200);
}

TEST(GraphRun, StepsAreBounded) {
  // Each of ten nodes leads twice to the next: a thousand requests at the end.
  std::string nodes = "n10: {routerType: Sequence, steps: [{serviceName: a, dependency: Hard}]}\n";
  for (int i = 0; i < 10; ++i) {
    nodes += fmt::format(
        "{}: {{routerType: Sequence, steps: [{{nodeName: n{}, dependency: Hard}}, {{nodeName: n{}, "
        "dependency: Hard}}]}}\n",
        i == 0 ? "root" : fmt::format("n{}", i), i + 1, i + 1);
  }
  Graph graph;
  EXPECT_EQ(graph.Run(nodes).substr(0, 4), "508 ");
  EXPECT_LT(graph.asked.size(), kMaxGraphSteps);
}

}  // namespace
}  // namespace muster::gateway
