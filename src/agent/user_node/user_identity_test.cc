#include "agent/user_node/user_identity.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "agent/user_node/refusal.h"

namespace muster::agent {
namespace {

TEST(UserIdentity, FindsTheRangeByNameOrNumber) {
  const std::string_view text = "root:1000:5\nann:100000:65536\n1001:300000:200000\n";
  EXPECT_EQ(SubordinateRange(text, "ann", 1000), (IdRange{100000, 65536}));
  EXPECT_EQ(SubordinateRange(text, "bob", 1001), (IdRange{300000, kMaxSubordinateIds}));
  EXPECT_EQ(SubordinateRange(text, "eve", 1002), std::nullopt);
}

TEST(UserIdentity, LeavesBrokenLinesOut) {
  for (const char* line : {"ann", "ann:1", "ann:x:5", "ann:0:5", "ann:5:0", "ann:5:-1",
                           "ann:4294967290:10", "ann:1:2:3"}) {
    EXPECT_EQ(SubordinateRange(line, "ann", 1000), std::nullopt) << line;
  }
  EXPECT_EQ(SubordinateRange("ann:0:5\nann:7:8", "ann", 1000), (IdRange{7, 8}));
}

TEST(UserIdentity, MapsTheUserToRootAndHisRangeBehind) {
  EXPECT_EQ(MapArguments(42, 1000, {100000, 65536}),
            (std::vector<std::string>{"42", "0", "1000", "1", "1", "100000", "65536"}));
}

TEST(UserIdentity, KnowsTheMapOfTheWholeMachine) {
  EXPECT_TRUE(IsWholeMap("         0          0 4294967295\n"));
  EXPECT_FALSE(IsWholeMap("         0       1000          1\n"));
  EXPECT_FALSE(IsWholeMap("0 0 65536\n"));
  EXPECT_FALSE(IsWholeMap("0 1000 1\n1 100000 65536\n"));
  EXPECT_FALSE(IsWholeMap(""));
}

TEST(UserIdentity, CountsTheIdsOfAMap) {
  EXPECT_EQ(MappedIds("         0          0 4294967295\n"), 4'294'967'295u);
  EXPECT_EQ(MappedIds("         0       1000          1\n"), 1u);
  EXPECT_EQ(MappedIds("0 1000 1\n1 100000 65536\n"), 65'537u);
  EXPECT_EQ(MappedIds(""), 0u);
}

TEST(Refusal, NamesTheSettingAndTheCommand) {
  Refusal refusal = ExplainRefusal({"0", "1", std::nullopt, "unshare: No space left on device"});
  EXPECT_NE(refusal.why.find("user.max_user_namespaces is 0"), std::string::npos);
  EXPECT_EQ(refusal.remedy, "sudo sysctl -w user.max_user_namespaces=16384");
  refusal = ExplainRefusal({"1000", "0", std::nullopt, ""});
  EXPECT_EQ(refusal.remedy, "sudo sysctl -w kernel.unprivileged_userns_clone=1");
  refusal = ExplainRefusal({"1000", std::nullopt, "1", "mount: Permission denied"});
  EXPECT_NE(refusal.why.find("mount: Permission denied"), std::string::npos);
  EXPECT_EQ(refusal.remedy, "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
  refusal = ExplainRefusal({"1000", "1", "0", "make a user namespace: Operation not permitted"});
  EXPECT_NE(refusal.why.find("Operation not permitted"), std::string::npos);
}

// As Ubuntu 24.04 shows it.
TEST(Refusal, ReadsWhatTheKernelShows) {
  const std::string sysctls = testing::TempDir() + "/sysctls";
  std::filesystem::create_directories(sysctls + "/kernel");
  std::filesystem::create_directories(sysctls + "/user");
  std::ofstream(sysctls + "/kernel/apparmor_restrict_unprivileged_userns") << "1\n";
  std::ofstream(sysctls + "/kernel/unprivileged_userns_clone") << "1\n";
  std::ofstream(sysctls + "/user/max_user_namespaces") << "127342\n";
  const RefusalFacts facts = GatherRefusalFacts("mount /: Permission denied", sysctls);
  std::filesystem::remove_all(sysctls);
  EXPECT_EQ(facts.apparmor_restricts, "1");
  EXPECT_EQ(facts.max_user_namespaces, "127342");
  EXPECT_NE(ExplainRefusal(facts).why.find("AppArmor takes all rights"), std::string::npos);
  const RefusalFacts other = GatherRefusalFacts("no", sysctls + "/none");
  EXPECT_FALSE(other.apparmor_restricts || other.max_user_namespaces || other.unprivileged_clone);
  EXPECT_EQ(ExplainRefusal(other).why, "the kernel refuses namespaces: no");
}

}  // namespace
}  // namespace muster::agent
