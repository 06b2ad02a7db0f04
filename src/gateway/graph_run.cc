#include "gateway/graph_run.h"

#include <memory>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/strings.h"
#include "json/parse.h"
#include "json/write.h"
#include "serving/graph_condition.h"

namespace muster::gateway {
namespace {

using json::Value;
using Done = Function<void(net::Response)>;

bool IsGood(int status) { return status >= 200 && status < 300; }

net::Response Json(int status, std::string body) {
  net::Response response;
  response.status = status;
  response.headers.Add("Content-Type", "application/json");
  response.body = std::move(body);
  return response;
}

net::Response Failure(int status, std::string_view message) {
  return Json(status, json::Write(json::Obj({{"error", message}})));
}

// What every part of one request needs.
struct Run {
  Value nodes;
  StepCaller call;
  uint64_t seed;  // of the request, for Splitters
  size_t steps_left = kMaxGraphSteps;
};
using RunPtr = std::shared_ptr<Run>;

void RunNode(const RunPtr& run, const std::string& name, Body body, Done done);

void RunStep(const RunPtr& run, const Value& step, Body body, Done done) {
  if (run->steps_left == 0) {
    return done(Failure(508, fmt::format("the graph takes more than {} steps", kMaxGraphSteps)));
  }
  --run->steps_left;
  if (const std::string node = step["nodeName"].Str(); !node.empty())
    return RunNode(run, node, std::move(body), std::move(done));
  run->call(step, std::move(body), std::move(done));
}

// A text that is no JSON fits no condition.
Result<bool> Holds(const Value& step, const std::string& body) {
  const std::string_view condition = step["condition"].AsString();
  if (condition.empty()) return true;
  const auto parsed = json::Parse(body);
  if (!parsed) return false;
  return serving::GraphConditionHolds(condition, *parsed);
}

struct SequenceState {
  Value steps;
  size_t next = 0;
  Body request;
  Done done;
};

void GoOn(const RunPtr& run, const std::shared_ptr<SequenceState>& state, net::Response last) {
  if (state->next == state->steps.size()) return state->done(std::move(last));
  const size_t index = state->next++;
  const Value& step = state->steps.At(index);
  const std::string& said = index == 0 ? *state->request : last.body;
  const Result<bool> holds = Holds(step, said);
  if (!holds) return state->done(Failure(400, holds.error().message()));
  if (!*holds) return state->done(index == 0 ? Json(200, said) : std::move(last));
  Body input = state->request;
  if (step["data"].AsString() == "$response" && index > 0)
    input = std::make_shared<const std::string>(std::move(last.body));
  RunStep(run, step, std::move(input), [run, state, step](net::Response response) {
    if (!IsGood(response.status) && step["dependency"].AsString() == "Hard")
      return state->done(std::move(response));
    GoOn(run, state, std::move(response));
  });
}

struct EnsembleState {
  std::vector<std::pair<std::string, Value>> answers;
  size_t open = 0;
  Done done;
};

void RunEnsemble(const RunPtr& run, const Value& steps, const Body& body, Done done) {
  auto state = std::make_shared<EnsembleState>();
  state->done = std::move(done);
  state->open = steps.size();
  state->answers.resize(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const Value& step = steps.At(i);
    state->answers[i].first = step["name"].Str(std::to_string(i));
    RunStep(run, step, body, [state, i, step](net::Response response) {
      if (!state->done) return;
      if (!IsGood(response.status) && step["dependency"].AsString() == "Hard")
        return std::exchange(state->done, nullptr)(std::move(response));
      auto parsed = json::Parse(response.body);
      state->answers[i].second = parsed ? *std::move(parsed) : Value(std::move(response.body));
      if (--state->open > 0) return;
      Value all = json::Obj();
      for (const auto& [name, answer] : state->answers) all = std::move(all).Set(name, answer);
      std::exchange(state->done, nullptr)(Json(200, json::Write(all)));
    });
  }
}

void RunSwitch(const RunPtr& run, const Value& steps, Body body, Done done) {
  for (const Value& step : steps.items()) {
    const Result<bool> holds = Holds(step, *body);
    if (!holds) return done(Failure(400, holds.error().message()));
    if (*holds) return RunStep(run, step, std::move(body), std::move(done));
  }
  done(Failure(404, "none of the routes matched with the switch condition"));
}

void RunSplitter(const RunPtr& run, const Value& steps, Body body, Done done) {
  auto point = static_cast<int64_t>(run->seed % 100);
  for (const Value& step : steps.items()) {
    point -= step["weight"].AsInt();
    if (point < 0) return RunStep(run, step, std::move(body), std::move(done));
  }
  done(Failure(500, "the weights of the splitter do not add up to 100"));
}

void RunNode(const RunPtr& run, const std::string& name, Body body, Done done) {
  const Value& node = run->nodes[name];
  const Value& steps = node["steps"];
  if (steps.empty()) return done(Failure(500, fmt::format("the node {} has no steps", name)));
  const std::string_view type = node["routerType"].AsString();
  if (type == "Splitter") return RunSplitter(run, steps, std::move(body), std::move(done));
  if (type == "Switch") return RunSwitch(run, steps, std::move(body), std::move(done));
  if (type == "Ensemble") return RunEnsemble(run, steps, body, std::move(done));
  auto state = std::make_shared<SequenceState>();
  state->steps = steps;
  state->request = std::move(body);
  state->done = std::move(done);
  GoOn(run, state, {});
}

}  // namespace

void RunGraphNodes(const Value& nodes, Body body, uint64_t seed, StepCaller call, Done done) {
  const auto run = std::make_shared<Run>(Run{nodes, std::move(call), seed});
  RunNode(run, "root", std::move(body), std::move(done));
}

}  // namespace muster::gateway
