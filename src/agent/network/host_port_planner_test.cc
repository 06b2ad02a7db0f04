#include "agent/network/host_port_planner.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::agent {
namespace {

std::string Plan(std::string_view text) {
  return ToText(PlanHostPorts(json::ParseYaml(text)->at(0)));
}

TEST(PlanHostPorts, ARowForEachPortOfContainersAndSidecars) {
  EXPECT_EQ(Plan(R"(
spec:
  containers:
  - ports: [{containerPort: 80, hostPort: 8080}, {containerPort: 81}]
  - ports:
    - {containerPort: 53, hostPort: 5353, protocol: UDP, hostIP: 192.0.2.1}
    - {containerPort: 54, hostPort: 54, protocol: SCTP, hostIP: 0.0.0.0}
    - {containerPort: 55, hostPort: 55, hostIP: ""}
  initContainers:
  - ports: [{containerPort: 90, hostPort: 9090}]
  - {restartPolicy: Always, ports: [{containerPort: 91, hostPort: 9191}]}
status: {podIP: 10.42.0.2}
)"),
            "0.0.0.0 TCP 55 host 10.42.0.2:55\n"
            "0.0.0.0 TCP 8080 host 10.42.0.2:80\n"
            "0.0.0.0 TCP 9191 host 10.42.0.2:91\n"
            "0.0.0.0 SCTP 54 host 10.42.0.2:54\n"
            "192.0.2.1 UDP 5353 host 10.42.0.2:53\n");
}

TEST(PlanHostPorts, NoneWithoutAnAddressOrOnTheNodesNetwork) {
  const std::string ports = "containers: [{ports: [{containerPort: 80, hostPort: 80}]}]";
  EXPECT_NE(Plan("{spec: {" + ports + "}, status: {podIP: 10.42.0.2}}"), "");
  EXPECT_EQ(Plan("{spec: {" + ports + "}, status: {}}"), "");
  EXPECT_EQ(Plan("{spec: {hostNetwork: true, " + ports + "}, status: {podIP: 10.42.0.2}}"), "");
}

TEST(PlanHostPorts, WhatIsMalformedIsLeftOut) {
  for (const char* port :
       {"{containerPort: 80, hostPort: 70000}", "{containerPort: 0, hostPort: 80}",
        "{hostPort: 80}", "{containerPort: 80, hostPort: 80, protocol: ICMP}", "5",
        "{containerPort: 80, hostPort: 80, hostIP: '::1'}"})
    EXPECT_EQ(Plan(std::string("{spec: {containers: [{ports: [") + port +
                   "]}]}, status: {podIP: 10.42.0.2}}"),
              "")
        << port;
}

}  // namespace
}  // namespace muster::agent
