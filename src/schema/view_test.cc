#include "schema/view.h"

#include <gtest/gtest.h>

#include "schema/apiextensions_v1.h"
#include "schema/core_v1.h"
#include "schema/kubeflow_v1.h"
#include "schema/volcano_v1beta1.h"

namespace muster::schema {
namespace {

using json::List;
using json::Obj;

json::Value SamplePod() {
  return Obj(
      {{"apiVersion", "v1"},
       {"kind", "Pod"},
       {"metadata", Obj({{"name", "web"},
                         {"namespace", "default"},
                         {"labels", Obj({{"a", "1"}, {"b", "2"}})}})},
       {"spec", Obj({{"nodeName", "n1"},
                     {"hostNetwork", false},
                     {"terminationGracePeriodSeconds", 0},
                     {"volumes", List({Obj({{"name", "v"}, {"configMap", Obj({{"name", "c"}})}})})},
                     {"containers",
                      List({Obj({{"name", "x"},
                                 {"command", List({"a", "b"})},
                                 {"env", List({Obj({{"name", "K"}, {"value", "V"}})})},
                                 {"resources", Obj({{"limits", Obj({{"cpu", "2"}})}})}})})}})},
       {"status", Obj({{"podIP", "10.0.0.1"}, {"podIPs", List({Obj({{"ip", "10.0.0.1"}})})}})}});
}

TEST(ViewTest, ReadsScalarsMessagesAndLists) {
  const json::Value value = SamplePod();
  const core_v1::Pod pod(value);
  EXPECT_EQ(pod.kind(), "Pod");
  EXPECT_EQ(pod.metadata().name(), "web");
  EXPECT_EQ(pod.metadata().namespace_(), "default");
  EXPECT_EQ(pod.spec().node_name(), "n1");
  EXPECT_EQ(pod.status().pod_ip(), "10.0.0.1");
  EXPECT_EQ(pod.status().pod_ips()[0].ip(), "10.0.0.1");
  int containers = 0;
  for (const core_v1::Container container : pod.spec().containers()) {
    ++containers;
    EXPECT_EQ(container.name(), "x");
    EXPECT_EQ(container.command()[1], "b");
    EXPECT_EQ(container.resources().limits().Get("cpu").AsString(), "2");
    EXPECT_EQ(container.env()[0].value(), "V");
  }
  EXPECT_EQ(containers, 1);
  EXPECT_EQ(&pod.value(), &value);
}

TEST(ViewTest, TellsAbsentFromZero) {
  const json::Value value = SamplePod();
  const core_v1::PodSpec spec = core_v1::Pod(value).spec();
  EXPECT_TRUE(spec.has_termination_grace_period_seconds());
  EXPECT_EQ(spec.termination_grace_period_seconds(), 0);
  EXPECT_FALSE(spec.has_active_deadline_seconds());
  EXPECT_EQ(spec.active_deadline_seconds(), 0);
  EXPECT_TRUE(spec.has_host_network());
  EXPECT_FALSE(spec.affinity());
  EXPECT_EQ(spec.affinity()
                .node_affinity()
                .required_during_scheduling_ignored_during_execution()
                .node_selector_terms()
                .size(),
            0u);
}

TEST(ViewTest, EmbeddedStructsAreReadThroughTheParent) {
  const json::Value value = SamplePod();
  const core_v1::Volume volume = core_v1::Pod(value).spec().volumes()[0];
  EXPECT_EQ(volume.name(), "v");
  EXPECT_TRUE(volume.has_config_map());
  EXPECT_EQ(volume.config_map().name(), "c");
  EXPECT_FALSE(volume.has_secret());
}

TEST(ViewTest, MapsAreWalkedInOrderAndLookedUp) {
  const json::Value value = SamplePod();
  const Map<std::string_view> labels = core_v1::Pod(value).metadata().labels();
  std::string walked;
  for (const auto& [key, label] : labels)
    walked += std::string(key) + "=" + std::string(label) + ",";
  EXPECT_EQ(walked, "a=1,b=2,");
  EXPECT_EQ(labels.Get("b"), "2");
  EXPECT_EQ(labels.Get("c"), "");
  EXPECT_EQ(labels.Get("c", "none"), "none");
  EXPECT_FALSE(labels.Has("c"));
}

TEST(ViewTest, NullAndForeignTypesReadAsNothing) {
  const json::Value null;
  const core_v1::Pod pod(null);
  EXPECT_FALSE(pod);
  EXPECT_EQ(pod.metadata().name(), "");
  EXPECT_TRUE(pod.spec().containers().empty());
  EXPECT_EQ(pod.spec().containers()[5].name(), "");
  const json::Value odd = Obj({{"spec", List({1})}});
  EXPECT_EQ(core_v1::Pod(odd).spec().node_name(), "");
}

TEST(ViewTest, KindsKnowTheirNames) {
  EXPECT_EQ(kubeflow_v1::PyTorchJob::kApiVersion, "kubeflow.org/v1");
  EXPECT_EQ(kubeflow_v1::PyTorchJob::kPlural, "pytorchjobs");
  EXPECT_EQ(core_v1::Pod::kApiVersion, "v1");
  EXPECT_EQ(volcano_v1beta1::PodGroup::kKind, "PodGroup");
}

TEST(ViewTest, MapsOfMessagesAndNamesThatAreNoIdentifiers) {
  const json::Value value =
      Obj({{"spec", Obj({{"pytorchReplicaSpecs", Obj({{"Worker", Obj({{"replicas", 2}})}})},
                         {"nprocPerNode", "auto"}})}});
  const kubeflow_v1::PyTorchJob job(value);
  EXPECT_EQ(job.spec().pytorch_replica_specs().Get("Worker").replicas(), 2);
  EXPECT_EQ(job.spec().nproc_per_node(), "auto");
  const json::Value props =
      Obj({{"x-kubernetes-int-or-string", true}, {"$ref", "r"}, {"default", 3}});
  EXPECT_TRUE(apiextensions_v1::JSONSchemaProps(props).x_kubernetes_int_or_string());
  EXPECT_EQ(apiextensions_v1::JSONSchemaProps(props).ref(), "r");
  EXPECT_EQ(apiextensions_v1::JSONSchemaProps(props).default_().AsInt(), 3);
}

}  // namespace
}  // namespace muster::schema
