#include "cli/three_way.h"

#include <gtest/gtest.h>

#include "cli/cli_testing.h"
#include "json/write.h"
#include "schema/registry.h"

namespace muster::cli {
namespace {

const schema::Schema* PodSchema() {
  return schema::Registry::BuiltIn().FindKind("", "v1", "Pod")->schema.get();
}

TEST(ThreeWayMerge, KeepsWhatOthersWroteAndRemovesWhatIsNoLongerWanted) {
  json::Value last = Yaml("{metadata: {labels: {a: '1', b: '2'}}}");
  json::Value wanted = Yaml("{metadata: {labels: {a: '3'}}}");
  json::Value current = Yaml("{metadata: {labels: {a: '1', b: '2', theirs: x}, uid: u}}");
  EXPECT_EQ(ThreeWayMerge(last, wanted, current, nullptr),
            Yaml("{metadata: {labels: {a: '3', theirs: x}, uid: u}}"));
}

TEST(ThreeWayMerge, MergesContainersByName) {
  json::Value last = Yaml(
      "{spec: {containers: [{name: a, image: x, env: [{name: E, value: '1'}]}, {name: gone, image: "
      "y}]}}");
  json::Value wanted = Yaml("{spec: {containers: [{name: a, image: x2}, {name: new, image: z}]}}");
  json::Value current = Yaml(
      "{spec: {containers: [{name: a, image: x, terminationMessagePath: /dev/termination-log,"
      " env: [{name: E, value: '1'}, {name: THEIRS, value: t}]}, {name: gone, image: y}, {name: "
      "sidecar, image: s}]}}");
  json::Value merged = ThreeWayMerge(last, wanted, current, PodSchema());
  ASSERT_EQ(merged["spec"]["containers"].size(), 3u);
  const json::Value& a = merged["spec"]["containers"].At(0);
  EXPECT_EQ(a["image"].AsString(), "x2");
  EXPECT_EQ(a["terminationMessagePath"].AsString(), "/dev/termination-log")
      << "a default of the server stays";
  EXPECT_FALSE(a.Has("env")) << "the whole list was dropped by the user";
  EXPECT_EQ(merged["spec"]["containers"].At(1)["name"].AsString(), "sidecar");
  EXPECT_EQ(merged["spec"]["containers"].At(2)["name"].AsString(), "new");
}

TEST(ThreeWayMerge, FollowsTheUsersOrderOfKeyedLists) {
  json::Value last = Yaml("{spec: {initContainers: [{name: a}, {name: b}]}}");
  json::Value wanted = Yaml("{spec: {initContainers: [{name: b}, {name: a}]}}");
  json::Value current = Yaml("{spec: {initContainers: [{name: a}, {name: injected}, {name: b}]}}");
  EXPECT_EQ(ThreeWayMerge(last, wanted, current, PodSchema()),
            Yaml("{spec: {initContainers: [{name: b}, {name: a}, {name: injected}]}}"));
}

TEST(ThreeWayMerge, ReplacesListsWithoutKeysAndMergesSets) {
  json::Value current =
      Yaml("{metadata: {finalizers: [theirs, mine]}, spec: {tolerations: [{key: a}, {key: b}]}}");
  json::Value last =
      Yaml("{metadata: {finalizers: [mine]}, spec: {tolerations: [{key: a}, {key: b}]}}");
  json::Value wanted = Yaml("{metadata: {finalizers: [other]}, spec: {tolerations: [{key: c}]}}");
  EXPECT_EQ(ThreeWayMerge(last, wanted, current, PodSchema()),
            Yaml("{metadata: {finalizers: [theirs, other]}, spec: {tolerations: [{key: c}]}}"));
}

TEST(WithLastApplied, WritesWhatKubectlWrites) {
  json::Value applied = WithLastApplied(
      Yaml("{kind: ConfigMap, apiVersion: v1, metadata: {name: x}, data: {b: '1', a: '2'}}"));
  EXPECT_EQ(applied["metadata"]["annotations"][kLastApplied].AsString(),
            "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"2\",\"b\":\"1\"},\"kind\":\"ConfigMap\","
            "\"metadata\":{\"annotations\":{},\"name\":\"x\"}}\n");
  EXPECT_EQ(LastAppliedOf(applied)["data"]["a"].AsString(), "2");
  EXPECT_EQ(WithLastApplied(applied), applied) << "the record does not contain itself";
  EXPECT_TRUE(LastAppliedOf(json::Obj()).IsNull());
}

}  // namespace
}  // namespace muster::cli
