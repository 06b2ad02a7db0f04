#include "agent/network/nft_elements.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

const ServiceFrontend kFrontend{{0x0A2B000A}, ServiceProtocol::kTcp, 80};
const ServiceEndpoint kOne{{0x0A2A0002}, 8080}, kTwo{{0x0A2A0003}, 8081};

TEST(NftElements, OneForTheFrontendAndOneForEachEndpoint) {
  const NftElements elements = ElementsOf(kFrontend, {.endpoints = {kOne, kTwo}});
  ASSERT_EQ(elements.size(), 3U);
  EXPECT_EQ(elements[0].chain.Name(), "random_2");
  EXPECT_EQ(EndpointOf(elements[1]), kOne);
  EXPECT_EQ(EndpointOf(elements[2]), kTwo);
  for (const NftElement& element : elements) EXPECT_EQ(FrontendOf(element), kFrontend);
}

TEST(NftElements, NodePortsHaveSetsOfTheirOwn) {
  ServiceFrontend node_port = kFrontend;
  node_port.address = {};
  const NftElements elements = ElementsOf(node_port, {.affinity_seconds = 60, .endpoints = {kOne}});
  ASSERT_EQ(elements.size(), 3U);
  EXPECT_EQ(elements[0].set, NftSet::kNodePorts);
  EXPECT_EQ(elements[2].chain.Name(), "to_10.42.0.2_8080_60_node");
  EXPECT_EQ(elements[0].chain.Name(), "client_1_60_node");
  EXPECT_EQ(EndpointOf(elements[1]), kOne);
  for (const NftElement& element : elements) EXPECT_EQ(FrontendOf(element), node_port);
}

TEST(NftElements, AHostPortIsOneElement) {
  for (const Ipv4 address : {kFrontend.address, Ipv4{}}) {
    const ServiceFrontend host_port{address, ServiceProtocol::kUdp, 8080, true};
    const NftElements elements = ElementsOf(host_port, {.endpoints = {kTwo}});
    ASSERT_EQ(elements.size(), 1U);
    EXPECT_EQ(elements[0].set, address.IsUnset() ? NftSet::kHostPorts : NftSet::kHostIpPorts);
    EXPECT_EQ(EndpointOf(elements[0]), kTwo);
    EXPECT_EQ(FrontendOf(elements[0]), host_port);
    EXPECT_TRUE(ElementsOf(host_port, {}).empty());
  }
}

TEST(NftElements, NothingForNothing) {
  EXPECT_TRUE(ElementsOf(kFrontend, {}).empty());
  const NftElements dropped = ElementsOf(kFrontend, {.drop = true});
  ASSERT_EQ(dropped.size(), 1U);
  EXPECT_EQ(dropped[0].chain.Name(), kDropChain);
}

TEST(NftElements, DifferenceIsWhatChanged) {
  const NftElements have = ElementsOf(kFrontend, {.endpoints = {kOne, kTwo}});
  EXPECT_TRUE(Difference(have, have).empty());
  // One endpoint less: the last number, what stands behind the first, and where the frontend leads.
  const NftChange change = Difference(have, ElementsOf(kFrontend, {.endpoints = {kTwo}}));
  EXPECT_EQ(change.remove.size(), 3U);
  EXPECT_EQ(change.add.size(), 2U);
}

TEST(ServiceChain, NamesAreReadBack) {
  for (const ServiceChain& chain :
       {ServiceChain{}, ServiceChain{3, 0, false}, ServiceChain{1000, 0, true},
        ServiceChain{2, 10800, false}, ServiceChain{2, 1, true}, ServiceChain{0, 5, false, kOne},
        ServiceChain{0, 86400, true, kTwo}})
    EXPECT_EQ(ServiceChain::Parse(chain.Name()), chain) << chain.Name();
  for (const char* name :
       {"",          "random",          "random_",           "random_0",   "random_x",
        "random_03", "client_",         "prerouting",        "layout_1",   "random_3_60",
        "client_0",  "client_3",        "client_3_0",        "client_3_x", "client_3_99999",
        "to_",       "to_10.42.0.2_80", "to_10.42.0.2_0_60", "to_x_80_60", "_node"})
    EXPECT_EQ(ServiceChain::Parse(name), std::nullopt) << name;
}

}  // namespace
}  // namespace muster::agent
