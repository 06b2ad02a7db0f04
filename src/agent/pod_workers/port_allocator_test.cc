#include "agent/pod_workers/port_allocator.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::agent {
namespace {

json::Value Pod(const std::string& name, int port, const std::string& job = "",
                const std::string& protocol = "TCP") {
  json::Value pod =
      *json::Parse(R"({"metadata":{"namespace":"d","name":")" + name + R"(","uid":"uid-)" + name +
                   R"("},"spec":{"containers":[)" + R"({"name":"c","ports":[{"containerPort":)" +
                   std::to_string(port) + R"(,"protocol":")" + protocol + R"("}]}]}})");
  if (job.empty()) return pod;
  return pod.SetPath({"metadata", "ownerReferences"},
                     json::List({json::Obj({{"uid", job}, {"controller", true}})}));
}

std::set<int64_t> Nobody(const std::string&) { return {}; }

TEST(PortAllocator, RefusesASecondPodOnAPortAndSaysWhoHasIt) {
  PortAllocator ports(Nobody);
  EXPECT_TRUE(ports.Take(Pod("web", 8000), true).ok());
  const Status refused = ports.Take(Pod("two", 8000), true);
  EXPECT_EQ(refused.reason(), Reason::kConflict);
  EXPECT_NE(refused.message().find("port 8000/TCP is taken by pod d/web"), std::string::npos);
  EXPECT_NE(refused.message().find("another port"), std::string::npos);
  EXPECT_TRUE(ports.Take(Pod("two", 8001), true).ok());
  EXPECT_TRUE(ports.Take(Pod("dns", 8000, "", "UDP"), true).ok());
  ports.Release("uid-web");
  EXPECT_TRUE(ports.Take(Pod("three", 8000), true).ok());
}

TEST(PortAllocator, LetsThePodsOfAJobShareItsPort) {
  PortAllocator ports(Nobody);
  EXPECT_TRUE(ports.Take(Pod("a-master-0", 23456, "job-a"), true).ok());
  EXPECT_TRUE(ports.Take(Pod("a-worker-0", 23456, "job-a"), true).ok());
  EXPECT_FALSE(ports.Take(Pod("b-master-0", 23456, "job-b"), true).ok());
  ports.Release("uid-a-master-0");
  EXPECT_FALSE(ports.Take(Pod("b-master-0", 23456, "job-b"), true).ok());
  ports.Release("uid-a-worker-0");
  EXPECT_TRUE(ports.Take(Pod("b-master-0", 23456, "job-b"), true).ok());
}

TEST(PortAllocator, KnowsWhoElseListens) {
  PortAllocator ports([](const std::string& protocol) {
    return protocol == "TCP" ? std::set<int64_t>{8000} : std::set<int64_t>();
  });
  const Status refused = ports.Take(Pod("web", 8000), true);
  EXPECT_NE(refused.message().find("a program of this machine"), std::string::npos);
  // A pod that runs already is the one that listens.
  EXPECT_TRUE(ports.Take(Pod("web", 8000), false).ok());
  EXPECT_TRUE(ports.Take(Pod("dns", 8000, "", "UDP"), true).ok());
}

}  // namespace
}  // namespace muster::agent
