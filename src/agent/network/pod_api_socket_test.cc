#include "agent/network/pod_api_socket.h"

#include "agent/network/netns_test_support.h"

namespace muster::agent {
namespace {

TEST(PodApiSocket, IsBoundBeforeTheBridgeIsThereAndGivesWay) {
  InNetworkNamespace([] {
    const Ipv4 bridge = *Ipv4::Parse("10.42.0.1");
    const auto first = BindPodApi(bridge);
    ASSERT_TRUE(first) << first.error().ToString();
    EXPECT_EQ(PortOfSocket(first->get()), kPodApiPort);
    ASSERT_EQ(listen(first->get(), 1), 0);
    const auto second = BindPodApi(bridge);
    ASSERT_TRUE(second) << second.error().ToString();
    EXPECT_NE(PortOfSocket(second->get()), kPodApiPort);
  });
}

TEST(PodApiSocket, GivesWayToWhoListensEverywhere) {
  InNetworkNamespace([] {
    const int everywhere = Listen(kPodApiPort);
    const auto bound = BindPodApi(*Ipv4::Parse("10.42.0.1"));
    ASSERT_TRUE(bound) << bound.error().ToString();
    EXPECT_NE(PortOfSocket(bound->get()), kPodApiPort);
    close(everywhere);
  });
}

}  // namespace
}  // namespace muster::agent
