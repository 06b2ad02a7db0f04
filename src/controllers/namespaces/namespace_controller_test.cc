#include "controllers/namespaces/namespace_controller.h"

#include <fmt/core.h>

#include "controllers/controller_test_base.h"
#include "controllers/namespaces/namespace_furniture.h"
#include "schema/conditions.h"

namespace muster::controllers {
namespace {

constexpr char kDying[] = R"(
apiVersion: v1
kind: Namespace
metadata: {name: d, uid: n1, deletionTimestamp: '2026-01-01T00:00:00Z'}
spec: {finalizers: [kubernetes]}
status: {phase: Terminating})";

class NamespaceTest : public ControllerTest {};

TEST_F(NamespaceTest, EmptiesThenFinalizes) {
  Put(kPods, "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: d}}");
  Put(kPods, "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: other}}");
  Put(kConfigMaps, "{metadata: {name: c, namespace: d}}");
  Put(kNamespaces, kDying);
  Start(std::make_unique<NamespaceController>(discovery_));
  Settle();
  EXPECT_TRUE(Get(kPods, "d", "a").IsNull());
  EXPECT_TRUE(Get(kConfigMaps, "d", "c").IsNull());
  EXPECT_FALSE(Get(kPods, "other", "a").IsNull());
  EXPECT_TRUE(Get(kNamespaces, "", "d").IsNull());
  EXPECT_EQ(Requests("PUT /api/v1/namespaces/d/finalize"), 1u);
}

TEST_F(NamespaceTest, EventsGoAsACollectionAndNobodyWatchesThem) {
  for (const char* ns : {"d", "other"}) {
    Put(kEvents, fmt::format("{{metadata: {{name: a, namespace: {}}}}}", ns));
  }
  Put(kNamespaces, kDying);
  Start(std::make_unique<NamespaceController>(discovery_));
  Settle();
  EXPECT_TRUE(Get(kEvents, "d", "a").IsNull());
  EXPECT_FALSE(Get(kEvents, "other", "a").IsNull());
  EXPECT_TRUE(Get(kNamespaces, "", "d").IsNull());
  EXPECT_EQ(Requests("DELETE /api/v1/namespaces/d/events"), 1u);
  EXPECT_EQ(Requests("GET /api/v1/events"), 0u);
}

TEST_F(NamespaceTest, WaitsForWhatHasAFinalizerAndSaysSo) {
  Put(kPods, "{metadata: {name: a, namespace: d, finalizers: [x/y]}}");
  Put(kPods, "{metadata: {name: b, namespace: d, finalizers: [x/y, z]}}");
  Put(kConfigMaps, "{metadata: {name: c, namespace: d}}");
  Put(kNamespaces, kDying);
  Start(std::make_unique<NamespaceController>(discovery_));
  const auto says = [&](std::string_view type) {
    const json::Value ns = Get(kNamespaces, "", "d");
    const json::Value& said = schema::FindCondition(ns["status"]["conditions"], type);
    return fmt::format("{} {}: {}", said["status"].AsString(), said["reason"].AsString(),
                       said["message"].AsString());
  };
  loop_.RunFor(minutes(1));
  EXPECT_TRUE(Get(kPods, "d", "a")["metadata"].Has("deletionTimestamp"));
  EXPECT_EQ(says("NamespaceContentRemaining"),
            "True SomeResourcesRemain: Some resources are remaining: pods. has 2 resource "
            "instances");
  EXPECT_EQ(says("NamespaceFinalizersRemaining"),
            "True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: "
            "x/y in 2 resource instances, z in 1 resource instances");
  EXPECT_EQ(says("NamespaceDeletionContentFailure"),
            "False ContentDeleted: All content successfully deleted, may be waiting on "
            "finalization");
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  api_.Remove(kPods, "d", "b");
  loop_.RunFor(minutes(1));
  EXPECT_EQ(says("NamespaceContentRemaining"),
            "True SomeResourcesRemain: Some resources are remaining: pods. has 1 resource "
            "instances");
  EXPECT_EQ(Requests("PUT /api/v1/namespaces/d/status"), 2u);
  api_.Remove(kPods, "d", "a");
  Settle();
  EXPECT_TRUE(Get(kNamespaces, "", "d").IsNull());
}

TEST_F(NamespaceTest, SaysWhatTheServerDoesNotDelete) {
  bool refuses = true;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (!refuses || request.method != "DELETE" ||
        !request.target.starts_with("/api/v1/namespaces/d/configmaps/")) {
      return true;
    }
    client::FakeApi::SendError(*writer, 403, "Forbidden", "webhook x denied the request");
    return false;
  };
  Put(kConfigMaps, "{metadata: {name: c, namespace: d}}");
  Put(kNamespaces, kDying);
  Start(std::make_unique<NamespaceController>(discovery_));
  loop_.RunFor(minutes(1));
  const json::Value ns = Get(kNamespaces, "", "d");
  const json::Value& failure =
      schema::FindCondition(ns["status"]["conditions"], "NamespaceDeletionContentFailure");
  EXPECT_EQ(failure["status"].AsString(), "True");
  EXPECT_EQ(failure["message"].AsString(),
            "Failed to delete all resource types, 1 remaining: webhook x denied the request");
  refuses = false;
  loop_.RunFor(minutes(10));
  EXPECT_TRUE(Get(kNamespaces, "", "d").IsNull());
}

TEST_F(NamespaceTest, TrustsTheServerMoreThanItsInformers) {
  // The pod watch is dead: the informer says that there is nothing.
  bool blind = true;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (!blind || !request.target.starts_with("/api/v1/pods?")) return true;
    client::FakeApi::SendError(*writer, 503, "ServiceUnavailable", "away");
    return false;
  };
  Put(kPods, "{metadata: {name: a, namespace: d}}");
  Put(kNamespaces, kDying);
  Start(std::make_unique<NamespaceController>(discovery_));
  loop_.RunFor(seconds(10));
  EXPECT_FALSE(Get(kNamespaces, "", "d").IsNull());
  blind = false;
  loop_.RunFor(minutes(1));
  EXPECT_TRUE(Get(kNamespaces, "", "d").IsNull());
}

TEST_F(NamespaceTest, LivingNamespacesAreFurnished) {
  Start(std::make_unique<NamespaceFurnitureController>("PEM"));
  Put(kNamespaces, "{metadata: {name: d}, spec: {finalizers: [kubernetes]}}");
  Settle();
  EXPECT_FALSE(Get(kServiceAccounts, "d", "default").IsNull());
  EXPECT_EQ(Get(kConfigMaps, "d", "kube-root-ca.crt")["data"]["ca.crt"].AsString(), "PEM");
  api_.Remove(kServiceAccounts, "d", "default");
  Settle();
  EXPECT_FALSE(Get(kServiceAccounts, "d", "default").IsNull());
  Put(kConfigMaps, "{metadata: {name: kube-root-ca.crt, namespace: d}, data: {ca.crt: forged}}");
  Settle();
  EXPECT_EQ(Get(kConfigMaps, "d", "kube-root-ca.crt")["data"]["ca.crt"].AsString(), "PEM");
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(NamespaceTest, DyingNamespacesAreNotFurnished) {
  Put(kNamespaces, kDying);
  Start(std::make_unique<NamespaceFurnitureController>("PEM"));
  EXPECT_EQ(api_.Count(kServiceAccounts), 0u);
}

}  // namespace
}  // namespace muster::controllers
