#include "schema/defaulting.h"

#include <gtest/gtest.h>

#include "json/parse.h"
#include "json/write.h"
#include "schema/conform.h"
#include "schema/registry.h"

namespace muster::schema {
namespace {

json::Value J(std::string_view text) { return *json::Parse(text); }

json::Value Defaulted(std::string_view group, std::string_view plural, std::string_view text) {
  const KindPtr kind = Registry::BuiltIn().Find(group, "v1", plural);
  return ApplyDefaults(*kind, *Conform(*kind, J(text), nullptr));
}

TEST(Defaults, OfAPod) {
  EXPECT_EQ(Defaulted("", "pods",
                      R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c",)"
                      R"("image":"nginx","ports":[{"containerPort":80}]}]}})"),
            J(R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"nginx",)"
              R"("ports":[{"containerPort":80,"protocol":"TCP"}],
                "resources":{},"terminationMessagePath":"/dev/termination-log",)"
              R"("terminationMessagePolicy":"File","imagePullPolicy":"Always"}],
                "restartPolicy":"Always","terminationGracePeriodSeconds":30,)"
              R"("dnsPolicy":"ClusterFirst","securityContext":{},
                "schedulerName":"default-scheduler","enableServiceLinks":true}})"));
}

TEST(Defaults, KeepWhatIsSet) {
  const json::Value pod =
      Defaulted("", "pods",
                R"({"spec":{"terminationGracePeriodSeconds":0,"restartPolicy":"Never",)"
                R"("schedulerName":"volcano","enableServiceLinks":false,"serviceAccount":"sa",
          "containers":[{"name":"c","image":"nginx@sha256:abc",)"
                R"("terminationMessagePolicy":"FallbackToLogsOnError"}]}})");
  EXPECT_EQ(pod["spec"]["terminationGracePeriodSeconds"].AsInt(-1), 0);
  EXPECT_EQ(pod["spec"]["restartPolicy"].AsString(), "Never");
  EXPECT_EQ(pod["spec"]["schedulerName"].AsString(), "volcano");
  EXPECT_FALSE(pod["spec"]["enableServiceLinks"].AsBool(true));
  EXPECT_EQ(pod["spec"]["serviceAccountName"].AsString(), "sa");
  EXPECT_EQ(pod["spec"]["containers"].At(0)["imagePullPolicy"].AsString(), "IfNotPresent");
  const KindPtr kind = Registry::BuiltIn().Find("", "v1", "pods");
  EXPECT_TRUE(ApplyDefaults(*kind, pod).SameAs(pod)) << "defaulting twice changes nothing";
}

TEST(Defaults, ATemplateLeavesToThePodWhatFollowsFromIt) {
  const std::string spec =
      R"("spec":{"hostNetwork":true,"containers":[{"name":"c","resources":{"limits":{"cpu":"1"}},)"
      R"("ports":[{"containerPort":80}]}]}})";
  const json::Value pod = Defaulted("", "pods", "{" + spec);
  const json::Value deployment =
      Defaulted("apps", "deployments", R"({"spec":{"template":{)" + spec + "}}");
  const json::Value& made = pod["spec"];
  const json::Value& left = deployment["spec"]["template"]["spec"];
  EXPECT_EQ(made["containers"].At(0)["resources"]["requests"]["cpu"].AsString(), "1");
  EXPECT_EQ(made["containers"].At(0)["ports"].At(0)["hostPort"].AsInt(), 80);
  EXPECT_TRUE(made["enableServiceLinks"].AsBool());
  EXPECT_TRUE(left["containers"].At(0)["resources"]["requests"].IsNull());
  EXPECT_TRUE(left["containers"].At(0)["ports"].At(0)["hostPort"].IsNull());
  EXPECT_TRUE(left["enableServiceLinks"].IsNull());
  EXPECT_EQ(left["containers"].At(0)["ports"].At(0)["protocol"].AsString(), "TCP");
}

TEST(Defaults, OnTheHostsNetworkPortsAreTheHosts) {
  const auto port = [](const std::string& port) {
    const json::Value pod = Defaulted("", "pods",
                                      R"({"spec":{"hostNetwork":true,"containers":[)"
                                      R"({"name":"c","ports":[)" +
                                          port + "]}]}}");
    return json::Write(pod["spec"]["containers"].At(0)["ports"].At(0));
  };
  EXPECT_EQ(port(R"({"containerPort":80})"),
            R"({"containerPort":80,"protocol":"TCP","hostPort":80})");
  EXPECT_EQ(port("{}"), R"({"protocol":"TCP"})") << "a zero is no port";
}

TEST(Defaults, PullPolicyFollowsTheTag) {
  const char* rows[][2] = {{"nginx", "Always"},
                           {"nginx:latest", "Always"},
                           {"nginx:1.2", "IfNotPresent"},
                           {"host:5000/nginx", "Always"},
                           {"host:5000/a/b:x", "IfNotPresent"},
                           {"a@sha256:0", "IfNotPresent"}};
  for (const auto& row : rows) {
    const json::Value pod = Defaulted(
        "", "pods",
        json::Write(json::Obj(
            {{"spec",
              json::Obj({{"containers", json::List({json::Obj({{"image", row[0]}})})}})}})));
    EXPECT_EQ(pod["spec"]["containers"].At(0)["imagePullPolicy"].AsString(), row[1]) << row[0];
  }
}

TEST(Defaults, OfContainersVolumesAndProbes) {
  const json::Value pod = Defaulted(
      "", "pods",
      R"({"spec":{"hostNetwork":true,
      "volumes":[{"name":"a"},{"name":"b","configMap":{"name":"x"}},{"name":"c","secret":{)"
      R"("secretName":"x","defaultMode":256}},
                 {"name":"d","projected":{"sources":[{"serviceAccountToken":{"path":"t"}},{)"
      R"("downwardAPI":{"items":[{"path":"p","fieldRef":{"fieldPath":"metadata.name"}}]}}]}},
                 {"name":"e","hostPath":{"path":"/x"}}],
      "initContainers":[{"name":"i","image":"x:1"}],
      "containers":[{"name":"c","ports":[{"containerPort":80}],"resources":{"limits":{"cpu":"1",)"
      R"("memory":"1Gi"},"requests":{"cpu":"500m"}},
        "env":[{"name":"N","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],
        "livenessProbe":{"httpGet":{"port":80}},"lifecycle":{"preStop":{"httpGet":{)"
      R"("port":1}}}}]}})");
  const json::Value& spec = pod["spec"];
  EXPECT_EQ(spec["volumes"],
            J(R"([{"name":"a","emptyDir":{}},{"name":"b","configMap":{)"
              R"("name":"x","defaultMode":420}},{"name":"c","secret":{"secretName":"x",)"
              R"("defaultMode":256}},
      {"name":"d","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"path":"t",)"
              R"("expirationSeconds":3600}},
        {"downwardAPI":{"items":[{"path":"p","fieldRef":{"fieldPath":"metadata.name",)"
              R"("apiVersion":"v1"}}]}}]}},{"name":"e","hostPath":{"path":"/x","type":""}}])"));
  const json::Value& container = spec["containers"].At(0);
  EXPECT_EQ(container["resources"]["requests"], J(R"({"cpu":"500m","memory":"1Gi"})"));
  EXPECT_EQ(container["ports"].At(0), J(R"({"containerPort":80,"protocol":"TCP","hostPort":80})"));
  EXPECT_EQ(container["env"].At(0)["valueFrom"]["fieldRef"]["apiVersion"].AsString(), "v1");
  EXPECT_EQ(container["livenessProbe"],
            J(R"({"httpGet":{"port":80,"path":"/","scheme":"HTTP"},"timeoutSeconds":1,)"
              R"("periodSeconds":10,"successThreshold":1,"failureThreshold":3})"));
  EXPECT_EQ(container["lifecycle"]["preStop"]["httpGet"]["scheme"].AsString(), "HTTP");
  EXPECT_EQ(spec["initContainers"].At(0)["imagePullPolicy"].AsString(), "IfNotPresent");
}

TEST(Defaults, OfAService) {
  EXPECT_EQ(Defaulted("", "services",
                      R"({"spec":{"ports":[{"port":80},{"port":81,)"
                      R"("targetPort":"http","protocol":"UDP"},{"port":82,"targetPort":0}]}})"),
            J(R"({"spec":{"ports":[{"port":80,"protocol":"TCP","targetPort":80},{"port":81,)"
              R"("targetPort":"http","protocol":"UDP"},
                {"port":82,"targetPort":82,"protocol":"TCP"}],"sessionAffinity":"None",)"
              R"("type":"ClusterIP","internalTrafficPolicy":"Cluster"}})"));
  EXPECT_EQ(Defaulted("", "services",
                      R"({"spec":{"type":"NodePort",)"
                      R"("sessionAffinity":"ClientIP"}})"),
            J(R"({"spec":{"type":"NodePort","sessionAffinity":"ClientIP",)"
              R"("sessionAffinityConfig":{"clientIP":{"timeoutSeconds":10800}},
                "externalTrafficPolicy":"Cluster","internalTrafficPolicy":"Cluster"}})"));
  EXPECT_FALSE(Defaulted("", "services",
                         R"({"spec":{"sessionAffinity":"None",)"
                         R"("sessionAffinityConfig":{"clientIP":{"timeoutSeconds":5}}}})")["spec"]
                   .Has("sessionAffinityConfig"));
  EXPECT_FALSE(Defaulted("", "services",
                         R"({"spec":{)"
                         R"("type":"ExternalName"}})")["spec"]
                   .Has("internalTrafficPolicy"));
}

TEST(Defaults, OfSmallKinds) {
  EXPECT_EQ(Defaulted("", "secrets",
                      R"({"data":{"a":"eA=="},"stringData":{"a":"y",)"
                      R"("b":""}})"),
            J(R"({"data":{"a":"eQ==","b":""},"type":"Opaque"})"));
  EXPECT_EQ(Defaulted("", "namespaces", R"({"metadata":{"name":"n"}})"),
            J(R"({"metadata":{"name":"n","labels":{"kubernetes.io/metadata.name":"n"}},"spec":{)"
              R"("finalizers":["kubernetes"]},"status":{"phase":"Active"}})"));
  EXPECT_FALSE(Defaulted("", "namespaces",
                         R"({"metadata":{"name":"n",)"
                         R"("deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{}})")["spec"]
                   .Has("finalizers"));
  EXPECT_EQ(Defaulted("", "persistentvolumeclaims", R"({"spec":{}})"),
            J(R"({"spec":{)"
              R"("volumeMode":"Filesystem"},"status":{"phase":"Pending"}})"));
  EXPECT_EQ(Defaulted("scheduling.k8s.io", "priorityclasses", R"({"value":1})"),
            J(R"({)"
              R"("value":1,"preemptionPolicy":"PreemptLowerPriority"})"));
  EXPECT_EQ(Defaulted("discovery.k8s.io", "endpointslices", R"({"ports":[{"port":1}]})"),
            J(R"({)"
              R"("ports":[{"port":1,"name":"","protocol":"TCP"}]})"));
  EXPECT_EQ(Defaulted("", "nodes", R"({"status":{"capacity":{"cpu":"1"}}})"),
            J(R"({"status":{)"
              R"("capacity":{"cpu":"1"},"allocatable":{"cpu":"1"}}})"));
  EXPECT_EQ(Defaulted("apiextensions.k8s.io", "customresourcedefinitions",
                      R"({"spec":{"names":{)"
                      R"("kind":"Foo","plural":"foos"}}})"),
            J(R"({"spec":{"names":{"kind":"Foo","plural":"foos","singular":"foo",)"
              R"("listKind":"FooList"},"conversion":{"strategy":"None"}}})"));
}

TEST(Defaults, OfAPyTorchJob) {
  Kind kind;
  kind.group = "kubeflow.org";
  kind.kind = "PyTorchJob";
  EXPECT_EQ(ApplyDefaults(kind, J(R"({"spec":{"pytorchReplicaSpecs":{"master":{},"Worker":{)"
                                  R"("replicas":0,"restartPolicy":"Never"}}}})")),
            J(R"({"spec":{"pytorchReplicaSpecs":{"Master":{"replicas":1,)"
              R"("restartPolicy":"OnFailure"},"Worker":{"replicas":0,"restartPolicy":"Never"}},
                "runPolicy":{"cleanPodPolicy":"None","suspend":false},"nprocPerNode":"auto"}})"));
}

TEST(Defaults, OfOtherTrainingJobs) {
  Kind kind;
  kind.group = "kubeflow.org";
  kind.kind = "TFJob";
  EXPECT_EQ(
      ApplyDefaults(kind, J(R"({"spec":{"tfReplicaSpecs":{"ps":{},"WORKER":{"replicas":2}}}})")),
      J(R"({"spec":{"tfReplicaSpecs":{"PS":{"replicas":1,"restartPolicy":"Never"},)"
        R"("Worker":{"replicas":2,"restartPolicy":"Never"}},
                "runPolicy":{"cleanPodPolicy":"None","suspend":false}}})"));
  kind.kind = "MPIJob";
  EXPECT_EQ(
      ApplyDefaults(kind, J(R"({"spec":{"cleanPodPolicy":"All",)"
                            R"("mpiReplicaSpecs":{"launcher":{}}}})")),
      J(R"({"spec":{"cleanPodPolicy":"All","mpiReplicaSpecs":{"Launcher":{"replicas":1,)"
        R"("restartPolicy":"Never"}},"runPolicy":{"cleanPodPolicy":"All","suspend":false}}})"));
  EXPECT_EQ(ApplyDefaults(kind, J(R"({"apiVersion":"kubeflow.org/v2beta1",)"
                                  R"("spec":{"mpiReplicaSpecs":{"launcher":{}}}})")),
            J(R"({"apiVersion":"kubeflow.org/v2beta1","spec":{"mpiReplicaSpecs":{"Launcher":{)"
              R"("replicas":1,"restartPolicy":"OnFailure"}},"mpiImplementation":"OpenMPI",)"
              R"("sshAuthMountPath":"/root/.ssh","launcherCreationPolicy":"AtStartup",)"
              R"("runPolicy":{"cleanPodPolicy":"None","suspend":false}}})"));
  kind.kind = "JAXJob";
  EXPECT_EQ(ApplyDefaults(kind, J(R"({"spec":{"jaxReplicaSpecs":{"worker":{}}}})")),
            J(R"({"spec":{"jaxReplicaSpecs":{"Worker":{"replicas":1,"restartPolicy":"Never"}},
                "runPolicy":{"cleanPodPolicy":"None","suspend":false}}})"));
}

TEST(Defaults, OfARayClusterAreWhatItsAutoscalerTakesForGranted) {
  Kind kind;
  kind.group = "ray.io";
  kind.kind = "RayCluster";
  const json::Value given = J(R"({"spec":{"enableInTreeAutoscaling":true,"headGroupSpec":{},
      "workerGroupSpecs":[{"groupName":"a"},{"rayStartParams":{"num-cpus":"1"}}]}})");
  EXPECT_EQ(ApplyDefaults(kind, given),
            J(R"({"spec":{"enableInTreeAutoscaling":true,"headGroupSpec":{"rayStartParams":{}},
      "workerGroupSpecs":[{"groupName":"a","rayStartParams":{}},
                          {"rayStartParams":{"num-cpus":"1"}}]}})"));
  const json::Value unscaled = given.SetPath({"spec", "enableInTreeAutoscaling"}, false);
  EXPECT_EQ(ApplyDefaults(kind, unscaled), unscaled);
}

TEST(Defaults, OfASchemaReachIntoDefaultedAndNestedValues) {
  Schema number;
  number.type = Type::kInteger;
  Schema inner;
  inner.type = Type::kObject;
  inner.fields.resize(1);
  inner.fields[0].name = "size";
  inner.fields[0].schema = &number;
  inner.fields[0].default_value = 7;
  Schema list;
  list.type = Type::kArray;
  list.items = &inner;
  Schema map;
  map.type = Type::kMap;
  map.items = &inner;
  Schema root;
  root.type = Type::kObject;
  root.fields.resize(3);
  root.fields[0].name = "made";
  root.fields[0].schema = &inner;
  root.fields[0].default_value = json::Obj();
  root.fields[1].name = "list";
  root.fields[1].schema = &list;
  root.fields[2].name = "map";
  root.fields[2].schema = &map;
  EXPECT_EQ(ApplySchemaDefaults(root, J(R"({"list":[{},{"size":1}],"map":{"k":{"size":null}}})")),
            J(R"({"made":{"size":7},"list":[{"size":7},{"size":1}],"map":{"k":{"size":7}}})"));
}

}  // namespace
}  // namespace muster::schema
