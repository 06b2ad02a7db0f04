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
    EXPECT_TRUE(ports.Take(Pod("a", row.first)));
    EXPECT_EQ(ports.Take(Pod("b", row.second)), row.both) << row.first << " " << row.second;
    EXPECT_TRUE(ports.Take(Pod("a", row.first)));  // once more
    ports.Release("a");
    EXPECT_TRUE(ports.Take(Pod("b", row.second)));
  }
}

TEST(HostPorts, OfSidecarsToo) {
  HostPorts ports;
  EXPECT_TRUE(ports.Take(Pod("a", R"({"hostPort":80})", "initContainers")));
  EXPECT_FALSE(ports.Take(Pod("b", R"({"hostPort":80})")));
}

TEST(HostPorts, WhoIsRefusedHasNone) {
  HostPorts ports;
  EXPECT_TRUE(ports.Take(Pod("a", R"({"hostPort":80})")));
  EXPECT_FALSE(ports.Take(Pod("b", R"({"hostPort":81},{"hostPort":80})")));
  EXPECT_FALSE(ports.Has("b"));
  EXPECT_TRUE(ports.Take(Pod("c", R"({"hostPort":81})")));
  EXPECT_TRUE(ports.Take(Pod("d", R"({"containerPort":81})")));
  EXPECT_FALSE(ports.Has("d"));
}

TEST(HostPorts, AreAdoptedFromAnEarlierRun) {
  HostPorts before, after;
  const json::Value pod = Pod("a", R"({"hostPort":80,"hostIP":"192.0.2.1","protocol":"UDP"})");
  EXPECT_TRUE(before.Take(pod));
  after.Adopt("a", before.ToJson("a"));
  after.Adopt("none", before.ToJson("none"));
  EXPECT_FALSE(after.Take(Pod("b", R"({"hostPort":80,"protocol":"UDP"})")));
  EXPECT_TRUE(after.Take(Pod("c", R"({"hostPort":80,"hostIP":"192.0.2.2","protocol":"UDP"})")));
  EXPECT_TRUE(after.Take(pod));
  EXPECT_FALSE(after.Has("none"));
}

}  // namespace
}  // namespace muster::agent
