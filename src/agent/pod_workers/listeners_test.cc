#include "agent/pod_workers/listeners.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

constexpr std::string_view kText =
    "  sl  local_address rem_address   st tx_queue\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000\n"
    "   1: 0100007F:0050 0200007F:C001 01 00000000:00000000 00:00000000\n"
    "   2: 00000000000000000000000000000000:0016 0000:0000 0A 0:0\n"
    "   3: 0000000000000000FFFF0000010200C0:0017 0000:0000 0A 0:0\n"
    "   4: 00000000000000000000000001000000:0018 0000:0000 0A 0:0\n"
    "   5: 00000000:0019 00000000:0000 0A 0:0\n"
    "broken\n   6: nothing x 0A\n   7: 0100007F:XY x 0A\n   8: 01:0050 x 0A\n";

TEST(Listeners, ReadsTheKernelsList) {
  const std::vector<cluster::HostPort> tcp = {{"127.0.0.1", "TCP", 8080},
                                              {"0.0.0.0", "TCP", 22},
                                              {"192.0.2.1", "TCP", 23},
                                              {"0.0.0.0", "TCP", 25}};
  EXPECT_EQ(ParseListeners(kText, "TCP"), tcp);
  // Whoever has a port of UDP hears at it.
  EXPECT_EQ(ParseListeners(kText, "UDP").size(), tcp.size() + 1);
  EXPECT_EQ(ParseListeners("", "TCP").size(), 0U);
}

TEST(Listeners, OfOtherProtocolsNothingIsKnown) { EXPECT_TRUE(MachineListeners("SCTP").empty()); }

}  // namespace
}  // namespace muster::agent
