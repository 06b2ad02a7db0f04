#include "agent/pod_workers/host_ports.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::agent {
namespace {

json::Value Pod(const std::string& uid, const std::string& ports,
                const std::string& list = "containers") {
  return *json::Parse(R"({"metadata":{"uid":")" + uid + R"("},"spec":{")" + list +
                      R"(":[{"name":"c","restartPolicy":"Always","ports":[)" + ports + "]}]}}");
}

TEST(HostPorts, OneOfTwoPodsHasAPort) {
  const struct {
    const char* first;
    const char* second;
    bool both;
  } cases[] = {
      {R"({"hostPort":80})", R"({"hostPort":80,"protocol":"TCP"})", false},
      {R"({"hostPort":80})", R"({"hostPort":81})", true},
      {R"({"hostPort":80})", R"({"containerPort":80})", true},
      {R"({"hostPort":80})", R"({"hostPort":80,"protocol":"UDP"})", true},
      {R"({"hostPort":80})", R"({"hostPort":80,"hostIP":"192.0.2.1"})", false},
      {R"({"hostPort":80,"hostIP":"192.0.2.2"})", R"({"hostPort":80,"hostIP":"192.0.2.1"})", true},
      {R"({"hostPort":1},{"hostPort":80})", R"({"hostPort":2},{"hostPort":1})", false},
  };
  for (const auto& row : cases) {
    HostPorts ports;
    EXPECT_TRUE(ports.Take(Pod("a", row.first)).ok());
    EXPECT_EQ(ports.Take(Pod("b", row.second)).ok(), row.both) << row.first << " " << row.second;
    EXPECT_TRUE(ports.Take(Pod("a", row.first)).ok());  // once more
    ports.Release("a");
    EXPECT_TRUE(ports.Take(Pod("b", row.second)).ok());
  }
}

TEST(HostPorts, OfSidecarsToo) {
  HostPorts ports;
  EXPECT_TRUE(ports.Take(Pod("a", R"({"hostPort":80})", "initContainers")).ok());
  EXPECT_FALSE(ports.Take(Pod("b", R"({"hostPort":80})")).ok());
}

TEST(HostPorts, WhoIsRefusedHasNone) {
  HostPorts ports;
  EXPECT_TRUE(ports.Take(Pod("a", R"({"hostPort":80})")).ok());
  EXPECT_FALSE(ports.Take(Pod("b", R"({"hostPort":81},{"hostPort":80})")).ok());
  EXPECT_FALSE(ports.Has("b"));
  EXPECT_TRUE(ports.Take(Pod("c", R"({"hostPort":81})")).ok());
  EXPECT_TRUE(ports.Take(Pod("d", R"({"containerPort":81})")).ok());
  EXPECT_FALSE(ports.Has("d"));
}

TEST(HostPorts, AreAdoptedFromAnEarlierRun) {
  HostPorts before, after;
  const json::Value pod = Pod("a", R"({"hostPort":80,"hostIP":"192.0.2.1","protocol":"UDP"})");
  EXPECT_TRUE(before.Take(pod).ok());
  after.Adopt("a", before.ToJson("a"));
  after.Adopt("none", before.ToJson("none"));
  EXPECT_FALSE(after.Take(Pod("b", R"({"hostPort":80,"protocol":"UDP"})")).ok());
  const json::Value other = Pod("c", R"({"hostPort":80,"hostIP":"192.0.2.2","protocol":"UDP"})");
  EXPECT_TRUE(after.Take(other).ok());
  EXPECT_TRUE(after.Take(pod).ok());
  EXPECT_FALSE(after.Has("none"));
}

TEST(HostPorts, ProgramsOfTheNodeKeepTheirs) {
  HostPorts ports([](const std::string& protocol) {
    using Ports = std::vector<cluster::HostPort>;
    return protocol == "TCP" ? Ports{{"127.0.0.1", "TCP", 6443}, {"0.0.0.0", "TCP", 22}} : Ports{};
  });
  const Status refused = ports.Take(Pod("a", R"({"hostPort":80},{"hostPort":6443})"));
  EXPECT_EQ(refused.reason(), Reason::kServiceUnavailable);
  EXPECT_EQ(refused.message(),
            "hostPort 6443/TCP is not free: a program of the node itself listens at "
            "127.0.0.1:6443; end it, or give the pod another hostPort, or a hostIP at which nobody "
            "listens");
  EXPECT_FALSE(ports.Has("a"));
  EXPECT_TRUE(ports.Take(Pod("b", R"({"hostPort":6443,"protocol":"UDP"})")).ok());
  EXPECT_TRUE(ports.Take(Pod("c", R"({"hostPort":6443,"hostIP":"192.0.2.1"})")).ok());
  EXPECT_FALSE(ports.Take(Pod("d", R"({"hostPort":22,"hostIP":"192.0.2.1"})")).ok());
  // The port is its own program's, which is told when it cannot have it.
  const json::Value on_host = Pod("e", R"({"hostPort":22})").SetPath({"spec", "hostNetwork"}, true);
  EXPECT_TRUE(ports.Take(on_host).ok());
}

}  // namespace
}  // namespace muster::agent
