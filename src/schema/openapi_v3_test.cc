#include "schema/openapi_v3.h"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "json/write.h"
#include "schema/own_crds.h"
#include "schema/registry.h"

namespace muster::schema {
namespace {

json::Value CoreDocument() {
  std::vector<OpenApiKind> kinds;
  for (const KindPtr& kind : Registry::BuiltIn().kinds()) {
    if (!kind->group.empty()) continue;
    OpenApiKind served{kind, {}};
    if (kind->plural == "pods") {
      served.subresources = {{"binding", {"post"}, "", "v1", "Binding"},
                             {"log", {"get"}, "", "", ""}};
    }
    kinds.push_back(std::move(served));
  }
  return OpenApiV3("", "v1", kinds);
}

// A custom kind as the API server has it: from a CRD, its schema as the author wrote it.
KindPtr CustomKind(const Kind& own) {
  auto schema = std::make_shared<Schema>(*own.schema);
  schema->source = CrdOf(own)["spec"]["versions"].At(0)["schema"]["openAPIV3Schema"];
  auto kind = std::make_shared<Kind>();
  kind->group = own.group;
  kind->version = own.version;
  kind->kind = own.kind;
  kind->list_kind = own.list_kind;
  kind->plural = own.plural;
  kind->custom = true;
  kind->status_subresource = true;
  if (own.scale != nullptr) kind->scale = std::make_unique<ScaleSubresource>(*own.scale);
  kind->schema = std::move(schema);
  return kind;
}

json::Value TrainingDocument() {
  const auto& kinds = Registry::BuiltIn().own_custom_kinds();
  const Kind& job =
      **std::ranges::find_if(kinds, [](const auto& kind) { return kind->kind == "PyTorchJob"; });
  return OpenApiV3("kubeflow.org", "v1", {{CustomKind(job), {}}});
}

const json::Value& Component(const json::Value& document, std::string_view name) {
  return document["components"]["schemas"][name];
}

bool HasParameter(const json::Value& operation, std::string_view name) {
  for (const json::Value& parameter : operation["parameters"].items())
    if (parameter["name"].AsString() == name && parameter["in"].AsString() == "query") return true;
  return false;
}

void ExpectReferencesResolve(const json::Value& document) {
  std::function<void(const json::Value&)> walk = [&](const json::Value& value) {
    if (value["$ref"].IsString()) {
      const std::string_view target = value["$ref"].AsString();
      constexpr std::string_view kStart = "#/components/schemas/";
      ASSERT_TRUE(target.starts_with(kStart)) << target;
      EXPECT_TRUE(Component(document, target.substr(kStart.size())).IsObject()) << target;
    }
    for (const json::Value& item : value.items()) walk(item);
    // A property may itself be called $ref.
    for (const json::Member& member : value.members()) walk(member.second);
  };
  walk(document);
}

TEST(OpenApiV3Test, PatchTellsKubectlThatFieldsAreValidatedHere) {
  for (const json::Value& document : {CoreDocument(), TrainingDocument()}) {
    for (const auto& [path, item] : document["paths"].members()) {
      if (!item.Has("patch")) continue;
      const json::Value& patch = item["patch"];
      EXPECT_EQ(patch["x-kubernetes-action"].AsString(), "patch") << path;
      EXPECT_TRUE(patch["x-kubernetes-group-version-kind"]["kind"].IsString()) << path;
      for (const char* name : {"fieldValidation", "dryRun", "fieldManager", "force"})
        EXPECT_TRUE(HasParameter(patch, name)) << path << " " << name;
    }
  }
}

TEST(OpenApiV3Test, BuiltInKindsTakeStrategicMergeAndCustomOnesDoNot) {
  const char* const type = "application/strategic-merge-patch+json";
  const json::Value core = CoreDocument();
  EXPECT_TRUE(core.Path({"paths", "/api/v1/namespaces/{namespace}/pods/{name}", "patch",
                         "requestBody", "content"})
                  .Has(type));
  const json::Value training = TrainingDocument();
  const json::Value& content =
      training.Path({"paths", "/apis/kubeflow.org/v1/namespaces/{namespace}/pytorchjobs/{name}",
                     "patch", "requestBody", "content"});
  EXPECT_TRUE(content.Has("application/merge-patch+json"));
  EXPECT_FALSE(content.Has(type));
}

TEST(OpenApiV3Test, ClusterScopedKindsHaveNoNamespaceInTheirPaths) {
  const json::Value paths = CoreDocument()["paths"];
  EXPECT_TRUE(paths.Has("/api/v1/nodes/{name}/status"));
  EXPECT_TRUE(paths.Has("/api/v1/namespaces/{name}"));
  EXPECT_FALSE(paths.Has("/api/v1/namespaces/{namespace}/nodes"));
  EXPECT_TRUE(paths.Has("/api/v1/pods"));
  EXPECT_TRUE(paths["/api/v1/namespaces/{namespace}/pods/{name}/binding"].Has("post"));
}

TEST(OpenApiV3Test, ReferencesResolve) {
  ExpectReferencesResolve(CoreDocument());
  ExpectReferencesResolve(TrainingDocument());
}

TEST(OpenApiV3Test, ComponentsCarryKindsMergeKeysDefaultsAndWords) {
  const json::Value document = CoreDocument();
  const json::Value& pod = Component(document, "io.k8s.api.core.v1.Pod");
  EXPECT_EQ(json::Write(pod["x-kubernetes-group-version-kind"]),
            R"([{"group":"","kind":"Pod","version":"v1"}])");
  const json::Value& properties = Component(document, "io.k8s.api.core.v1.PodSpec")["properties"];
  EXPECT_EQ(properties["containers"]["x-kubernetes-patch-merge-key"].AsString(), "name");
  EXPECT_EQ(properties["containers"]["x-kubernetes-patch-strategy"].AsString(), "merge");
  EXPECT_EQ(properties["containers"]["x-kubernetes-list-type"].AsString(), "map");
  EXPECT_EQ(properties["volumes"]["x-kubernetes-patch-strategy"].AsString(), "merge,retainKeys");
  EXPECT_EQ(properties["restartPolicy"]["default"].AsString(), "Always");
  EXPECT_EQ(properties["restartPolicy"]["enum"], json::Strings({"Always", "OnFailure", "Never"}));
  EXPECT_FALSE(properties["nodeName"]["description"].AsString().empty());
  EXPECT_EQ(
      Component(document, "io.k8s.apimachinery.pkg.util.intstr.IntOrString")["format"].AsString(),
      "int-or-string");
}

TEST(OpenApiV3Test, EveryFieldOfAServedKindHasAWordOfExplanation) {
  const json::Value document = CoreDocument();
  for (const auto& [name, component] : document["components"]["schemas"].members()) {
    EXPECT_FALSE(component["description"].AsString().empty()) << name;
    for (const auto& [field, property] : component["properties"].members())
      EXPECT_FALSE(property["description"].AsString().empty()) << name << "." << field;
  }
}

TEST(OpenApiV3Test, CustomKindsPublishTheirAuthorsSchemaWithMetadata) {
  const json::Value document = TrainingDocument();
  const json::Value& job = Component(document, "org.kubeflow.v1.PyTorchJob");
  EXPECT_EQ(job["x-kubernetes-group-version-kind"].At(0)["kind"].AsString(), "PyTorchJob");
  EXPECT_TRUE(job["properties"]["spec"]["properties"].Has("pytorchReplicaSpecs"));
  EXPECT_TRUE(job["properties"]["metadata"].Has("allOf"));
  EXPECT_TRUE(Component(document, "org.kubeflow.v1.PyTorchJobList")["properties"].Has("items"));
  EXPECT_TRUE(document["paths"].Has(
      "/apis/kubeflow.org/v1/namespaces/{namespace}/pytorchjobs/{name}/scale"));
}

TEST(OpenApiV3Test, PathsOfTheIndex) {
  EXPECT_EQ(OpenApiPath("", "v1"), "api/v1");
  EXPECT_EQ(OpenApiPath("kubeflow.org", "v1"), "apis/kubeflow.org/v1");
}

}  // namespace
}  // namespace muster::schema
