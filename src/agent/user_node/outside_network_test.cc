#include "agent/user_node/outside_network.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>

#include "agent/runtime/files.h"
#include "agent/user_node/limitations.h"

namespace muster::agent {
namespace {

TEST(OutsideProgram, IsPastaBeforeSlirp) {
  std::string dir = "/tmp/agent-outside-XXXXXX";
  ASSERT_NE(mkdtemp(dir.data()), nullptr);
  EXPECT_FALSE(FindOutsideProgram({dir, "/nowhere"}).has_value());
  ASSERT_TRUE(WriteFile(dir + "/slirp4netns", "", 0755).ok());
  EXPECT_EQ(FindOutsideProgram({"/nowhere", dir})->path, dir + "/slirp4netns");
  EXPECT_FALSE(FindOutsideProgram({dir})->is_pasta);
  ASSERT_TRUE(WriteFile(dir + "/pasta", "", 0755).ok());
  EXPECT_TRUE(FindOutsideProgram({dir})->is_pasta);
  EXPECT_TRUE(RemoveTree(dir).ok());
}

TEST(OutsideProgram, KeepsPodsFromTheMachinesLoopback) {
  const auto has = [](const std::vector<std::string>& arguments, const char* wanted) {
    return std::find(arguments.begin(), arguments.end(), wanted) != arguments.end();
  };
  EXPECT_TRUE(has(OutsideArguments({"/usr/bin/pasta", true}, "/n"), "--no-map-gw"));
  EXPECT_TRUE(
      has(OutsideArguments({"/usr/bin/slirp4netns", false}, "/n"), "--disable-host-loopback"));
}

TEST(Limitations, SayWhatIsMissingAndTheRemedy) {
  EXPECT_FALSE(MissingLimits({"/cg", true, true, true}).has_value());
  EXPECT_EQ(MissingLimits({})->reason, "NoDelegatedCgroup");
  EXPECT_NE(MissingLimits({})->remedy.find("systemd-run --user --scope"), std::string::npos);
  const auto cpu = MissingLimits({"/cg", true, false, true});
  EXPECT_NE(cpu->message.find("limits of CPU are not enforced"), std::string::npos);
  EXPECT_EQ(cpu->message.find("memory are"), std::string::npos);
  EXPECT_NE(NoWayOut({}).remedy.find("apt-get install passt"), std::string::npos);
  EXPECT_NE(NoWayOut({true, false}).remedy.find("/dev/net/tun"), std::string::npos);
  EXPECT_NE(NoWayOut({true, true, "why"}).message.find("why"), std::string::npos);
}

}  // namespace
}  // namespace muster::agent
