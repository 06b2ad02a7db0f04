#include "agent/network/service_planner.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/rng.h"
#include "json/parse.h"

namespace muster::agent {
namespace {

json::Value Yaml(std::string_view text) { return json::ParseYaml(text)->at(0); }

json::Value Service(std::string_view more = "type: ClusterIP") {
  return Yaml(
      fmt::format("spec: {{clusterIP: 10.43.0.7, ports: [{{name: http, port: 80}}], {}}}", more));
}

// Endpoints 10.42.0.2, .3, ... of node n1 ("local") or n2, in these states.
json::Value Slice(const std::vector<std::string>& states,
                  std::string_view ports = "[{name: http, port: 8080}]") {
  std::string endpoints;
  int address = 2;
  for (const std::string& state : states) {
    endpoints += fmt::format("- {{addresses: [10.42.0.{}], nodeName: {}, conditions: {{", address++,
                             state.find("far") == state.npos ? "n1" : "n2");
    if (state.find("ready") != state.npos) endpoints += "ready: true";
    if (state.find("ending") != state.npos)
      endpoints += "ready: false, serving: true, terminating: true";
    if (state.find("starting") != state.npos) endpoints += "ready: false, serving: false";
    if (state.find("dying") != state.npos)
      endpoints += "ready: false, serving: false, terminating: true";
    endpoints += "}}\n";
  }
  return Yaml(fmt::format("addressType: IPv4\nports: {}\nendpoints:\n{}", ports,
                          endpoints.empty() ? "- {}\n" : endpoints));
}

std::string Plan(const json::Value& service, const std::vector<json::Value>& slices) {
  return ToText(PlanService(service, slices, {"n1"}));
}

TEST(PlanService, ReadyEndpointsElseThoseThatEndAndStillServe) {
  const struct {
    std::vector<std::string> states;
    const char* rows;
  } cases[] = {
      {{"ready", "starting", "ready"}, "10.43.0.7 TCP 80 random 10.42.0.2:8080 10.42.0.4:8080\n"},
      {{"unknown"}, "10.43.0.7 TCP 80 random 10.42.0.2:8080\n"},  // says nothing: ready
      {{"ready", "ending"}, "10.43.0.7 TCP 80 random 10.42.0.2:8080\n"},
      {{"starting", "ending", "dying"}, "10.43.0.7 TCP 80 random 10.42.0.3:8080\n"},
      {{"starting", "dying"}, ""},
      {{}, ""},
  };
  for (const auto& row : cases) EXPECT_EQ(Plan(Service(), {Slice(row.states)}), row.rows);
}

TEST(PlanService, TrafficPolicies) {
  const std::string both =
      "type: NodePort, ports: [{name: http, port: 80, nodePort: 30080}], externalIPs: "
      "[192.0.2.1], ";
  const struct {
    const char* policies;
    std::vector<std::string> states;
    const char* rows;
  } cases[] = {
      {"internalTrafficPolicy: Cluster",
       {"ready", "ready far"},
       "0.0.0.0 TCP 30080 random 10.42.0.2:8080 10.42.0.3:8080\n"
       "10.43.0.7 TCP 80 random 10.42.0.2:8080 10.42.0.3:8080\n"
       "192.0.2.1 TCP 80 random 10.42.0.2:8080 10.42.0.3:8080\n"},
      {"externalTrafficPolicy: Local",
       {"ready", "ready far"},
       "0.0.0.0 TCP 30080 random 10.42.0.2:8080\n"
       "10.43.0.7 TCP 80 random 10.42.0.2:8080 10.42.0.3:8080\n"
       "192.0.2.1 TCP 80 random 10.42.0.2:8080\n"},
      {"internalTrafficPolicy: Local, externalTrafficPolicy: Local",
       {"ending", "ready far"},
       "0.0.0.0 TCP 30080 random 10.42.0.2:8080\n"
       "10.43.0.7 TCP 80 random 10.42.0.2:8080\n"
       "192.0.2.1 TCP 80 random 10.42.0.2:8080\n"},
      {"internalTrafficPolicy: Local",
       {"ready far"},
       "0.0.0.0 TCP 30080 random 10.42.0.2:8080\n"
       "10.43.0.7 TCP 80 random drop\n"
       "192.0.2.1 TCP 80 random 10.42.0.2:8080\n"},
      {"internalTrafficPolicy: Local", {"starting far"}, ""},
  };
  for (const auto& row : cases) {
    const json::Value service = Yaml("spec: {clusterIP: 10.43.0.7, " + both + row.policies + "}");
    EXPECT_EQ(Plan(service, {Slice(row.states)}), row.rows) << row.policies;
  }
}

// An endpoint of a node in some zone, and for whom it is.
struct Hinted {
  const char* state;  // "ready", "ending" or "starting"
  std::string node = "n2";
  std::vector<std::string> zones = {}, nodes = {};
};

json::Value Names(const std::vector<std::string>& names) {
  json::Array list;
  for (const std::string& name : names) list.push_back(json::Obj({{"name", name}}));
  return json::Value(std::move(list));
}

// Endpoints 10.42.0.2, .3, ...
json::Value HintedSlice(const std::vector<Hinted>& endpoints) {
  json::Value slice = Slice({});
  json::Array list;
  for (const Hinted& endpoint : endpoints) {
    const std::string_view state = endpoint.state;
    json::Object hints;
    if (!endpoint.zones.empty()) hints.emplace_back("forZones", Names(endpoint.zones));
    if (!endpoint.nodes.empty()) hints.emplace_back("forNodes", Names(endpoint.nodes));
    list.push_back(
        json::Obj({{"addresses", json::List({fmt::format("10.42.0.{}", 2 + list.size())})},
                   {"nodeName", endpoint.node},
                   {"conditions", json::Obj({{"ready", state == "ready"},
                                             {"serving", state != "starting"},
                                             {"terminating", state == "ending"}})},
                   {"hints", hints.empty() ? json::Value() : json::Value(std::move(hints))}}));
  }
  return slice.Set("endpoints", json::Value(std::move(list)));
}

// The last numbers of the addresses behind a Service, for the node n1 in `zone`.
std::string Reached(const json::Value& service, const std::vector<Hinted>& endpoints,
                    const std::string& zone) {
  std::string reached;
  for (const auto& [frontend, backend] :
       PlanService(service, {HintedSlice(endpoints)}, {"n1", zone})) {
    if (backend.drop) reached += "drop";
    for (const ServiceEndpoint& endpoint : backend.endpoints)
      reached += fmt::format(" {}", endpoint.address.ToString().substr(8));
  }
  return reached;
}

TEST(PlanService, HintsLeadToTheNodeElseToItsZoneElseToAll) {
  const Hinted west{"ready", "n2", {"west"}}, east{"ready", "n3", {"east"}};
  const Hinted here{"ready", "n1", {"west"}, {"n1"}}, there{"ready", "n2", {"west"}, {"n2"}};
  const Hinted far{"ready", "n3", {"east"}, {"n3"}}, anybody{"ready"};
  const struct {
    const char* what;
    std::vector<Hinted> endpoints;
    const char* zone;
    const char* reached;
  } cases[] = {
      {"its zone", {west, east, west}, "west", " 2 4"},
      {"one of two zones", {{"ready", "n2", {"east", "west"}}, east}, "west", " 2"},
      {"nobody is for this zone", {west, east}, "north", " 2 3"},
      {"a node without a zone", {west, east}, "", " 2 3"},
      {"one is for everybody", {west, east, anybody}, "west", " 2 3 4"},
      {"its node", {here, there, far}, "west", " 2"},
      {"nobody is for this node", {there, far}, "west", " 2"},
      {"nor for its zone", {there, far}, "north", " 2 3"},
      {"not all name nodes", {here, west, east}, "west", " 2 3"},
      {"node without zone", {here, there}, "", " 2"},
      // Who cannot be used has no say and gets nothing.
      {"of those that are ready", {west, east, {"ending"}, {"starting"}}, "west", " 2"},
      {"none ready here", {{"ending", "n2", {"west"}}, east}, "west", " 3"},
      {"none ready", {{"ending", "n2", {"west"}}, {"ending", "n3", {"east"}}}, "west", " 2 3"},
  };
  for (const auto& row : cases)
    EXPECT_EQ(Reached(Service(), row.endpoints, row.zone), row.reached) << row.what;
}

TEST(PlanService, TheTrafficPolicyLocalKnowsNoHints) {
  const Hinted here{"ready", "n1", {"east"}, {"n9"}}, there{"ready", "n2", {"west"}, {"n1"}};
  const std::string local = "internalTrafficPolicy: Local";
  EXPECT_EQ(Reached(Service(local), {here, there}, "west"), " 2");
  EXPECT_EQ(Reached(Service(local), {there}, "west"), "drop");
  EXPECT_EQ(Reached(Service("internalTrafficPolicy: Cluster"), {here, there}, "west"), " 3");
  // Each side of a Service has its own policy.
  const json::Value both = Yaml(
      "spec: {clusterIP: 10.43.0.7, ports: [{name: http, port: 80, nodePort: 30080}], "
      "externalTrafficPolicy: Local}");
  EXPECT_EQ(ToText(PlanService(both, {HintedSlice({here, there})}, {"n1", "west"})),
            "0.0.0.0 TCP 30080 random 10.42.0.2:8080\n10.43.0.7 TCP 80 random 10.42.0.3:8080\n");
}

// The rules once more, in another form: each way to choose in turn, until one is possible.
std::string ReachedByTheRules(const std::vector<Hinted>& endpoints, const std::string& zone) {
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  using Takes = std::function<bool(const Hinted&)>;
  const auto ready = [](const Hinted& one) { return std::string_view(one.state) == "ready"; };
  // Which one takes, and what all that are ready must have for this.
  const std::pair<Takes, Takes> ways[] = {
      {[&](const Hinted& one) { return ready(one) && has(one.nodes, "n1"); },
       [](const Hinted& one) { return !one.nodes.empty(); }},
      {[&](const Hinted& one) { return ready(one) && has(one.zones, zone); },
       [](const Hinted& one) { return !one.zones.empty(); }},
      {ready, [](const Hinted&) { return true; }},
      {[](const Hinted& one) { return std::string_view(one.state) == "ending"; },
       [](const Hinted&) { return true; }}};
  for (const auto& [takes, must] : ways) {
    std::string reached;
    bool possible = true;
    for (size_t i = 0; i < endpoints.size(); ++i) {
      if (ready(endpoints[i]) && !must(endpoints[i])) possible = false;
      if (takes(endpoints[i])) reached += fmt::format(" {}", 2 + i);
    }
    if (possible && !reached.empty()) return reached;
  }
  return "";
}

TEST(PlanService, RandomHintsAgreeWithTheRules) {
  Rng rng(5);
  const auto names = [&rng](std::initializer_list<const char*> from) {
    std::vector<std::string> some;
    for (const char* name : from)
      if (rng.Below(3) > 0) some.emplace_back(name);
    return some;
  };
  std::map<std::string, int> seen;
  for (int round = 0; round < 5000; ++round) {
    std::vector<Hinted> endpoints;
    for (uint64_t i = rng.Below(5); i > 0; --i) {
      const char* const states[] = {"ready", "ready", "ready", "ending", "starting"};
      endpoints.push_back({states[rng.Below(5)], rng.Below(2) == 0 ? "n1" : "n2",
                           names({"west", "east"}), names({"n1", "n2"})});
    }
    const std::string zone = rng.Below(3) == 0 ? "" : rng.Below(2) == 0 ? "west" : "north";
    const std::string wanted = ReachedByTheRules(endpoints, zone);
    ASSERT_EQ(Reached(Service(), endpoints, zone), wanted) << round;
    ++seen[wanted];
  }
  EXPECT_GT(seen.size(), 12U);
}

TEST(PlanService, ClientAffinity) {
  const struct {
    const char* spec;
    const char* mode;
  } cases[] = {
      {"sessionAffinity: ClientIP", "client/10800"},
      {"sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 5}}",
       "client/5"},
      {"sessionAffinity: None, sessionAffinityConfig: {clientIP: {timeoutSeconds: 5}}", "random"},
  };
  for (const auto& row : cases)
    EXPECT_EQ(Plan(Service(row.spec), {Slice({"ready"})}),
              fmt::format("10.43.0.7 TCP 80 {} 10.42.0.2:8080\n", row.mode));
}

TEST(PlanService, PortsByNameOverAllSlices) {
  const json::Value service = Yaml(
      "spec: {clusterIP: 10.43.0.7, clusterIPs: [10.43.0.7], ports: [{name: http, port: 80}, "
      "{name: dns, port: 53, protocol: UDP}, {name: none, port: 1}]}");
  const std::vector<json::Value> slices = {
      Slice({"ready"}, "[{name: http, port: 8080}, {name: dns, port: 5353}, {name: x, port: 1}]"),
      Slice({"starting", "ready"}, "[{name: http, port: 9090}, {name: dns, port: 70000}]"),
      Yaml(
          "{addressType: IPv6, ports: [{name: http, port: 1}], endpoints: [{addresses: ['::1']}]}"),
      Slice({"ready", "ready"}, "[{name: http}]"),
      json::Value(),
      Yaml("{ports: [{name: http, port: 8080}], endpoints: [{addresses: [nonsense]}, 5]}")};
  EXPECT_EQ(Plan(service, slices),
            "10.43.0.7 TCP 80 random 10.42.0.2:8080 10.42.0.3:9090\n"
            "10.43.0.7 UDP 53 random 10.42.0.2:5353\n");
}

TEST(PlanService, WhatHasNoAddressHasNoRows) {
  for (const char* service :
       {"{}", "spec: {clusterIP: None, ports: [{name: http, port: 80}]}",
        "spec: {clusterIP: 10.43.0.7, type: ExternalName, ports: [{name: http, port: 80}]}",
        "spec: {clusterIP: 10.43.0.7, ports: [{name: http, port: 0}]}",
        "spec: {clusterIP: 10.43.0.7, ports: [{name: http, port: 80, protocol: ICMP}]}"})
    EXPECT_EQ(Plan(Yaml(service), {Slice({"ready"})}), "") << service;
}

TEST(PlanService, EndpointsOfAPortAreBounded) {
  std::string endpoints;
  for (size_t i = 0; i <= kMaxEndpointsPerServicePort; ++i)
    endpoints += fmt::format("{{addresses: [10.42.{}.{}]}}, ", 1 + i / 250, 1 + i % 250);
  const ServiceTable rows = PlanService(
      Service(), {Yaml("{ports: [{name: http, port: 1}], endpoints: [" + endpoints + "]}")},
      {"n1"});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.begin()->second.endpoints.size(), kMaxEndpointsPerServicePort);
}

const ServiceFrontend kFrontend{{0x0A2B0007}, ServiceProtocol::kTcp, 80};
ServiceBackend To(uint16_t port) { return {.endpoints = {{{0x0A2A0002}, port}}}; }

TEST(ServiceRows, TellWhatChanged) {
  ServiceRows rows;
  rows.Set({"d", "web"}, {{kFrontend, To(1)}});
  EXPECT_EQ(rows.TakeChanges(), (ServiceTable{{kFrontend, To(1)}}));
  rows.Set({"d", "web"}, {{kFrontend, To(1)}});
  EXPECT_EQ(rows.TakeChanges(), ServiceTable());
  rows.Set({"d", "web"}, {});
  EXPECT_EQ(rows.TakeChanges(), (ServiceTable{{kFrontend, {}}}));
  EXPECT_EQ(rows.Whole(), ServiceTable());
}

// An address that goes from one Service to another in one moment, in whatever order it is heard.
TEST(ServiceRows, AFrontendOfTwoServicesIsNeverLost) {
  for (const bool old_goes_first : {true, false}) {
    ServiceRows rows;
    rows.Set({"d", "old"}, {{kFrontend, To(1)}});
    (void)rows.TakeChanges();
    if (old_goes_first) rows.Set({"d", "old"}, {});
    rows.Set({"d", "new"}, {{kFrontend, To(2)}});
    if (!old_goes_first) rows.Set({"d", "old"}, {});
    EXPECT_EQ(rows.TakeChanges(), (ServiceTable{{kFrontend, To(2)}}));
  }
}

TEST(ServiceRows, ChangesAddUpToTheWhole) {
  Rng rng(3);
  ServiceRows rows;
  ServiceTable sum;
  for (int round = 0; round < 2000; ++round) {
    ServiceTable own;
    for (uint64_t i = rng.Below(4); i > 0; --i)
      own[{{0x0A2B0001 + static_cast<uint32_t>(rng.Below(5))}, ServiceProtocol::kTcp, 80}] =
          To(static_cast<uint16_t>(1 + rng.Below(3)));
    rows.Set({"d", fmt::format("s{}", rng.Below(6))}, std::move(own));
    if (rng.Below(2) == 0) continue;
    for (auto& [frontend, backend] : rows.TakeChanges()) {
      if (backend.IsNone()) {
        sum.erase(frontend);
      } else {
        sum[frontend] = backend;
      }
    }
    ASSERT_EQ(sum, rows.Whole());
  }
}

}  // namespace
}  // namespace muster::agent
