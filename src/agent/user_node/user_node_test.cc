#include "agent/user_node/user_node.h"

#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "agent/network/netns_test_support.h"
#include "agent/runtime/files.h"
#include "agent/runtime/process_lock.h"
#include "agent/user_node/user_identity.h"

namespace muster::agent {
namespace {

constexpr uid_t kUser = 12'345;
constexpr DnsEndpoint kDns = {Ipv4{0x0A2A0001}, 53};

// Runs `body` as an ordinary user with a data folder of his own; namespaces can be entered once a
// process. False when it failed.
template <class Body>
bool AsUser(const std::string& data_dir, Body body) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    CHECK(setresgid(kUser, kUser, kUser) == 0 && setresuid(kUser, kUser, kUser) == 0);
    CHECK(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);  // as after an exec
    body(data_dir);
    fflush(stdout);
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int state = 0;
  waitpid(child, &state, 0);
  return state == 0;
}

// A user namespace is for a process of one thread: TSan's own thread is in the way of these tests.
std::string WhyNoUserNamespace() {
  const pid_t child = fork();
  if (child == 0) _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
  int state = 0;
  waitpid(child, &state, 0);
  return state == 0 ? "" : "this machine or this build does not allow unshare(CLONE_NEWUSER)";
}

template <class Body>
void OnUsersMachine(Body body) {
  if (const std::string why = WhyNoUserNamespace(); !why.empty()) GTEST_SKIP() << why;
  InNetworkNamespace([&] {
    std::string data_dir = "/tmp/user-node-test-XXXXXX";
    CHECK(mkdtemp(data_dir.data()) != nullptr);
    CHECK(MakeDirs(data_dir + "/run").ok() &&
          chown((data_dir + "/run").c_str(), kUser, kUser) == 0);
    CHECK(chown(data_dir.c_str(), kUser, kUser) == 0);
    body(data_dir);
    EXPECT_TRUE(RemoveTree(data_dir).ok());
  });
}

ino_t NetworkOf(const UserNode& node) {
  struct stat info = {};
  return fstat(node.network.get(), &info) == 0 ? info.st_ino : 0;
}

// Prints the node's network to the caller: a file of the data folder.
void NoteNetwork(const std::string& data_dir, const UserNode& node) {
  EXPECT_TRUE(WriteFile(data_dir + "/network", std::to_string(NetworkOf(node))).ok());
}

TEST(UserNode, MakesRootOfAnOrdinaryUserAndIsFoundAgain) {
  OnUsersMachine([](const std::string& dir) {
    EXPECT_TRUE(AsUser(dir, [](const std::string& data_dir) {
      struct stat before = {}, after = {};
      ASSERT_EQ(stat("/proc/self/ns/net", &before), 0);
      const Result<UserNode> node = EnterUserNode(data_dir, kDns);
      ASSERT_TRUE(node.has_value()) << node.error().message();
      EXPECT_EQ(geteuid(), 0u);
      EXPECT_TRUE(InUserNamespace());
      ASSERT_EQ(stat("/proc/self/ns/net", &after), 0);
      EXPECT_EQ(before.st_ino, after.st_ino);  // the control plane stays in the machine's network
      EXPECT_NE(NetworkOf(*node), before.st_ino);
      NoteNetwork(data_dir, *node);
    }));
    EXPECT_TRUE(AsUser(dir, [](const std::string& data_dir) {
      const Result<UserNode> again = EnterUserNode(data_dir, kDns);
      ASSERT_TRUE(again.has_value()) << again.error().message();
      EXPECT_EQ(std::to_string(NetworkOf(*again)),
                ReadSmallFile(data_dir + "/network").value_or(""));
      EXPECT_TRUE(EndUserNode(data_dir).ok());
      EXPECT_TRUE(EndUserNode(data_dir).ok());
    }));
    EXPECT_FALSE(ProcessLockHolder(dir + "/run/node.lock").has_value());
  });
}

TEST(UserNode, BindsDnsInTheNodesNetworkBeforeTheAddressIsThere) {
  OnUsersMachine([](const std::string& dir) {
    EXPECT_TRUE(AsUser(dir, [](const std::string& data_dir) {
      const Result<UserNode> node = EnterUserNode(data_dir, kDns);
      ASSERT_TRUE(node.has_value()) << node.error().message();
      for (const UniqueFd* fd : {&node->dns.udp, &node->dns.tcp}) {
        sockaddr_in here = {};
        socklen_t size = sizeof here;
        ASSERT_EQ(getsockname(fd->get(), reinterpret_cast<sockaddr*>(&here), &size), 0);
        EXPECT_EQ(ntohl(here.sin_addr.s_addr), kDns.address.value);
        EXPECT_EQ(ntohs(here.sin_port), 53);
        const UniqueFd network(ioctl(fd->get(), 0x894C /* SIOCGSKNS */));
        struct stat info = {};
        ASSERT_EQ(fstat(network.get(), &info), 0);
        EXPECT_EQ(info.st_ino, NetworkOf(*node));
      }
      EXPECT_TRUE(EndUserNode(data_dir).ok());
    }));
  });
}

TEST(UserNode, IsNewAfterItsHolderWasKilled) {
  OnUsersMachine([](const std::string& dir) {
    EXPECT_TRUE(AsUser(dir, [](const std::string& data_dir) {
      const Result<UserNode> node = EnterUserNode(data_dir, kDns);
      ASSERT_TRUE(node.has_value()) << node.error().message();
    }));
    const auto holder = ProcessLockHolder(dir + "/run/node.lock");
    ASSERT_TRUE(holder.has_value());
    kill(*holder, SIGKILL);
    ASSERT_TRUE(EndProcess(dir + "/run/node.lock", seconds(5)).ok());
    EXPECT_TRUE(AsUser(dir, [](const std::string& data_dir) {
      const Result<UserNode> node = EnterUserNode(data_dir, kDns);
      ASSERT_TRUE(node.has_value()) << node.error().message();
      EXPECT_TRUE(EndUserNode(data_dir).ok());
    }));
  });
}

TEST(UserNode, SaysWhyThereIsNone) {
  OnUsersMachine([](const std::string& dir) {
    EXPECT_TRUE(AsUser(dir, [](const std::string& data_dir) {
      // A namespace of his own, and none below it.
      CHECK(unshare(CLONE_NEWUSER) == 0 && MapOwnId(kUser, kUser).ok());
      CHECK(WriteFile("/proc/sys/user/max_user_namespaces", "0").ok());
      const Result<UserNode> node = EnterUserNode(data_dir, kDns);
      ASSERT_FALSE(node.has_value());
      EXPECT_EQ(node.error().reason(), Reason::kForbidden);
      EXPECT_NE(node.error().message().find("user.max_user_namespaces is 0"), std::string::npos)
          << node.error().message();
    }));
  });
}

}  // namespace
}  // namespace muster::agent
