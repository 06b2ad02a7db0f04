#include "schema/registry.h"

#include <chrono>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace muster::schema {
namespace {

TEST(RegistryTest, FindsKindsByPluralAndByKind) {
  const Registry& registry = Registry::BuiltIn();
  const KindPtr pods = registry.Find("", "v1", "pods");
  ASSERT_NE(pods, nullptr);
  EXPECT_EQ(pods->kind, "Pod");
  EXPECT_EQ(pods->list_kind, "PodList");
  EXPECT_EQ(pods->singular, "pod");
  EXPECT_TRUE(pods->namespaced);
  EXPECT_TRUE(pods->status_subresource);
  EXPECT_FALSE(pods->custom);
  EXPECT_EQ(pods->columns.at(1).name, "Ready");
  EXPECT_EQ(pods->selectable_fields.front(), "spec.nodeName");
  EXPECT_EQ(registry.FindKind("discovery.k8s.io", "v1", "EndpointSlice")->plural, "endpointslices");
  EXPECT_EQ(registry.Find("", "v1", "pytorchjobs"), nullptr);
  EXPECT_EQ(registry.Find("apps", "v1", "pods"), nullptr);
}

TEST(RegistryTest, ServesTheKindsOfTheIssue) {
  const Registry& registry = Registry::BuiltIn();
  for (const auto& [group, plural] : std::vector<std::pair<const char*, const char*>>{
           {"", "namespaces"},
           {"", "nodes"},
           {"", "pods"},
           {"", "services"},
           {"", "configmaps"},
           {"", "secrets"},
           {"", "serviceaccounts"},
           {"", "persistentvolumeclaims"},
           {"", "persistentvolumes"},
           {"", "resourcequotas"},
           {"", "limitranges"},
           {"", "events"},
           {"", "endpoints"},
           {"discovery.k8s.io", "endpointslices"},
           {"coordination.k8s.io", "leases"},
           {"scheduling.k8s.io", "priorityclasses"},
           {"apiextensions.k8s.io", "customresourcedefinitions"},
           {"apps", "deployments"},
           {"apps", "replicasets"},
           {"apps", "statefulsets"},
           {"apps", "daemonsets"},
           {"apps", "controllerrevisions"},
           {"batch", "jobs"},
           {"batch", "cronjobs"},
           {"policy", "poddisruptionbudgets"},
           {"storage.k8s.io", "storageclasses"},
           {"storage.k8s.io", "csidrivers"},
           {"storage.k8s.io", "csinodes"},
           {"storage.k8s.io", "csistoragecapacities"},
           {"storage.k8s.io", "volumeattachments"},
           {"storage.k8s.io", "volumeattributesclasses"},
           {"rbac.authorization.k8s.io", "roles"},
           {"rbac.authorization.k8s.io", "rolebindings"},
           {"rbac.authorization.k8s.io", "clusterroles"},
           {"rbac.authorization.k8s.io", "clusterrolebindings"},
           {"authentication.k8s.io", "selfsubjectreviews"},
           {"authentication.k8s.io", "tokenreviews"},
           {"authorization.k8s.io", "localsubjectaccessreviews"},
           {"authorization.k8s.io", "selfsubjectaccessreviews"},
           {"authorization.k8s.io", "selfsubjectrulesreviews"},
           {"authorization.k8s.io", "subjectaccessreviews"},
           {"networking.k8s.io", "ingresses"},
           {"networking.k8s.io", "ingressclasses"},
           {"apiregistration.k8s.io", "apiservices"},
           {"admissionregistration.k8s.io", "mutatingwebhookconfigurations"},
           {"admissionregistration.k8s.io", "validatingwebhookconfigurations"},
           {"networking.k8s.io", "networkpolicies"}}) {
    EXPECT_NE(registry.Find(group, "v1", plural), nullptr) << group << " " << plural;
  }
  for (const char* version : {"v1", "v2"})
    EXPECT_NE(registry.Find("autoscaling", version, "horizontalpodautoscalers"), nullptr);
  for (const char* plural : {"nodes", "pods"}) {
    ASSERT_NE(registry.Find("metrics.k8s.io", "v1beta1", plural), nullptr) << plural;
    EXPECT_TRUE(registry.Find("metrics.k8s.io", "v1beta1", plural)->computed);
  }
  EXPECT_EQ(registry.kinds().size(), 51u);
  ASSERT_EQ(registry.own_custom_kinds().size(), 31u);
}

TEST(RegistryTest, FlattensEmbeddedStructs) {
  const Schema* volume = Registry::BuiltIn().FindSchema("io.k8s.api.core.v1.Volume");
  ASSERT_NE(volume, nullptr);
  EXPECT_EQ(volume->Find("name")->inlined_in, 0);
  ASSERT_NE(volume->Find("configMap"), nullptr);
  EXPECT_EQ(volume->Find("configMap")->inlined_in, 2);
  EXPECT_EQ(volume->Find("volumeSource"), nullptr);
}

TEST(RegistryTest, KnowsPointersMergeKeysAndJsonForms) {
  const Schema* spec = Registry::BuiltIn().FindSchema("io.k8s.api.core.v1.PodSpec");
  EXPECT_TRUE(spec->Find("terminationGracePeriodSeconds")->pointer);
  EXPECT_FALSE(spec->Find("nodeName")->pointer);
  EXPECT_EQ(spec->Find("containers")->patch_merge_key, "name");
  EXPECT_TRUE(spec->Find("volumes")->patch_retain_keys);
  EXPECT_EQ(spec->Find("containers")->list_type, ListType::kMap);
  EXPECT_EQ(spec->Find("overhead")->schema->items->type, Type::kQuantity);
  const Schema* meta =
      Registry::BuiltIn().FindSchema("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
  EXPECT_EQ(meta->Find("creationTimestamp")->schema->type, Type::kTime);
  EXPECT_EQ(meta->Find("finalizers")->list_type, ListType::kSet);
  const Schema* props = Registry::BuiltIn().FindSchema(
      "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");
  ASSERT_NE(props, nullptr);
  EXPECT_EQ(props->Find("properties")->schema->items, props);
  EXPECT_EQ(props->Find("x-kubernetes-int-or-string")->schema->type, Type::kBoolean);
}

TEST(RegistryTest, FindsMessagesThatAreNoKinds) {
  const Registry& registry = Registry::BuiltIn();
  EXPECT_NE(registry.FindMessage("v1", "DeleteOptions"), nullptr);
  EXPECT_NE(registry.FindMessage("policy/v1", "DeleteOptions"), nullptr);
  EXPECT_NE(registry.FindMessage("v1", "Binding"), nullptr);
  EXPECT_NE(registry.FindMessage("autoscaling/v1", "Scale"), nullptr);
  EXPECT_NE(registry.FindMessage("v1", "PodList"), nullptr);
  EXPECT_EQ(registry.FindMessage("v1", "PodSpec"), nullptr);
  EXPECT_EQ(registry.FindMessage("apps/v1", "Pod"), nullptr);
}

}  // namespace
}  // namespace muster::schema
