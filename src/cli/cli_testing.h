// src/cli/cli_testing.h
//
// For tests: commands against a FakeApi on simulated time, with what they print captured.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/errors.h"
#include "cli/session.h"
#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "json/parse.h"
#include "loop/sim_loop.h"

namespace muster::cli {

class SimPump final : public Pump {
 public:
  explicit SimPump(SimLoop& loop) : loop_(loop) {}
  void Run() override {
    quit_ = false;
    while (!quit_ && loop_.Step()) {
    }
  }
  void Quit() override { quit_ = true; }

 private:
  SimLoop& loop_;
  bool quit_ = false;
};

struct Outcome {
  int code = 0;
  std::string out, err;
};

class FakeCluster {
 public:
  FakeCluster() {
    api.static_answers["/api/v1"] = Resources({{"pods", "Pod", "po", true},
                                               {"configmaps", "ConfigMap", "cm", true},
                                               {"namespaces", "Namespace", "ns", false},
                                               {"nodes", "Node", "no", false},
                                               {"events", "Event", "ev", true}});
    api.static_answers["/apis"] = *json::Parse(R"({"groups":[{"name":"kubeflow.org",
        "versions":[{"version":"v1"}],"preferredVersion":{"version":"v1"}}]})");
    api.static_answers["/apis/kubeflow.org/v1"] =
        Resources({{"pytorchjobs", "PyTorchJob", "", true}});
  }

  // "apply -f x" as a user would type it.
  Outcome Run(const std::string& name, const std::vector<std::string>& words) {
    const Command& command = *FindCommand(name);
    Console console{Console::Capture{}};
    Outcome outcome;
    Result<Arguments> arguments = ParseArguments(command, words);
    if (!arguments) {
      outcome = {2, "", arguments.error().message()};
      return outcome;
    }
    Session session(loop, pump, transport, "default");
    Invocation invocation{*arguments, console, session};
    Result<int> code = command.run(invocation);
    outcome.code = code ? *code : 1;
    outcome.out = console.out;
    outcome.err = console.err + (code ? "" : DescribeError(code.error()));
    return outcome;
  }

  SimLoop loop;
  SimPump pump{loop};
  client::FakeApi api{loop};
  client::InProcessTransport transport{loop, api, {"", "admin", {"system:masters"}}};

 private:
  struct Row {
    const char* plural;
    const char* kind;
    const char* short_name;
    bool namespaced;
  };
  static json::Value Resources(const std::vector<Row>& rows) {
    json::Array list;
    for (const Row& row : rows) {
      json::Value entry = json::Obj({{"name", row.plural},
                                     {"kind", row.kind},
                                     {"singularName", ToLower(row.kind)},
                                     {"namespaced", row.namespaced}});
      if (*row.short_name != '\0') entry = entry.Set("shortNames", json::List({row.short_name}));
      list.push_back(std::move(entry));
    }
    return json::Obj({{"resources", json::Value(std::move(list))}});
  }
};

inline json::Value Yaml(const std::string& text) { return json::ParseYaml(text)->front(); }

}  // namespace muster::cli
