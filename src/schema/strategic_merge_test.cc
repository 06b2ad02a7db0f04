#include "schema/strategic_merge.h"

#include <gtest/gtest.h>

#include "json/parse.h"
#include "json/write.h"
#include "schema/registry.h"

namespace muster::schema {
namespace {

json::Value J(std::string_view text) { return *json::Parse(text); }

std::string Merged(std::string_view original, std::string_view patch,
                   std::string_view schema = "io.k8s.api.core.v1.PodSpec") {
  const Schema* found = Registry::BuiltIn().FindSchema(schema);
  EXPECT_NE(found, nullptr);
  const Result<json::Value> merged = StrategicMerge(*found, J(original), J(patch));
  return merged
             ? json::Write(*merged)
             : std::string(ReasonName(merged.error().reason())) + ": " + merged.error().message();
}

TEST(StrategicMerge, MergesListsByTheirKey) {
  EXPECT_EQ(Merged(R"({"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"}]})",
                   R"({)"
                   R"("containers":[{"name":"b","image":"2"}]})"),
            R"({"containers":[{"name":"a","image":"1"},{"name":"b","image":"2"}]})");
  EXPECT_EQ(Merged(R"({"containers":[{"name":"a"}]})", R"({"containers":[{"name":"c","env":[{)"
                                                       R"("name":"X","value":"1"}]}]})"),
            R"({"containers":[{"name":"c","env":[{"name":"X","value":"1"}]},{)"
            R"("name":"a"}]})")
      << "what the patch brings stands first, as upstream";
  EXPECT_EQ(Merged(R"({"containers":[{"name":"a","env":[{"name":"X","value":"1"},{"name":"Y",)"
                   R"("value":"2"}]}]})",
                   R"({"containers":[{"name":"a","env":[{"name":"Y","value":null,"valueFrom":{)"
                   R"("fieldRef":{"fieldPath":"p"}}}]}]})"),
            R"({"containers":[{"name":"a","env":[{"name":"X","value":"1"},{"name":"Y",)"
            R"("valueFrom":{"fieldRef":{"fieldPath":"p"}}}]}]})");
}

TEST(StrategicMerge, ReplacesListsWithoutAKey) {
  EXPECT_EQ(Merged(R"({"containers":[{"name":"a","args":["x","y"]}],"tolerations":[{"key":"k"}]})",
                   R"({"containers":[{"name":"a","args":["z"]}],"tolerations":[{"key":"l"}]})"),
            R"({"containers":[{"name":"a","args":["z"]}],"tolerations":[{"key":"l"}]})");
}

TEST(StrategicMerge, ObeysDirectives) {
  EXPECT_EQ(
      Merged(R"({"containers":[{"name":"a"},{"name":"b"}]})", R"({"containers":[{)"
                                                              R"("name":"a","$patch":"delete"}]})"),
      R"({"containers":[{"name":"b"}]})");
  EXPECT_EQ(Merged(R"({"containers":[{"name":"a"},{"name":"b"}]})",
                   R"({"containers":[{)"
                   R"("name":"c"},{"$patch":"replace"}]})"),
            R"({"containers":[{"name":"c"}]})");
  EXPECT_EQ(
      Merged(R"({"nodeSelector":{"a":"1"},"hostname":"h"})", R"({"nodeSelector":{)"
                                                             R"("$patch":"replace","b":"2"}})"),
      R"({"nodeSelector":{"b":"2"},"hostname":"h"})");
  EXPECT_EQ(Merged(R"({"nodeSelector":{"a":"1"}})", R"({"nodeSelector":{)"
                                                    R"("$patch":"delete"}})"),
            R"({"nodeSelector":{}})");
  EXPECT_EQ(Merged(R"({"nodeSelector":{"a":"1","b":"2"}})", R"({"nodeSelector":{"a":null,)"
                                                            R"("c":"3"}})"),
            R"({"nodeSelector":{"b":"2","c":"3"}})");
  EXPECT_EQ(Merged(R"({})", R"({"nodeSelector":{"a":null,"c":"3"},"hostname":null})"),
            R"({)"
            R"("nodeSelector":{"c":"3"}})");
}

TEST(StrategicMerge, RetainKeysDropsTheOtherVolumeSource) {
  EXPECT_EQ(Merged(R"({"volumes":[{"name":"v","emptyDir":{}},{"name":"w","emptyDir":{}}]})",
                   R"({"volumes":[{"$retainKeys":["name","hostPath"],"name":"v","hostPath":{)"
                   R"("path":"/x"}}]})"),
            R"({"volumes":[{"name":"v","hostPath":{"path":"/x"}},{"name":"w","emptyDir":{}}]})");
  EXPECT_TRUE(Merged(R"({"volumes":[]})", R"({"volumes":[{"$retainKeys":["name"],"name":"v",)"
                                          R"("hostPath":{}}]})")
                  .starts_with("BadRequest"));
}

TEST(StrategicMerge, OrdersByWhatThePatchStates) {
  EXPECT_EQ(Merged(R"({"containers":[{"name":"a"},{"name":"b"},{"name":"server"},{"name":"c"}]})",
                   R"({"$setElementOrder/containers":[{"name":"c"},{"name":"new"},{"name":"a"}],)"
                   R"("containers":[{"name":"new"},{"name":"b","$patch":"delete"}]})"),
            R"({"containers":[{"name":"server"},{"name":"c"},{"name":"new"},{"name":"a"}]})");
  EXPECT_EQ(Merged(R"({"containers":[{"name":"a"},{"name":"b"}]})",
                   R"({)"
                   R"("$setElementOrder/containers":[{"name":"b"},{"name":"a"}]})"),
            R"({"containers":[{"name":"b"},{"name":"a"}]})");
  EXPECT_TRUE(Merged(R"({"containers":[]})", R"({"$setElementOrder/containers":[{"name":"a"}],)"
                                             R"("containers":[{"name":"b"}]})")
                  .starts_with("BadRequest"));
}

TEST(StrategicMerge, OrdersThousandsOfItems) {
  json::Array live, order, expected;
  for (int i = 0; i < 2000; ++i) live.emplace_back("a/" + std::to_string(i));
  for (int i = 1999; i >= 1000; --i) order.emplace_back("a/" + std::to_string(i));
  const KindPtr kind = Registry::BuiltIn().Find("", "v1", "configmaps");
  const auto object = [](const char* key, const json::Array& list) {
    return json::Obj({{"metadata", json::Obj({{key, json::Value(list)}})}});
  };
  const Result<json::Value> merged = StrategicMerge(*kind->schema, object("finalizers", live),
                                                    object("$setElementOrder/finalizers", order));
  ASSERT_TRUE(merged.has_value()) << merged.error().message();
  expected.assign(live.begin(), live.begin() + 1000);
  expected.insert(expected.end(), order.begin(), order.end());
  EXPECT_EQ((*merged)["metadata"]["finalizers"], json::Value(expected));
  const Result<json::Value> pruned =
      StrategicMerge(*kind->schema, *merged, object("$deleteFromPrimitiveList/finalizers", order));
  live.resize(1000);
  EXPECT_EQ((*pruned)["metadata"]["finalizers"], json::Value(live));
}

TEST(StrategicMerge, MergesAndPrunesScalarLists) {
  constexpr std::string_view kMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
  EXPECT_EQ(Merged(R"({"finalizers":["a","b"]})", R"({"finalizers":["c","a"]})", kMeta),
            R"({)"
            R"("finalizers":["c","a","b"]})");
  EXPECT_EQ(Merged(R"({"finalizers":["a","b"]})",
                   R"({"$deleteFromPrimitiveList/finalizers":[)"
                   R"("a"],"$setElementOrder/finalizers":["b"]})",
                   kMeta),
            R"({"finalizers":["b"]})");
}

TEST(StrategicMerge, TakesWhatKubectlApplySends) {
  EXPECT_EQ(Merged(R"({"ports":[{"port":80,"protocol":"TCP","targetPort":80}],"selector":{)"
                   R"("app":"x"}})",
                   R"({"$setElementOrder/ports":[{"port":80},{"port":81}],"ports":[{"port":81,)"
                   R"("targetPort":81},{"port":80,"targetPort":8080}],"selector":{"app":"y"}})",
                   "io.k8s.api.core.v1.ServiceSpec"),
            "BadRequest: invalid strategic merge patch: The order in patch "
            "list:\n[{\"port\":81,\"targetPort\":81},{\"port\":80,\"targetPort\":8080}]\n "
            "doesn't match setElementOrder list:\n[{\"port\":80},{\"port\":81}]\n");
  EXPECT_EQ(Merged(R"({"ports":[{"port":80,"protocol":"TCP","targetPort":80}],"selector":{)"
                   R"("app":"x"}})",
                   R"({"$setElementOrder/ports":[{"port":80},{"port":81}],"ports":[{"port":80,)"
                   R"("targetPort":8080},{"port":81}],"selector":{"app":"y"}})",
                   "io.k8s.api.core.v1.ServiceSpec"),
            R"({"ports":[{"port":80,"protocol":"TCP","targetPort":8080},{"port":81}],)"
            R"("selector":{"app":"y"}})");
}

TEST(StrategicMerge, RefusesWhatItCannotUnderstand) {
  for (const char* patch :
       {R"({"containers":[{"image":"x"}]})", R"({"$patch":"spin"})",
        R"({)"
        R"("containers":["x"]})",
        R"({"containers":[{"name":"a","$patch":"x"}]})", R"({"$retainKeys":"x"})",
        R"({)"
        R"("$deleteFromPrimitiveList/x":1})",
        "[]"}) {
    EXPECT_TRUE(Merged(R"({"containers":[{)"
                       R"("name":"a"}]})",
                       patch)
                    .starts_with("BadRequest"))
        << patch;
  }
}

}  // namespace
}  // namespace muster::schema
