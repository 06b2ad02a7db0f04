#include "schema/own_crds.h"

#include <functional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "json/parse.h"
#include "json/write.h"
#include "schema/conform.h"
#include "schema/crd.h"
#include "schema/defaulting.h"
#include "schema/registry.h"
#include "schema/unsupported_fields.h"
#include "schema/validation.h"

namespace muster::schema {
namespace {

json::Value Crd(std::string_view name) {
  for (const json::Value& crd : OwnCrds())
    if (crd["metadata"]["name"].AsString() == name) return crd;
  ADD_FAILURE() << "no CRD " << name;
  return nullptr;
}

const json::Value& Root(const json::Value& crd) {
  return crd["spec"]["versions"].At(0)["schema"]["openAPIV3Schema"];
}

// Calls `visit` with every schema of a structural schema and its path.
void Walk(const json::Value& schema, const std::string& path,
          const std::function<void(const json::Value&, const std::string&)>& visit) {
  visit(schema, path);
  for (const auto& [name, property] : schema["properties"].members())
    Walk(property, path + "." + name, visit);
  if (schema.Has("items")) Walk(schema["items"], path + "[]", visit);
  if (schema.Has("additionalProperties")) Walk(schema["additionalProperties"], path + "{}", visit);
}

TEST(OwnCrdsTest, DescribeTheTrainingOperatorsPyTorchJob) {
  const json::Value crd = Crd("pytorchjobs.kubeflow.org");
  EXPECT_EQ(crd["apiVersion"].AsString(), "apiextensions.k8s.io/v1");
  EXPECT_EQ(crd["spec"]["scope"].AsString(), "Namespaced");
  EXPECT_EQ(crd["spec"]["names"]["singular"].AsString(), "pytorchjob");
  const json::Value& version = crd["spec"]["versions"].At(0);
  EXPECT_EQ(version["name"].AsString(), "v1");
  EXPECT_EQ(version["subresources"]["scale"]["specReplicasPath"].AsString(),
            ".spec.pytorchReplicaSpecs.Worker.replicas");
  EXPECT_TRUE(version["subresources"].Has("status"));
  EXPECT_EQ(version["additionalPrinterColumns"].At(0)["name"].AsString(), "State");
  EXPECT_EQ(version["additionalPrinterColumns"].At(1)["name"].AsString(), "Age");
  const json::Value& spec = Root(crd)["properties"]["spec"];
  for (const char* field : {"runPolicy", "elasticPolicy", "pytorchReplicaSpecs", "nprocPerNode"})
    EXPECT_TRUE(spec["properties"].Has(field)) << field;
  EXPECT_EQ(spec["required"], json::Strings({"pytorchReplicaSpecs"}));
}

// The API server stores them unseen.
TEST(OwnCrdsTest, AreValid) {
  const Kind& kind =
      *Registry::BuiltIn().Find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
  for (const json::Value& crd : OwnCrds()) {
    SCOPED_TRACE(crd["metadata"]["name"].AsString());
    const Result<json::Value> object = Conform(kind, crd, nullptr);
    ASSERT_TRUE(object.has_value()) << object.error().ToString();
    const json::Value filled = ApplyDefaults(kind, *object);
    for (const StatusCause& cause : Validate(kind, filled))
      ADD_FAILURE() << cause.field << ": " << cause.message;
    EXPECT_FALSE(Validate(kind, filled.SetPath({"spec", "scope"}, "Nowhere")).empty());
    EXPECT_TRUE(KindsFromCrd(filled).has_value());
  }
}

// Nothing converts between them, so what one version keeps the other must not drop.
TEST(OwnCrdsTest, BothMpiJobsHaveTheSameFields) {
  const json::Value versions = Crd("mpijobs.kubeflow.org")["spec"]["versions"];
  ASSERT_EQ(versions.size(), 2u);
  const auto fields = [&versions](size_t i) {
    std::set<std::string> names;
    const json::Value& spec =
        versions.At(i).Path({"schema", "openAPIV3Schema", "properties", "spec", "properties"});
    for (const json::Member& field : spec.members()) names.insert(field.first);
    return names;
  };
  EXPECT_EQ(versions.At(0)["name"].AsString(), "v1");
  EXPECT_TRUE(versions.At(0)["storage"].AsBool());
  EXPECT_EQ(versions.At(1)["name"].AsString(), "v2beta1");
  EXPECT_FALSE(versions.At(1)["storage"].AsBool());
  EXPECT_TRUE(fields(1).contains("mpiImplementation"));
  EXPECT_EQ(fields(0), fields(1));
}

TEST(OwnCrdsTest, DescribeVolcanosPodGroup) {
  const json::Value crd = Crd("podgroups.scheduling.volcano.sh");
  EXPECT_EQ(crd["spec"]["group"].AsString(), "scheduling.volcano.sh");
  EXPECT_EQ(crd["spec"]["names"]["shortNames"], json::Strings({"pg", "podgroup-v1beta1"}));
  const json::Value& resources =
      Root(crd).Path({"properties", "spec", "properties", "minResources"});
  EXPECT_TRUE(resources["additionalProperties"]["x-kubernetes-int-or-string"].AsBool());
}

TEST(OwnCrdsTest, DescribeThePodGroupOfSchedulerPlugins) {
  const json::Value crd = Crd("podgroups.scheduling.x-k8s.io");
  EXPECT_EQ(crd["spec"]["names"]["shortNames"], json::Strings({"pg", "pgs"}));
  EXPECT_EQ(crd["spec"]["versions"].At(0)["name"].AsString(), "v1alpha1");
  const json::Value& properties = Root(crd)["properties"];
  for (const char* field : {"minMember", "minResources", "scheduleTimeoutSeconds"})
    EXPECT_TRUE(properties["spec"]["properties"].Has(field)) << field;
  for (const char* field : {"phase", "occupiedBy", "scheduleStartTime"})
    EXPECT_TRUE(properties["status"]["properties"].Has(field)) << field;
}

TEST(OwnCrdsTest, SchemasAreStructuralAndComplete) {
  for (const json::Value& crd : OwnCrds()) {
    Walk(Root(crd), "", [](const json::Value& schema, const std::string& path) {
      EXPECT_FALSE(schema.Has("$ref")) << path;
      EXPECT_TRUE(schema["type"].IsString() || schema["x-kubernetes-int-or-string"].AsBool())
          << path;
      // Upstream refuses a map-like list whose keys are neither required nor defaulted.
      for (const json::Value& key : schema["x-kubernetes-list-map-keys"].items()) {
        const json::Value& items = schema["items"];
        bool required = false;
        for (const json::Value& name : items["required"].items()) required |= name == key;
        EXPECT_TRUE(required || items["properties"][key.AsString()].Has("default"))
            << path << " " << key.AsString();
      }
    });
  }
}

TEST(OwnCrdsTest, TemplatesKeepLabelsAndGetNoPodDefaults) {
  const json::Value crd = Crd("pytorchjobs.kubeflow.org");
  const json::Value& pod =
      Root(crd).Path({"properties", "spec", "properties", "pytorchReplicaSpecs",
                      "additionalProperties", "properties", "template", "properties"});
  EXPECT_TRUE(pod["metadata"]["properties"].Has("labels"));
  EXPECT_TRUE(pod["spec"]["properties"].Has("containers"));
  EXPECT_FALSE(pod["spec"]["properties"]["restartPolicy"].Has("default"));
}

TEST(OwnCrdsTest, KindsMadeFromThemKnowWhatIsNotActedOn) {
  const std::vector<KindPtr> kinds = KindsFromCrd(Crd("pytorchjobs.kubeflow.org")).value();
  ASSERT_EQ(kinds.size(), 1u);
  const json::Value worker =
      json::Obj({{"template", json::Obj({{"spec", json::Obj({{"setHostnameAsFQDN", true}})}})}});
  const json::Value job = json::Obj(
      {{"spec",
        json::Obj({{"runPolicy", json::Obj({{"schedulingPolicy", json::Obj({{"queue", "a"}})},
                                            {"suspend", true}})},
                   {"pytorchReplicaSpecs", json::Obj({{"Worker", worker}})}})}});
  std::vector<std::string> paths;
  for (const UnsupportedField& field : FindUnsupported(*kinds[0]->schema, job))
    paths.push_back(field.path);
  EXPECT_EQ(paths, (std::vector<std::string>{
                       "spec.runPolicy.schedulingPolicy.queue",
                       "spec.pytorchReplicaSpecs.Worker.template.spec.setHostnameAsFQDN"}));
}

// The template of a pod is most of each of them; three kinds of Ray alone have seven.
TEST(OwnCrdsTest, ShareEqualPartsAndAreReadOnce) {
  const auto pod = [](const json::Value& crd, std::initializer_list<std::string_view> path) {
    return Root(crd)["properties"]["spec"]["properties"].Path(path)["properties"]["spec"];
  };
  const json::Value ray = Crd("rayclusters.ray.io");
  const json::Value a = pod(ray, {"headGroupSpec", "properties", "template"});
  const json::Value b =
      pod(Crd("pytorchjobs.kubeflow.org"),
          {"pytorchReplicaSpecs", "additionalProperties", "properties", "template"});
  ASSERT_FALSE(a["properties"].empty());
  EXPECT_TRUE(a["properties"].SameAs(b["properties"]));

  const auto containers = [](const json::Value& crd, const char* group) {
    const KindPtr kind = KindsFromCrd(crd)->at(0);
    const Schema* at = kind->schema.get();
    for (const char* name : {"spec", group, "template", "spec", "containers"}) {
      if (at->type == Type::kArray) at = at->items;
      at = at->Find(name)->schema;
    }
    return at->items;
  };
  EXPECT_EQ(containers(ray, "headGroupSpec"), containers(ray, "workerGroupSpecs"));
  // As it comes from the store, as text.
  const json::Value text = *json::Parse(json::Write(ray));
  EXPECT_EQ(containers(text, "headGroupSpec"), containers(ray, "headGroupSpec"));
}

TEST(OwnCrdsTest, FitIntoOneRequest) {
  constexpr size_t kBodyLimit = 3 * 1024 * 1024;  // upstream's API server takes no larger body
  for (const json::Value& crd : OwnCrds()) EXPECT_LT(json::Write(crd).size(), kBodyLimit);
}

}  // namespace
}  // namespace muster::schema
