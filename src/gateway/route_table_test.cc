#include "gateway/route_table.h"

#include <gtest/gtest.h>

namespace muster::gateway {
namespace {

Route RouteOf(std::string ns, std::string name) {
  Route route;
  route.key = {std::move(ns), std::move(name)};
  return route;
}

std::string Resolved(const RouteTable& table, std::string_view host,
                     std::string_view peer = "10.42.0.9:4711") {
  const client::ObjectKey* key = table.Resolve(host, peer);
  return key == nullptr ? "" : key->ToString();
}

TEST(RouteTable, KnowsTheHostsOfAService) {
  RouteTable table;
  table.Add(RouteOf("ml", "iris"), "10.43.0.7");
  for (const char* host : {"iris-ml.example.com", "iris.ml.example.com", "iris.ml", "iris.ml.svc",
                           "IRIS.ml.svc:80", "iris.ml.svc.cluster.local",
                           "iris.ml.svc.cluster.local.", "10.43.0.7", "10.43.0.7:80", "iris"})
    EXPECT_EQ(Resolved(table, host), "ml/iris") << host;
  for (const char* host :
       {"", "ml", "iris.other", "example.com", "iris-ml.example.org", "[::1]:80"})
    EXPECT_EQ(Resolved(table, host), "") << host;
}

TEST(RouteTable, ANameThatTwoNamespacesHaveMeansThatOfWhoAsks) {
  RouteTable table;
  table.Add(RouteOf("a", "iris"), "10.43.0.7");
  EXPECT_FALSE(table.HasAmbiguousNames());
  table.Add(RouteOf("b", "iris"), "10.43.0.8");
  EXPECT_TRUE(table.HasAmbiguousNames());
  table.AddPod("10.42.0.5", "b");
  EXPECT_EQ(Resolved(table, "iris", "10.42.0.5:1"), "b/iris");
  EXPECT_EQ(Resolved(table, "iris", "10.42.0.6:1"), "");
  EXPECT_EQ(Resolved(table, "iris.a", "10.42.0.5:1"), "a/iris");
}

TEST(RouteTable, AHostThatSeveralHaveIsThatOfTheFirst) {
  RouteTable table;
  table.Add(RouteOf("c", "a-b"), "");
  table.Add(RouteOf("b-c", "a"), "");
  EXPECT_EQ(Resolved(table, "a-b-c.example.com"), "c/a-b");
  EXPECT_EQ(Resolved(table, "a.b-c.example.com"), "b-c/a");
}

TEST(RouteTable, ANameIsLookedForInTheNamespaceOfWhoAsks) {
  RouteTable table;
  table.Add(RouteOf("a", "iris"), "");
  EXPECT_EQ(table.ResolveIn("b", "iris")->ns, "a");
  table.Add(RouteOf("b", "iris"), "");
  EXPECT_EQ(table.ResolveIn("b", "iris")->ns, "b");
  EXPECT_EQ(table.ResolveIn("c", "iris"), nullptr);
  // A namespace may be called as a suffix.
  table.Add(RouteOf("svc", "iris"), "");
  EXPECT_EQ(table.ResolveIn("b", "iris.svc")->ns, "svc");
}

TEST(RouteTable, AGraphDoesNotTakeTheNameOfAService) {
  RouteTable table;
  table.Add(RouteOf("a", "iris"), "");
  table.Add(GraphRoute{{"a", "iris"}, {}, {}}, "");
  table.Add(GraphRoute{{"a", "chain"}, {}, {}}, "10.43.0.9");
  EXPECT_EQ(table.FindGraph({"a", "iris"}), nullptr);
  EXPECT_NE(table.FindGraph(*table.Resolve("10.43.0.9", "")), nullptr);
}

}  // namespace
}  // namespace muster::gateway
