#include "schema/conform.h"

#include <fmt/core.h>

#include <gtest/gtest.h>

#include "json/parse.h"
#include "json/write.h"
#include "schema/registry.h"
#include "schema/unsupported_fields.h"

namespace muster::schema {
namespace {

const Kind& Of(std::string_view plural) { return *Registry::BuiltIn().Find("", "v1", plural); }

std::string Conformed(std::string_view text, std::vector<std::string>* unknown = nullptr,
                      std::string_view plural = "pods") {
  const Result<json::Value> result = Conform(Of(plural), *json::Parse(text), unknown);
  return result ? json::Write(*result) : result.error().message();
}

TEST(Conform, SharesAnObjectThatNeedsNoChange) {
  const json::Value pod = *json::Parse(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"x":"y"}},"spec":{)"
      R"("containers":[{"name":"c","resources":{"limits":{"cpu":"1"}}}]}})");
  std::vector<std::string> unknown;
  EXPECT_TRUE(Conform(Of("pods"), pod, &unknown)->SameAs(pod));
  EXPECT_TRUE(unknown.empty());
}

TEST(Conform, ReportsAndDropsUnknownFields) {
  std::vector<std::string> unknown;
  EXPECT_EQ(Conformed(R"({"metadata":{"name":"a","nme":"b"},"spec":{"foo":1,"containers":[{)"
                      R"("name":"c"},{"name":"d","imag":"x"}]},"bar":{}})",
                      &unknown),
            R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c"},{"name":"d"}]}})");
  EXPECT_EQ(unknown, (std::vector<std::string>{"metadata.nme", "spec.foo",
                                               "spec.containers[1].imag", "bar"}));
  EXPECT_EQ(StrictDecodingError(Of("pods"), unknown, {"spec.x"}).message(),
            "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown "
            "field \"metadata.nme\", unknown field "
            "\"spec.foo\", unknown field \"spec.containers[1].imag\", unknown field \"bar\", "
            "duplicate field \"spec.x\"");
  EXPECT_TRUE(StrictDecodingError(Of("pods"), {}, {}).ok());
}

TEST(Conform, DropsWhatGoOmits) {
  EXPECT_EQ(Conformed(R"({"metadata":{"labels":{},"name":"a","creationTimestamp":null},"spec":{)"
                      R"("restartPolicy":"","hostNetwork":false,)"
                      R"("containers":[{"name":"c","resources":{},"command":[],)"
                      R"("securityContext":{}}],"terminationGracePeriodSeconds":0,)"
                      R"("nodeSelector":null}})"),
            R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{},)"
            R"("securityContext":{}}],"terminationGracePeriodSeconds":0}})");
  EXPECT_EQ(Conformed(R"({"data":{"a":null,"b":"x"}})", nullptr, "configmaps"),
            R"({"data":{)"
            R"("a":"","b":"x"}})");
}

TEST(Conform, WritesQuantitiesAndTimesCanonically) {
  EXPECT_EQ(Conformed(R"({"metadata":{"creationTimestamp":"2026-01-02T05:04:05.5+02:00"},)"
                      R"("spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":0.5,)"
                      R"("memory":"1024Mi"}}}]}})"),
            R"({"metadata":{"creationTimestamp":"2026-01-02T03:04:05Z"},"spec":{"containers":[{)"
            R"("name":"c","resources":{"limits":{"cpu":"500m","memory":"1Gi"}}}]}})");
}

TEST(Conform, RefusesWrongTypesInGosWords) {
  const std::string prefix = "Pod in version \"v1\" cannot be handled as a Pod: ";
  EXPECT_EQ(Conformed(R"({"spec":{"containers":"x"}})"),
            prefix +
                "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of "
                "type []v1.Container");
  EXPECT_EQ(Conformed(R"({"spec":{"containers":[{"env":[{"name":"a","value":1}]}]}})"),
            prefix +
                "json: cannot unmarshal number into Go struct field "
                "EnvVar.spec.containers.env.value of type string");
  EXPECT_EQ(Conformed(R"({"metadata":{"labels":{"a":true}}})"),
            prefix +
                "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of "
                "type string");
  EXPECT_EQ(Conformed(R"({"spec":{"priority":1.5}})"),
            prefix +
                "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of "
                "type int32");
  EXPECT_EQ(Conformed(R"({"spec":{"priority":3000000000}})"),
            prefix +
                "json: cannot unmarshal number 3000000000 into Go struct field "
                "PodSpec.spec.priority of type int32");
  EXPECT_EQ(
      Conformed(R"({"spec":[)"
                R"(]})"),
      prefix + "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec");
  EXPECT_EQ(Conformed("[]"), prefix + "expected a JSON object, found array");
  EXPECT_NE(Conformed(R"({"spec":{"containers":[{"name":"c","resources":{"limits":{)"
                      R"("cpu":"much"}}}]}})")
                .find("quantities must match"),
            std::string::npos);
  EXPECT_NE(Conformed(R"({"data":{)"
                      R"("k":"!!"}})",
                      nullptr, "secrets")
                .find("illegal base64"),
            std::string::npos);
  EXPECT_NE(Conformed(R"({"metadata":{)"
                      R"("creationTimestamp":"soon"}})")
                .find("parsing time \"soon\""),
            std::string::npos);
}

TEST(Conform, WritesBytesAsGoWouldAgain) {
  const std::string sent = R"({"data":{"a":"aGV=","b":"aG\nU="}})";
  EXPECT_EQ(Conformed(sent, nullptr, "secrets"), R"({"data":{"a":"aGU=","b":"aGU="}})");
}

TEST(Conform, LimitsWhatItReports) {
  std::string text = "{";
  for (size_t i = 0; i < 2 * kMaxReportedFields; ++i)
    text += (i == 0 ? "\"u" : ",\"u") + std::to_string(i) + "\":1";
  std::vector<std::string> unknown;
  EXPECT_EQ(Conformed(text + "}", &unknown), "{}");
  EXPECT_EQ(unknown.size(), kMaxReportedFields);
}

TEST(UnsupportedFields, ListsWhatAsksForSomething) {
  Schema text;
  text.type = Type::kString;
  Schema flag;
  flag.type = Type::kBoolean;
  Schema spec;
  spec.type = Type::kObject;
  const auto add = [](Schema& schema, const char* name, const Schema& type,
                      Field::Support support) {
    Field field;
    field.name = name;
    field.schema = &type;
    field.support = support;
    schema.index.emplace(name, schema.fields.size());
    schema.fields.push_back(std::move(field));
  };
  add(spec, "soon", text, Field::Support::kNotYet);
  add(spec, "fine", text, Field::Support::kActedOn);
  add(spec, "hostUsers", flag, Field::Support::kRestrictsNotYet);
  add(spec, "strict", flag, Field::Support::kRestrictsNotYet);
  Schema list;
  list.type = Type::kArray;
  list.items = &spec;
  Schema root;
  root.type = Type::kObject;
  add(root, "items", list, Field::Support::kActedOn);
  const auto found = FindUnsupported(
      root, *json::Parse(R"({"items":[{"soon":"","fine":"x","strict":false,"hostUsers":true},{)"
                         R"("soon":"x","hostUsers":false,"strict":true}]})"));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].ToString(), "items[1].soon is not acted on yet");
  EXPECT_FALSE(found[0].restricts);
  EXPECT_EQ(found[1].path, "items[1].hostUsers");
  EXPECT_EQ(found[1].ToString(),
            "items[1].hostUsers is not acted on yet; a pod fails rather than run without it");
  EXPECT_TRUE(found[2].restricts);
}

TEST(UnsupportedFields, SaysNothingOfWhatTheNodeFollows) {
  const Schema& pod = *Registry::BuiltIn().Find("", "v1", "pods")->schema;
  const char* spec = R"({"spec":{"os":{"name":"linux"},"dnsConfig":{"searches":["a"]}}})";
  EXPECT_TRUE(FindUnsupported(pod, *json::Parse(spec)).empty());
}

// A field may be acted on for some of its values; others may ask for less than there is anyway.
TEST(UnsupportedFields, ListsWhatTheValueAsksFor) {
  const Schema& pod = *Registry::BuiltIn().Find("", "v1", "pods")->schema;
  const auto find = [&](const char* security) {
    std::string text;
    const std::string spec = fmt::format(R"({{"spec":{{"securityContext":{}}}}})", security);
    for (const UnsupportedField& field : FindUnsupported(pod, *json::Parse(spec)))
      text += field.ToString();
    return text;
  };
  EXPECT_EQ(find(R"({"seccompProfile":{"type":"RuntimeDefault"}})"), "");
  EXPECT_EQ(
      find(R"({"seccompProfile":{"type":"Unconfined"}})"),
      "spec.securityContext.seccompProfile.type: Unconfined is not acted on yet; a pod runs as "
      "if it was not set");
  EXPECT_EQ(find(R"({"seccompProfile":{"type":"Localhost","localhostProfile":"x"}})"),
            "spec.securityContext.seccompProfile.type: Localhost is not acted on yet; a pod fails "
            "rather than run without it");
  const auto add = [&](const char* names) {
    const std::string spec = fmt::format(
        R"({{"spec":{{"containers":[{{"securityContext":{{"capabilities":{{"add":{}}}}}}}]}}}})",
        names);
    const auto found = FindUnsupported(pod, *json::Parse(spec));
    return found.empty() ? "" : found.at(0).ToString();
  };
  EXPECT_EQ(add("[]"), "");
  EXPECT_EQ(add(R"(["NET_BIND_SERVICE","IPC_LOCK"])"), "");
  EXPECT_EQ(
      add(R"(["NET_BIND_SERVICE","SYS_ADMIN","SYS_TIME"])"),
      "spec.containers[0].securityContext.capabilities.add: SYS_ADMIN, SYS_TIME are not acted "
      "on yet; a pod runs as if it was not set");
}

}  // namespace
}  // namespace muster::schema
