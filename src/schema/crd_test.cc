#include "schema/crd.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "json/parse.h"
#include "json/write.h"
#include "schema/conform.h"
#include "schema/defaulting.h"
#include "schema/own_crds.h"
#include "schema/registry.h"
#include "schema/validation.h"

namespace muster::schema {
namespace {

json::Value J(std::string_view text) {
  Result<json::Value> value = json::Parse(text);
  EXPECT_TRUE(value.has_value()) << (value ? "" : value.error().message());
  return value ? *value : json::Value();
}

const char kCrd[] =
    R"({
  "metadata": {"name": "widgets.example.com"},
  "spec": {
    "group": "example.com", "scope": "Namespaced",
    "names": {"plural": "widgets", "singular": "widget", "kind": "Widget",)"
    R"( "listKind": "WidgetList", "shortNames": ["wg"], "categories": ["all"]},
    "versions": [
      {"name": "v1", "served": true, "storage": true,
       "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size",)"
    R"( "statusReplicasPath": ".status.size"}},
       "selectableFields": [{"jsonPath": ".spec.color"}],
       "additionalPrinterColumns": [{"name": "Color", "type": "string",)"
    R"( "jsonPath": ".spec.color", "priority": 1}],
       "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {
         "spec": {"type": "object", "required": ["size"], "properties": {
           "size": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 10,)"
    R"( "exclusiveMaximum": true},
           "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
           "code": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 4},
           "tags": {"type": "array", "items": {"type": "string"},)"
    R"( "x-kubernetes-list-type": "set", "maxItems": 3},
           "parts": {"type": "array", "x-kubernetes-list-type": "map",)"
    R"( "x-kubernetes-list-map-keys": ["name"],
                     "items": {"type": "object", "required": ["name"],)"
    R"( "properties": {"name": {"type": "string"}, "weight": {"type": "number", "default": 1.5}}}},
           "labels": {"type": "object", "additionalProperties": {"type": "string"}},
           "port": {"x-kubernetes-int-or-string": true},
           "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,)"
    R"( "properties": {"known": {"type": "boolean"}}},
           "any": {"x-kubernetes-preserve-unknown-fields": true},
           "maybe": {"type": "string", "nullable": true},
           "when": {"type": "string", "format": "date-time"},
           "pod": {"type": "object", "x-kubernetes-embedded-resource": true,)"
    R"( "x-kubernetes-preserve-unknown-fields": true}}},
         "status": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}},
      {"name": "v1alpha1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {)"
    R"("type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
      {"name": "v0", "served": false, "storage": false, "schema": {"openAPIV3Schema": {)"
    R"("type": "object"}}}]}})";

KindPtr Widget() { return KindsFromCrd(J(kCrd))->at(0); }

std::vector<std::string> Wrong(std::string_view spec) {
  const KindPtr kind = Widget();
  std::vector<std::string> texts;
  for (const StatusCause& cause :
       ValidateStructural(*kind->schema, json::Obj({{"spec", J(spec)}}))) {
    texts.push_back(cause.field + ": " + cause.message);
  }
  return texts;
}

using Lines = std::vector<std::string>;

TEST(Crd, GivesAKindForEachServedVersion) {
  const auto kinds = KindsFromCrd(J(kCrd));
  ASSERT_TRUE(kinds.has_value());
  ASSERT_EQ(kinds->size(), 2u);
  const Kind& kind = *kinds->at(0);
  EXPECT_EQ(kind.GroupVersion(), "example.com/v1");
  EXPECT_EQ(kind.kind, "Widget");
  EXPECT_EQ(kind.list_kind, "WidgetList");
  EXPECT_EQ(kind.QualifiedResource(), "widgets.example.com");
  EXPECT_TRUE(kind.custom && kind.namespaced && kind.storage && kind.status_subresource);
  EXPECT_EQ(kind.scale->spec_replicas_path, ".spec.size");
  EXPECT_EQ(kind.selectable_fields, std::vector<std::string>{"spec.color"});
  ASSERT_EQ(kind.columns.size(), 1u);
  EXPECT_EQ(kind.columns[0].json_path, ".spec.color");
  EXPECT_EQ(kind.columns[0].priority, 1);
  EXPECT_EQ(kind.short_names, std::vector<std::string>{"wg"});
  EXPECT_FALSE(kinds->at(1)->storage);
  EXPECT_FALSE(kinds->at(1)->status_subresource);
}

TEST(Crd, PrunesAndKeepsByItsSchema) {
  std::vector<std::string> unknown;
  const auto result =
      Conform(*Widget(),
              J(R"({"apiVersion":"example.com/v1","kind":"Widget",)"
                R"("metadata":{"name":"a","labels":{},"foo":1},"spec":{"size":1,"bad":2,
      "free":{"x":1,"known":true},"any":{"y":[{"z":1}]},"maybe":null,"color":null,"labels":{)"
                R"("a":"b"},"parts":[{"name":"p","odd":1}],
      "pod":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"q","odd":1},"spec":{)"
                R"("x":1}}}})"),
              &unknown);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(json::Write(*result),
            R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{)"
            R"("size":1,"free":{"x":1,"known":true},"any":{"y":[{"z":1}]},"maybe":null,)"
            R"("labels":{"a":"b"},"parts":[{"name":"p"}],"pod":{"apiVersion":"v1","kind":"Pod",)"
            R"("metadata":{"name":"q"},"spec":{"x":1}}}})");
  EXPECT_EQ(unknown,
            (Lines{"metadata.foo", "spec.bad", "spec.parts[0].odd", "spec.pod.metadata.odd"}));
  EXPECT_FALSE(Conform(*Widget(), J(R"({"metadata":{"labels":{"a":1}}})"), nullptr).has_value());
}

TEST(Crd, Defaults) {
  EXPECT_EQ(json::Write(ApplyDefaults(*Widget(), J(R"({"spec":{"parts":[{)"
                                                   R"("name":"p"}]}})"))),
            R"({"spec":{"parts":[{"name":"p","weight":1.5}],"color":"red"}})");
}

TEST(Crd, ValidatesInUpstreamsWords) {
  EXPECT_EQ(Wrong(R"({"size":3,"color":"red","code":"abc","tags":["a","b"],"parts":[{)"
                  R"("name":"x"},{"name":"y"}],"port":"http","maybe":null,)"
                  R"("when":"2026-01-02T03:04:05Z"})"),
            Lines());
  EXPECT_EQ(Wrong("{}"), Lines{"spec.size: Required value"});
  EXPECT_EQ(Wrong(R"({"size":"3")"
                  R"(})"),
            Lines{"spec.size: Invalid value: \"string\": spec.size in body must be of type "
                  "integer: \"string\""});
  EXPECT_EQ(
      Wrong(R"({"size":0)"
            R"(})"),
      Lines{"spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"});
  EXPECT_EQ(Wrong(R"({"size":10)"
                  R"(})"),
            Lines{"spec.size: Invalid value: 10: spec.size in body should be less than 10"});
  EXPECT_EQ(Wrong(R"({"size":1.5)"
                  R"(})"),
            Lines{"spec.size: Invalid value: \"number\": spec.size in body must be of type "
                  "integer: \"number\""});
  EXPECT_EQ(
      Wrong(R"({"size":1,"color":"blue","code":"A"})"),
      (Lines{"spec.color: Unsupported value: \"blue\": supported values: \"red\", \"green\"",
             "spec.code: Invalid value: \"A\": spec.code in body should be at least 2 chars long",
             "spec.code: Invalid value: \"A\": spec.code in body should match '^[a-z]+$'"}));
  EXPECT_EQ(Wrong(R"({"size":1,"tags":["a","a"],"parts":[{"name":"x"},{"name":"x","weight":2}],)"
                  R"("labels":{"a":1},"port":true})"),
            (Lines{"spec.tags[1]: Duplicate value: \"a\"",
                   "spec.parts[1]: Duplicate value: {\"name\":\"x\"}",
                   "spec.labels.a: Invalid value: \"integer\": spec.labels.a in body must be of "
                   "type string: \"integer\"",
                   "spec.port: Invalid value: \"boolean\": spec.port in body must be of type "
                   "integer,string: \"boolean\""}));
  EXPECT_EQ(Wrong(R"({"size":1,"tags":["a","b","c","d"],"code":"abcde","when":"soon","free":{)"
                  R"("known":1}})"),
            (Lines{"spec.tags: Too many: 4: must have at most 3 items",
                   "spec.code: Too long: may not be more than 4 bytes",
                   "spec.when: Invalid value: \"soon\": spec.when in body must be of type "
                   "date-time: \"soon\"",
                   "spec.free.known: Invalid value: \"integer\": spec.free.known in body must be "
                   "of type boolean: \"integer\""}));
  EXPECT_EQ(Wrong(R"({"size":1,"pod":{)"
                  R"(}})"),
            (Lines{"spec.pod.apiVersion: Required value", "spec.pod.kind: Required value"}));
}

TEST(Crd, CustomObjectsTakeTheWholeWay) {
  const KindPtr kind = Widget();
  EXPECT_TRUE(Validate(*kind, J(R"({"metadata":{"name":"a","namespace":"d"},"spec":{)"
                                R"("size":1}})"))
                  .empty());
  const auto causes = Validate(*kind, J(R"({"metadata":{"name":"A","namespace":"d"},"spec":{)"
                                        R"("size":1}})"));
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].field, "metadata.name");
  EXPECT_EQ(Validate(*kind, J(R"({"metadata":{"name":"a","namespace":"d"}})"))[0].field, "spec");
}

TEST(Crd, ItselfIsValidated) {
  const KindPtr kind =
      Registry::BuiltIn().Find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
  ASSERT_NE(kind, nullptr);
  const auto causes_of = [&](const json::Value& crd) {
    Lines fields;
    for (const StatusCause& cause : Validate(*kind, ApplyDefaults(*kind, crd)))
      fields.push_back(cause.field + ": " + cause.message);
    return fields;
  };
  EXPECT_EQ(causes_of(J(kCrd)), Lines());
  const json::Value bad =
      J(R"({"metadata":{"name":"x"},"spec":{"group":"nodots","scope":"Both",)"
        R"("names":{"plural":"Xs","kind":"X"},
      "versions":[{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":{)"
        R"("type":"object","properties":{"spec":{"properties":{"a":{"type":"array"}}}}}}}]}})");
  EXPECT_EQ(causes_of(bad).size(), 7u) << testing::PrintToString(causes_of(bad));
  json::Value deep = json::Obj({{"type", "string"}});
  for (int i = 0; i < kMaxSchemaDepth + 2; ++i)
    deep = json::Obj({{"type", "object"}, {"properties", json::Obj({{"a", deep}})}});
  json::Value crd = J(kCrd);
  crd = crd.SetPath(
      {"spec", "versions"},
      json::List({crd["spec"]["versions"].At(0).SetPath({"schema", "openAPIV3Schema"}, deep)}));
  EXPECT_FALSE(causes_of(crd).empty());
  EXPECT_FALSE(KindsFromCrd(crd).has_value());
}

TEST(Crd, OurOwnKindsPass) {
  const KindPtr crds =
      Registry::BuiltIn().Find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
  for (const json::Value& crd : OwnCrds()) {
    std::vector<std::string> unknown;
    const auto conformed = Conform(*crds, crd, &unknown);
    ASSERT_TRUE(conformed.has_value()) << conformed.error().message();
    EXPECT_TRUE(unknown.empty()) << unknown[0];
    const auto causes = Validate(*crds, ApplyDefaults(*crds, *conformed));
    EXPECT_TRUE(causes.empty()) << InvalidError(*crds, "x", causes).message();
    const auto kinds = KindsFromCrd(crd);
    ASSERT_TRUE(kinds.has_value());
    EXPECT_EQ(kinds->size(), crd["spec"]["versions"].size());
  }
}

TEST(Crd, AChangedDefinitionOfOursIsReadAnew) {
  const std::vector<json::Value> all = OwnCrds();
  const json::Value crd = *std::ranges::find_if(all, [](const json::Value& each) {
    return each["spec"]["scope"].AsString() == "Namespaced";
  });
  const json::Value other = crd.SetPath({"spec", "scope"}, "Cluster");
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(KindsFromCrd(crd)->at(0)->namespaced);
    EXPECT_FALSE(KindsFromCrd(other)->at(0)->namespaced);
  }
  EXPECT_EQ(KindsFromCrd(other)->at(0), KindsFromCrd(other)->at(0)) << "read twice";
}

// Each of these took minutes, or all the memory there is.
TEST(Crd, ABoundOnWhatASchemaCosts) {
  const auto schema = [](const char* text) { return *SchemaFromJson(J(text)); };
  const SchemaPtr slow = schema(R"({"type":"string","pattern":"(((x{10}){10}){9})*y"})");
  EXPECT_TRUE(ValidateStructural(*slow, "y").empty());
  const auto causes = ValidateStructural(*slow, std::string(100'000, 'x'));
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_NE(causes[0].message.find("too much text for the pattern"), std::string::npos);

  const SchemaPtr wide = schema(R"({"type":"array","items":{"type":"object","properties":{
      "a":{"type":"string","default":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
      "b":{"type":"object","default":{},"properties":{"c":{"type":"integer","default":1}}}}}})");
  const auto items = [](size_t count) { return json::Value(json::Array(count, json::Obj())); };
  EXPECT_TRUE(CheckCostOfDefaults(*wide, items(1000)).ok());
  const Status status = CheckCostOfDefaults(*wide, items(100'000));
  EXPECT_EQ(status.reason(), Reason::kRequestEntityTooLarge);
  EXPECT_EQ(ApplySchemaDefaults(*wide, items(2)).At(1)["b"]["c"].AsInt(), 1);

  json::Array choices;
  for (int i = 0; i < 1000; ++i) choices.emplace_back(i);
  const SchemaPtr many =
      *SchemaFromJson(json::Obj({{"type", "integer"}, {"enum", json::Value(choices)}}));
  EXPECT_TRUE(ValidateStructural(*many, 999).empty());
  EXPECT_TRUE(ValidateStructural(*many, json::Value::Number("1e1")).empty()) << "equal to 10";
  const auto unknown = ValidateStructural(*many, 1000);
  ASSERT_EQ(unknown.size(), 1u);
  EXPECT_TRUE(unknown[0].message.ends_with(", \"99\", ...")) << unknown[0].message;
}

TEST(Crd, ABoundOnItsPatterns) {
  json::Object properties;
  for (int i = 0; i < 200; ++i)
    properties.emplace_back("f" + std::to_string(i), J(R"({"type":"string","pattern":"a{900}b"})"));
  json::Value crd = OwnCrds()[0].SetPath({"metadata", "name"}, "x.y.z");
  json::Value version = OwnCrds()[0]["spec"]["versions"].At(0);
  version = version.SetPath({"schema", "openAPIV3Schema", "properties", "spec"},
                            json::Obj({{"type", "object"}, {"properties", properties}}));
  crd = crd.SetPath({"spec", "versions"}, json::List({version}));
  const KindPtr kind =
      Registry::BuiltIn().Find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
  const auto causes = Validate(*kind, crd);
  EXPECT_TRUE(std::ranges::any_of(causes, [](const StatusCause& cause) {
    return cause.message.find("patterns of one definition") != std::string::npos;
  })) << InvalidError(*kind, "x", causes).message();
}

TEST(Crd, APyTorchJobGoesThroughItsCrd) {
  KindPtr kind;
  for (const json::Value& crd : OwnCrds()) {
    if (crd["spec"]["names"]["kind"].AsString() == "PyTorchJob") kind = KindsFromCrd(crd)->at(0);
  }
  ASSERT_NE(kind, nullptr);
  std::vector<std::string> unknown;
  const auto conformed =
      Conform(*kind,
              J(R"({"apiVersion":"kubeflow.org/v1",)"
                R"("kind":"PyTorchJob","metadata":{"name":"j","namespace":"d"},"spec":{)"
                R"("pytorchReplicaSpecs":{"Worker":{"replicas":2,
      "template":{"spec":{"containers":[{"name":"pytorch","image":"i","resources":{"limits":{)"
                R"("nvidia.com/gpu":1}},"foo":1}]}}}}}})"),
              &unknown);
  ASSERT_TRUE(conformed.has_value()) << conformed.error().message();
  EXPECT_EQ(unknown, Lines{"spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].foo"});
  const json::Value job = ApplyDefaults(*kind, *conformed);
  EXPECT_EQ(job["spec"]["nprocPerNode"].AsString(), "auto");
  const auto causes = Validate(*kind, job);
  EXPECT_TRUE(causes.empty()) << InvalidError(*kind, "j", causes).message();
}

}  // namespace
}  // namespace muster::schema
