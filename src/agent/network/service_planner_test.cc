#include "agent/network/service_planner.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

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
  return ToText(PlanService(service, slices, "n1"));
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
      Service(), {Yaml("{ports: [{name: http, port: 1}], endpoints: [" + endpoints + "]}")}, "n1");
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
