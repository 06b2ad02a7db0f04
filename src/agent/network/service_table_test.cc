#include "agent/network/service_table.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

TEST(ServiceTable, TextIsReadBack) {
  const ServiceTable table = {
      {{{0x0A2B0007}, ServiceProtocol::kTcp, 80},
       {.endpoints = {{{0x0A2A0002}, 8080}, {{0x0A2A0003}, 8080}}}},
      {{{0x0A2B0007}, ServiceProtocol::kUdp, 53}, {}},
      {{Ipv4{}, ServiceProtocol::kSctp, 30000}, {.affinity_seconds = 10800, .drop = true}},
      {{Ipv4{}, ServiceProtocol::kSctp, 30000, true}, {.endpoints = {{{0x0A2A0002}, 8080}}}}};
  EXPECT_EQ(ToText(table),
            "0.0.0.0 SCTP 30000 client/10800 drop\n"
            "0.0.0.0 SCTP 30000 host 10.42.0.2:8080\n"
            "10.43.0.7 TCP 80 random 10.42.0.2:8080 10.42.0.3:8080\n"
            "10.43.0.7 UDP 53 random\n");
  EXPECT_EQ(*ParseServiceTable(ToText(table)), table);
  EXPECT_EQ(*ParseServiceTable(""), ServiceTable());
}

TEST(ServiceTable, WhatIsNoLineIsRefused) {
  for (const char* line :
       {"x", "10.43.0.7 TCP 80", "10.43.0.7 ICMP 80 random", "10.43.0.7 TCP 0 random",
        "10.43.0.7 TCP 80 1", "10.43.0.7 TCP 80 client/0", "10.43.0.7 TCP 80 client/86401",
        "10.43.0.7 TCP 80 random 10.42.0.2", "10.43.0.7 TCP 80 host 10.42.0.2:1 10.42.0.3:1",
        "10.43.0.7 TCP 80 random 10.42.0.2:0", "10.43.0.7  TCP 80 random"}) {
    const auto table = ParseServiceTable(line);
    ASSERT_FALSE(table) << line;
    EXPECT_EQ(table.error().reason(), Reason::kInvalid);
    EXPECT_NE(table.error().message().find(line), std::string::npos) << table.error().message();
  }
}

TEST(ServiceTable, EndpointsOfALineAreBounded) {
  std::string line = "10.43.0.7 TCP 80 random";
  for (size_t i = 0; i < kMaxEndpointsPerServicePort; ++i) line += " 10.42.0.2:80";
  EXPECT_TRUE(ParseServiceTable(line));
  EXPECT_FALSE(ParseServiceTable(line + " 10.42.0.2:80"));
}

}  // namespace
}  // namespace muster::agent
