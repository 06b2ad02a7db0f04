#include "schema/validation.h"

#include <gtest/gtest.h>

#include "json/parse.h"
#include "json/patch.h"
#include "schema/conform.h"
#include "schema/defaulting.h"
#include "schema/registry.h"

namespace muster::schema {
namespace {

json::Value J(std::string_view text) {
  Result<json::Value> value = json::Parse(text);
  EXPECT_TRUE(value.has_value()) << text << (value ? "" : value.error().message());
  return value ? *value : json::Value();
}

KindPtr Of(std::string_view group, std::string_view plural) {
  return Registry::BuiltIn().Find(group, "v1", plural);
}

std::vector<std::string> Texts(const std::vector<StatusCause>& causes) {
  std::vector<std::string> texts;
  for (const StatusCause& cause : causes) texts.push_back(cause.field + ": " + cause.message);
  return texts;
}

// `object` as the API server would see it when it validates.
json::Value Prepared(const Kind& kind, const json::Value& object) {
  Result<json::Value> conformed = Conform(kind, object, nullptr);
  EXPECT_TRUE(conformed.has_value()) << (conformed ? "" : conformed.error().message());
  return ApplyDefaults(kind, *conformed);
}

std::vector<std::string> Wrong(std::string_view group, std::string_view plural,
                               const json::Value& object) {
  const KindPtr kind = Of(group, plural);
  return Texts(Validate(*kind, Prepared(*kind, object)));
}

using Lines = std::vector<std::string>;

const char kPod[] = R"({"metadata":{"name":"p","namespace":"d"},"spec":{"containers":[{)"
                    R"("name":"c","image":"i"}]}})";

// A valid pod changed by a merge patch.
json::Value Pod(std::string_view patch) { return json::ApplyMergePatch(J(kPod), J(patch)); }
Lines PodWrong(std::string_view patch) { return Wrong("", "pods", Pod(patch)); }
Lines ContainerWrong(std::string_view container) {
  return PodWrong(std::string(R"({"spec":{"volumes":[{"name":"v"}],)"
                              R"("containers":[)") +
                  std::string(container) + "]}}");
}

TEST(ValidatePod, AcceptsOrdinaryPods) {
  EXPECT_EQ(PodWrong("{}"), Lines());
  EXPECT_EQ(PodWrong(R"({"metadata":{"generateName":"p-","labels":{"a.b/c":"d"},"annotations":{)"
                     R"("A.b/C":"anything goes"},"finalizers":["x.y/z"]},
      "spec":{"nodeSelector":{"a":"b"},"tolerations":[{"operator":"Exists"},{"key":"k",)"
                     R"("operator":"Exists","effect":"NoExecute","tolerationSeconds":5}],
      "volumes":[{"name":"v","configMap":{"name":"x","items":[{"key":"a","path":"b/c"}]}}],)"
                     R"("initContainers":[{"name":"i","image":"x","restartPolicy":"Always"}],
      "containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":"/x",)"
                     R"("subPath":"a/b"}],"env":[{"name":"A","value":"1"},
      {"name":"B","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['a']"}}}],"ports":[{)"
                     R"("name":"http","containerPort":80}],
      "resources":{"limits":{"cpu":"1","nvidia.com/gpu":1},"requests":{"cpu":"500m"}},)"
                     R"("livenessProbe":{"exec":{"command":["x"]}}}]}})"),
            Lines());
}

TEST(ValidatePod, MetadataInUpstreamsWords) {
  EXPECT_EQ(Wrong("", "pods",
                  J(R"({"metadata":{"labels":{"-a":"b","c":"d e"}},"spec":{)"
                    R"("containers":[{"name":"c","image":"i"}]}})")),
            (Lines{"metadata.name: Required value: name or generateName is required",
                   "metadata.namespace: Required value",
                   "metadata.labels: Invalid value: \"-a\": name part must consist of alphanumeric "
                   "characters, '-', '_' or '.', and must start and "
                   "end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
                   "'123-abc', regex used for validation is "
                   "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                   "metadata.labels: Invalid value: \"d e\": a valid label must be an empty string "
                   "or consist of alphanumeric characters, '-', '_' "
                   "or '.', and must start and end with an alphanumeric character (e.g. 'MyValue', "
                   " or 'my_value',  or '12345', regex used for "
                   "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"}));
  EXPECT_EQ(
      PodWrong(R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"A",)"
               R"("name":"x","uid":"1","controller":true},{"kind":"B","name":"y","uid":"2",)"
               R"("controller":true}]}})"),
      (Lines{
          "metadata.ownerReferences[1].apiVersion: Invalid value: \"\": version must not be empty",
          "metadata.ownerReferences: Invalid value: "
          "[{\"apiVersion\":\"v1\",\"kind\":\"A\",\"name\":\"x\",\"uid\":\"1\",\"controller\":true}"
          ","
          "{\"kind\":\"B\",\"name\":\"y\",\"uid\":\"2\",\"controller\":true}]: Only one reference "
          "can have Controller set to true. Found "
          "\"true\" in references for x and y"}));
  EXPECT_EQ(PodWrong(R"({"metadata":{"finalizers":["plain"]}})"),
            Lines{"metadata.finalizers[0]: Invalid value: \"plain\": name is neither a standard "
                  "finalizer name nor is it fully qualified"});
  EXPECT_EQ(PodWrong(R"({"metadata":{"annotations":{"a":")" + std::string(300000, 'x') + "\"}}}"),
            Lines{"metadata.annotations: Too long: may not be more than 262144 bytes"});
}

TEST(ValidatePod, Containers) {
  EXPECT_EQ(PodWrong(R"({"spec":{"containers":[]}})"), Lines{"spec.containers: Required value"});
  EXPECT_EQ(PodWrong(R"({"spec":{"containers":[{)"
                     R"(}]}})"),
            (Lines{"spec.containers[0].name: Required value",
                   "spec.containers[0].image: Required value"}));
  EXPECT_EQ(PodWrong(R"({"spec":{"containers":[{"name":"c","image":"i"},{"name":"c",)"
                     R"("image":" i"}]}})"),
            (Lines{"spec.containers[1].name: Duplicate value: \"c\"",
                   "spec.containers[1].image: Invalid value: \" i\": must not have leading or "
                   "trailing whitespace"}));
  EXPECT_EQ(ContainerWrong(R"({"name":"c","image":"i","imagePullPolicy":"Often",)"
                           R"("terminationMessagePolicy":"X"})"),
            (Lines{"spec.containers[0].terminationMessagePolicy: Unsupported value: \"X\": "
                   "supported values: \"FallbackToLogsOnError\", \"File\"",
                   "spec.containers[0].imagePullPolicy: Unsupported value: \"Often\": supported "
                   "values: \"Always\", \"IfNotPresent\", \"Never\""}));
  EXPECT_EQ(
      ContainerWrong(
          R"({"name":"c","image":"i","ports":[{"containerPort":0},{)"
          R"("containerPort":70000,"name":"x"},{"containerPort":1,"name":"x",)"
          R"("protocol":"ICMP"}]})"),
      (Lines{"spec.containers[0].ports[0].containerPort: Required value",
             "spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 "
             "and 65535, inclusive",
             "spec.containers[0].ports[2].name: Duplicate value: \"x\"",
             "spec.containers[0].ports[2].protocol: Unsupported value: \"ICMP\": supported values: "
             "\"SCTP\", \"TCP\", \"UDP\""}));
}

TEST(ValidatePod, Environment) {
  EXPECT_EQ(
      ContainerWrong(
          R"({"name":"c","image":"i","env":[{"value":"x"},{"name":"A=B"},{)"
          R"("name":"C","value":"x","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},
      {"name":"D","valueFrom":{}},{"name":"E","valueFrom":{"fieldRef":{)"
          R"("fieldPath":"spec.foo"}}},{"name":"F","valueFrom":{"secretKeyRef":{"name":"s"}}}]})"),
      (Lines{"spec.containers[0].env[0].name: Required value",
             "spec.containers[0].env[1].name: Invalid value: \"A=B\": a valid environment variable "
             "name must consist only of printable ASCII "
             "characters other than '='",
             "spec.containers[0].env[2].valueFrom: Invalid value: \"\": may not be specified when "
             "`value` is not empty",
             "spec.containers[0].env[3].valueFrom: Invalid value: \"\": must specify one of: "
             "`fieldRef`, `resourceFieldRef`, `configMapKeyRef` "
             "or `secretKeyRef`",
             "spec.containers[0].env[4].valueFrom.fieldRef.fieldPath: Unsupported value: "
             "\"spec.foo\": supported values: \"metadata.name\", "
             "\"metadata.namespace\", \"metadata.uid\", \"spec.nodeName\", "
             "\"spec.serviceAccountName\", \"status.hostIP\", \"status.hostIPs\", "
             "\"status.podIP\", \"status.podIPs\"",
             "spec.containers[0].env[5].valueFrom.secretKeyRef.key: Required value"}));
}

TEST(ValidatePod, Mounts) {
  EXPECT_EQ(
      ContainerWrong(
          R"({"name":"c","image":"i","volumeMounts":[{"name":"w",)"
          R"("mountPath":"/a"},{"name":"v","mountPath":"/a","subPath":"/x"},{"name":"v",)"
          R"("subPath":"a/../b"}]})"),
      (Lines{"spec.containers[0].volumeMounts[0].name: Not found: \"w\"",
             "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/a\": must be unique",
             "spec.containers[0].volumeMounts[1].subPath: Invalid value: \"/x\": must be a "
             "relative path",
             "spec.containers[0].volumeMounts[2].mountPath: Required value",
             "spec.containers[0].volumeMounts[2].subPath: Invalid value: \"a/../b\": must not "
             "contain '..'"}));
}

TEST(ValidatePod, Resources) {
  EXPECT_EQ(ContainerWrong(
                R"({"name":"c","image":"i","resources":{"limits":{"cpu":"1",)"
                R"("memory":"-1","gpu":"1","nvidia.com/gpu":"1500m"},"requests":{"cpu":"2"}}})"),
            (Lines{"spec.containers[0].resources.limits[memory]: Invalid value: \"-1\": must be "
                   "greater than or equal to 0",
                   "spec.containers[0].resources.limits[gpu]: Invalid value: \"gpu\": must be a "
                   "standard resource type or fully qualified",
                   "spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: \"1500m\": "
                   "must be an integer",
                   "spec.containers[0].resources.requests[memory]: Invalid value: \"-1\": must be "
                   "greater than or equal to 0",
                   "spec.containers[0].resources.requests[gpu]: Invalid value: \"gpu\": must be a "
                   "standard resource type or fully qualified",
                   "spec.containers[0].resources.requests[nvidia.com/gpu]: Invalid value: "
                   "\"1500m\": must be an integer",
                   "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than "
                   "or equal to cpu limit of 1"}));
  EXPECT_EQ(ContainerWrong(R"({"name":"c","image":"i","resources":{"limits":{)"
                           R"("nvidia.com/gpu":"2"},"requests":{"nvidia.com/gpu":"1"}}})"),
            Lines{"spec.containers[0].resources.requests: Invalid value: \"1\": must be equal to "
                  "nvidia.com/gpu limit of 2"});
  EXPECT_EQ(ContainerWrong(R"({"name":"c","image":"i","resources":{"requests":{)"
                           R"("nvidia.com/gpu":"1"}}})"),
            Lines{"spec.containers[0].resources.limits: Required value: Limit must be set for non "
                  "overcommitable resources"});
}

TEST(ValidatePod, ProbesAndLifecycle) {
  EXPECT_EQ(ContainerWrong(R"({"name":"c","image":"i","livenessProbe":{"successThreshold":2,)"
                           R"("exec":{"command":["x"]}},"readinessProbe":{},
      "startupProbe":{"httpGet":{"port":"UPPER"},"tcpSocket":{"port":1}},"lifecycle":{)"
                           R"("preStop":{"exec":{}}}})"),
            (Lines{"spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
                   "spec.containers[0].readinessProbe: Required value: must specify a handler type",
                   "spec.containers[0].startupProbe.tcpSocket: Forbidden: may not specify more "
                   "than 1 handler type",
                   "spec.containers[0].startupProbe.httpGet.port: Invalid value: \"UPPER\": must "
                   "contain only alpha-numeric characters (a-z, 0-9), and "
                   "hyphens (-)",
                   "spec.containers[0].startupProbe.httpGet.port: Invalid value: \"UPPER\": must "
                   "contain at least one letter (a-z)",
                   "spec.containers[0].lifecycle.preStop.exec.command: Required value"}));
  EXPECT_EQ(
      PodWrong(R"({"spec":{"initContainers":[{"name":"i","image":"x","livenessProbe":{)"
               R"("exec":{"command":["x"]}}},{"name":"j","image":"x","restartPolicy":"Never"}]}})"),
      (Lines{"spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers "
             "without restartPolicy=Always",
             "spec.initContainers[1].restartPolicy: Unsupported value: \"Never\": supported "
             "values: \"Always\""}));
}

TEST(ValidatePod, Volumes) {
  EXPECT_EQ(
      PodWrong(R"({"spec":{"volumes":[{"emptyDir":{}},{"name":"A","emptyDir":{}},{)"
               R"("name":"b","emptyDir":{},"hostPath":{"path":"/x"}},{"name":"b","hostPath":{)"
               R"("path":"/a/../b","type":"Odd"}},
      {"name":"c","configMap":{"defaultMode":999}},{"name":"d","secret":{"items":[{)"
               R"("path":"../x"}]}},{"name":"e","persistentVolumeClaim":{}},{"name":"f",)"
               R"("downwardAPI":{"items":[{"path":"p"}]}}]}})"),
      (Lines{"spec.volumes[0].name: Required value",
             "spec.volumes[1].name: Invalid value: \"A\": a lowercase RFC 1123 label must consist "
             "of lower case alphanumeric characters or '-', and "
             "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
             "regex used for validation is "
             "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
             "spec.volumes[2].hostPath: Forbidden: may not specify more than 1 volume type",
             "spec.volumes[3].name: Duplicate value: \"b\"",
             "spec.volumes[3].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
             "spec.volumes[3].hostPath.type: Unsupported value: \"Odd\": supported values: "
             "\"BlockDevice\", \"CharDevice\", \"Directory\", "
             "\"DirectoryOrCreate\", \"File\", \"FileOrCreate\", \"Socket\"",
             "spec.volumes[4].configMap.name: Required value",
             "spec.volumes[4].configMap.defaultMode: Invalid value: 999: must be a number between "
             "0 and 0777 (octal), both inclusive",
             "spec.volumes[5].secret.secretName: Required value",
             "spec.volumes[5].secret.items[0].key: Required value",
             "spec.volumes[5].secret.items[0].path: Invalid value: \"../x\": must not contain '..'",
             "spec.volumes[6].persistentVolumeClaim.claimName: Required value",
             "spec.volumes[7].downwardAPI.items[0]: Required value: one of fieldRef and "
             "resourceFieldRef is required"}));
}

TEST(ValidatePod, SpecFields) {
  EXPECT_EQ(
      PodWrong(R"({"spec":{"restartPolicy":"Maybe","dnsPolicy":"None",)"
               R"("terminationGracePeriodSeconds":-1,"activeDeadlineSeconds":0,"hostname":"A",)"
               R"("nodeSelector":{"a":"-"},
      "shareProcessNamespace":true,"hostPID":true,"schedulingGates":[{"name":"g"},{"name":"g"}],)"
               R"("hostAliases":[{"ip":"x"}]}})")
          .size(),
      9u);
  EXPECT_EQ(PodWrong(R"({"spec":{"restartPolicy":"Maybe"}})"),
            Lines{"spec.restartPolicy: Unsupported value: \"Maybe\": supported values: \"Always\", "
                  "\"OnFailure\", \"Never\""});
  EXPECT_EQ(PodWrong(R"({"spec":{"hostNetwork":true,"containers":[{"name":"c","image":"i",)"
                     R"("ports":[{"containerPort":80,"hostPort":81}]}]}})"),
            Lines{"spec.containers[0].ports[0].hostPort: Invalid value: 81: must match "
                  "`containerPort` when `hostNetwork` is true"});
}

TEST(ValidatePod, Placement) {
  EXPECT_EQ(
      PodWrong(
          R"({"spec":{"tolerations":[{},{"key":"a","operator":"Exists","value":"b"},{)"
          R"("key":"a","effect":"Never"},{"key":"a","tolerationSeconds":1,"effect":"NoSchedule"},{)"
          R"("key":"k","operator":"In"}]}})"),
      (Lines{"spec.tolerations[0].operator: Invalid value: \"\": operator must be Exists when "
             "`key` is empty, which means \"match all values and all keys\"",
             "spec.tolerations[1].operator: Invalid value: "
             "{\"key\":\"a\",\"operator\":\"Exists\",\"value\":\"b\"}: value must be empty when "
             "`operator` is 'Exists'",
             "spec.tolerations[2].effect: Unsupported value: \"Never\": supported values: "
             "\"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
             "spec.tolerations[3].effect: Invalid value: \"NoSchedule\": effect must be "
             "'NoExecute' when `tolerationSeconds` is set",
             "spec.tolerations[4].operator: Unsupported value: \"In\": supported values: "
             "\"Equal\", \"Exists\""}));
  const std::string terms =
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
  EXPECT_EQ(
      PodWrong(R"({"spec":{"affinity":{"nodeAffinity":{)"
               R"("requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[]}}}}})"),
      Lines{terms + ": Required value: must have at least one node selector term"});
  EXPECT_EQ(
      PodWrong(R"({"spec":{"affinity":{"nodeAffinity":{)"
               R"("requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{)"
               R"("matchExpressions":[
      {"key":"a","operator":"In"},{"key":"a","operator":"Exists","values":["x"]},{"key":"a",)"
               R"("operator":"Gt","values":["1","2"]},{"key":"a","operator":"Like"}]}]}}}}})"),
      (Lines{terms + "[0].matchExpressions[0].values: Required value: must be specified when "
                     "`operator` is 'In' or 'NotIn'",
             terms + "[0].matchExpressions[1].values: Forbidden: may not be specified when "
                     "`operator` is 'Exists' or 'DoesNotExist'",
             terms + "[0].matchExpressions[2].values: Required value: must be specified single "
                     "value when `operator` is 'Lt' or 'Gt'",
             terms + "[0].matchExpressions[3].operator: Invalid value: \"Like\": not a valid "
                     "selector operator"}));
  EXPECT_EQ(
      PodWrong(
          R"({"spec":{"affinity":{"podAntiAffinity":{)"
          R"("preferredDuringSchedulingIgnoredDuringExecution":[{"weight":0,"podAffinityTerm":{)"
          R"(}}]}},
      "topologySpreadConstraints":[{"maxSkew":0,"topologyKey":"z",)"
          R"("whenUnsatisfiable":"Skip"}]}})")
          .size(),
      4u);
}

Lines UpdateWrong(std::string_view before_patch, std::string_view after_patch) {
  const KindPtr kind = Of("", "pods");
  const std::string system = R"({"metadata":{"uid":"u","resourceVersion":"5",)"
                             R"("creationTimestamp":"2026-01-01T00:00:00Z"}})";
  const json::Value before = json::ApplyMergePatch(Pod(before_patch), J(system));
  const json::Value after = json::ApplyMergePatch(before, J(after_patch));
  return Texts(ValidateUpdate(*kind, Prepared(*kind, before), Prepared(*kind, after)));
}

TEST(ValidatePodUpdate, AllowsWhatMayChange) {
  EXPECT_EQ(UpdateWrong("{}", R"({"metadata":{"labels":{"a":"b"}}})"), Lines());
  EXPECT_EQ(
      UpdateWrong(
          "{}",
          R"({"spec":{"containers":[{"name":"c","image":"other:1",)"
          R"("imagePullPolicy":"Always"}],"activeDeadlineSeconds":5,"tolerations":[{"key":"a",)"
          R"("operator":"Exists"}]}})"),
      Lines());
  EXPECT_EQ(UpdateWrong(R"({"spec":{"schedulingGates":[{"name":"g"}]}})",
                        R"({"spec":{)"
                        R"("schedulingGates":null,"nodeSelector":{"a":"b"}}})"),
            Lines());
  EXPECT_EQ(UpdateWrong(R"({"spec":{"tolerations":[{"key":"a","operator":"Exists",)"
                        R"("effect":"NoExecute","tolerationSeconds":5}]}})",
                        R"({"spec":{"tolerations":[{"key":"a","operator":"Exists",)"
                        R"("effect":"NoExecute","tolerationSeconds":9}]}})"),
            Lines());
}

TEST(ValidatePodUpdate, RefusesTheRest) {
  const std::string spec =
      "spec: Forbidden: pod updates may not change fields other than "
      "`spec.containers[*].image`,`spec.initContainers[*].image`,"
      "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
      "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "
      "negative)\n";
  EXPECT_EQ(UpdateWrong("{}", R"({"spec":{)"
                              R"("hostname":"h"}})"),
            Lines{spec + "spec.hostname: null -> \"h\""});
  EXPECT_EQ(UpdateWrong("{}", R"({"spec":{)"
                              R"("nodeName":"n"}})"),
            Lines{spec + "spec.nodeName: null -> \"n\""});
  EXPECT_EQ(UpdateWrong("{}", R"({"spec":{"containers":[{"name":"c","image":"i"},{"name":"d",)"
                              R"("image":"i"}]}})"),
            Lines{"spec.containers: Forbidden: pod updates may not add or remove containers"});
  EXPECT_EQ(
      UpdateWrong(R"({"spec":{"activeDeadlineSeconds":5}})", R"({"spec":{)"
                                                             R"("activeDeadlineSeconds":6}})"),
      Lines{"spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous "
            "value"});
  EXPECT_EQ(UpdateWrong(R"({"spec":{"tolerations":[{"key":"a","operator":"Exists"}]}})",
                        R"({)"
                        R"("spec":{"tolerations":null}})"),
            Lines{"spec.tolerations: Forbidden: existing toleration can not be modified except its "
                  "tolerationSeconds"});
  EXPECT_EQ(UpdateWrong("{}", R"({"metadata":{"name":"q","uid":"v"}})"),
            (Lines{"metadata.name: Invalid value: \"q\": field is immutable",
                   "metadata.uid: Invalid value: \"v\": field is immutable"}));
  EXPECT_EQ(
      UpdateWrong("{}", R"({"metadata":{)"
                        R"("resourceVersion":null})"
                        R"(})"),
      Lines{"metadata.resourceVersion: Invalid value: \"\": must be specified for an update"});
  EXPECT_EQ(UpdateWrong(R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}})",
                        R"({)"
                        R"("metadata":{"finalizers":["a.b/c"]}})"),
            Lines{"metadata.finalizers: Forbidden: no new finalizers can be added if the object is "
                  "being deleted, found new finalizers []string{\"a.b/c\"}"});
}

TEST(ValidateService, InUpstreamsWords) {
  const auto wrong = [](std::string_view spec) {
    return Wrong("", "services",
                 json::Obj({{"metadata", json::Obj({{"name", "s"}, {"namespace", "d"}})},
                            {"spec", J(spec)}}));
  };
  EXPECT_EQ(wrong(R"({"ports":[{"port":80}],"selector":{"a":"b"}})"), Lines());
  EXPECT_EQ(wrong(R"({"clusterIP":"None"})"), Lines());
  EXPECT_EQ(wrong("{}"), Lines{"spec.ports: Required value"});
  EXPECT_EQ(wrong(R"({"ports":[{"port":80},{"port":80,"name":"b","nodePort":30000}],)"
                  R"("type":"ClusterIP","clusterIP":"x"})"),
            (Lines{"spec.ports[0].name: Required value",
                   "spec.ports[1]: Duplicate value: {\"port\":80,\"protocol\":\"TCP\"}",
                   "spec.ports[1].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
                   "spec.clusterIPs[0]: Invalid value: \"x\": must be a valid IP address, (e.g. "
                   "10.9.8.7 or 2001:db8::ffff)"}));
  EXPECT_EQ(wrong(R"({"ports":[{"port":0}],"type":"Odd","sessionAffinity":"X"})").size(), 4u);
  EXPECT_EQ(wrong(R"({"type":"ExternalName"})"), Lines{"spec.externalName: Required value"});
  EXPECT_EQ(Wrong("", "services",
                  J(R"({"metadata":{"name":"1s","namespace":"d"},"spec":{)"
                    R"("ports":[{"port":1}]}})"))
                .size(),
            1u);
  const KindPtr kind = Of("", "services");
  const json::Value before =
      J(R"({"metadata":{"name":"s","namespace":"d"},"spec":{)"
        R"("type":"ClusterIP","clusterIP":"10.0.0.1","sessionAffinity":"None","ports":[{"port":1,)"
        R"("protocol":"TCP","targetPort":1}]}})");
  EXPECT_EQ(Texts(ValidateUpdate(*kind, before, before.SetPath({"spec", "clusterIP"}, "10.0.0.2"))),
            Lines{"spec.clusterIPs[0]: Invalid value: \"10.0.0.2\": may not change once set"});
}

TEST(ValidateConfig, InUpstreamsWords) {
  const auto wrong = [](std::string_view plural, std::string_view rest) {
    return Wrong("", plural,
                 json::ApplyMergePatch(J(R"({"metadata":{"name":"s",)"
                                         R"("namespace":"d"}})"),
                                       J(rest)));
  };
  EXPECT_EQ(wrong("configmaps", R"({"data":{"a.txt":"x"}})"), Lines());
  EXPECT_EQ(wrong("configmaps", R"({"data":{"a b":"x","c":"1"},"binaryData":{)"
                                R"("c":""}})")
                .size(),
            2u);
  EXPECT_EQ(wrong("configmaps", R"({"data":{)"
                                R"("a":")" +
                                    std::string(1100000, 'x') + "\"}}"),
            Lines{": Too long: may not be more than 1048576 bytes"});
  EXPECT_EQ(wrong("secrets", R"({"type":"kubernetes.io/tls","data":{)"
                             R"("tls.crt":""}})"),
            Lines{"data[tls.key]: Required value"});
  EXPECT_EQ(wrong("secrets", R"({"type":"kubernetes.io/dockerconfigjson","data":{)"
                             R"(".dockerconfigjson":"eA=="}})"),
            Lines{"data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": must be "
                  "valid JSON"});
  EXPECT_EQ(wrong("secrets", R"({"stringData":{"a":"b"}})"), Lines());
  const KindPtr kind = Of("", "configmaps");
  const json::Value before = J(R"({"metadata":{"name":"s","namespace":"d"},"data":{"a":"b"},)"
                               R"("immutable":true})");
  EXPECT_EQ(Texts(ValidateUpdate(*kind, before, before.SetPath({"data", "a"}, "c"))),
            Lines{"data: Forbidden: field is immutable when `immutable` is set"});
  EXPECT_EQ(Texts(ValidateUpdate(*kind, before, before.Remove("immutable"))),
            Lines{"immutable: Forbidden: field is immutable when `immutable` is set"});
}

TEST(ValidateSmallKinds, InUpstreamsWords) {
  const auto meta = [](bool namespaced) {
    return J(namespaced ? R"({"metadata":{"name":"x",)"
                          R"("namespace":"default"}})"
                        : R"({"metadata":{"name":"x"}})");
  };
  const auto wrong = [&](std::string_view group, std::string_view plural, bool namespaced,
                         std::string_view rest) {
    return Wrong(group, plural, json::ApplyMergePatch(meta(namespaced), J(rest)));
  };
  EXPECT_EQ(wrong("", "namespaces", false, "{}"), Lines());
  EXPECT_EQ(wrong("", "namespaces", false, R"({"metadata":{"name":"a.b"}})").size(), 1u);
  EXPECT_EQ(wrong("", "namespaces", true, "{}"),
            Lines{"metadata.namespace: Forbidden: not allowed on this type"});
  EXPECT_EQ(
      wrong("", "nodes", false,
            R"({"spec":{"taints":[{"key":"a","effect":"NoSchedule"},{)"
            R"("key":"a","effect":"NoSchedule"},{"key":"b","effect":"X"}]},"status":{"capacity":{)"
            R"("nvidia.com/gpu":"1.5"}}})")
          .size(),
      4u);
  EXPECT_EQ(wrong("", "persistentvolumeclaims", true, R"({"spec":{}})"),
            (Lines{"spec.accessModes: Required value: at least 1 access mode is required",
                   "spec.resources.requests[storage]: Required value"}));
  EXPECT_EQ(wrong("", "persistentvolumeclaims", true,
                  R"({"spec":{"accessModes":[)"
                  R"("ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})"),
            Lines());
  EXPECT_EQ(wrong("scheduling.k8s.io", "priorityclasses", false,
                  R"({"metadata":{)"
                  R"("name":"system-x"},"value":1})"),
            Lines{"metadata.name: Forbidden: priority class names with 'system-' prefix are "
                  "reserved for system use only"});
  EXPECT_EQ(
      wrong("scheduling.k8s.io", "priorityclasses", false, R"({"value":2000000000})"),
      Lines{"value: Forbidden: maximum allowed value of a user defined priority is 1000000000"});
  EXPECT_EQ(wrong("coordination.k8s.io", "leases", true,
                  R"({"spec":{"leaseDurationSeconds":0,)"
                  R"("leaseTransitions":-1}})")
                .size(),
            2u);
  EXPECT_EQ(wrong("discovery.k8s.io", "endpointslices", true,
                  R"({"addressType":"IPv4",)"
                  R"("endpoints":[{"addresses":["10.0.0.1"]},{"addresses":["x"]},{}]})"),
            (Lines{"endpoints[1].addresses[0]: Invalid value: \"x\": must be an IPv4 address",
                   "endpoints[2].addresses: Required value: must contain at least 1 address"}));
  EXPECT_EQ(
      wrong("", "events", true, R"({"involvedObject":{"kind":"Pod","namespace":"other"}})"),
      Lines{"involvedObject.namespace: Invalid value: \"other\": does not match event.namespace"});
  EXPECT_EQ(wrong("", "events", true, R"({"involvedObject":{"kind":"Node"}})"), Lines());
}

TEST(ValidateTraining, PyTorchJob) {
  Kind kind;
  kind.group = "kubeflow.org";
  kind.kind = "PyTorchJob";
  const auto wrong = [&](std::string_view spec) {
    return Texts(
        Validate(kind, json::Obj({{"metadata", json::Obj({{"name", "j"}, {"namespace", "d"}})},
                                  {"spec", J(spec)}})));
  };
  const std::string good = R"({"template":{"spec":{"containers":[{"name":"pytorch",)"
                           R"("image":"i"}]}}})";
  EXPECT_EQ(wrong(R"({"pytorchReplicaSpecs":{"Master":)" + good + R"(,"Worker":)" + good +
                  R"(},)"
                  R"("nprocPerNode":"2"})"),
            Lines());
  EXPECT_EQ(wrong("{}"), Lines{"spec.pytorchReplicaSpecs: Required value: must be specified"});
  EXPECT_EQ(
      wrong(R"({"pytorchReplicaSpecs":{"Chief":{},"Master":{"replicas":2,"template":{)"
            R"("spec":{"containers":[{"name":"x","image":"i"}]}}}},"runPolicy":{"backoffLimit":-1,)"
            R"("managedBy":"me"},
      "elasticPolicy":{"minReplicas":3,"maxReplicas":2},"nprocPerNode":"many"})"),
      (Lines{"spec.runPolicy.backoffLimit: Invalid value: -1: must be greater than or equal to 0",
             "spec.runPolicy.managedBy: Unsupported value: \"me\": supported values: "
             "\"kubeflow.org/training-operator\", \"kueue.x-k8s.io/multikueue\"",
             "spec.nprocPerNode: Invalid value: \"many\": must be auto, cpu, gpu, or a number "
             "greater than 0",
             "spec.elasticPolicy.minReplicas: Invalid value: 3: must be less than or equal to "
             "maxReplicas (2)",
             "spec.pytorchReplicaSpecs[Chief]: Unsupported value: \"Chief\": supported values: "
             "\"Master\", \"Worker\"",
             "spec.pytorchReplicaSpecs[Master].replicas: Forbidden: must be 1",
             "spec.pytorchReplicaSpecs[Master].template.spec.containers: Required value: must have "
             "at least one container with name pytorch"}));
  EXPECT_EQ(Texts(Validate(kind, J(R"({"metadata":{"name":"1j","namespace":"d"},"spec":{)"
                                   R"("pytorchReplicaSpecs":{"Master":)" +
                                   good + "}}}")))
                .size(),
            1u);
}

TEST(ValidateTraining, APyTorchJobNameLeavesRoomForItsPodsNames) {
  Kind kind;
  kind.group = "kubeflow.org";
  kind.kind = "PyTorchJob";
  const auto wrong = [&](size_t length, const std::string& worker, const std::string& more = "") {
    const std::string spec =
        R"({"pytorchReplicaSpecs":{"Worker":{)" + worker +
        R"("template":{"spec":{"containers":[{"name":"pytorch","image":"i"}]}}}})" + more + "}";
    return Texts(Validate(
        kind, json::Obj({{"metadata", json::Obj({{"name", std::string(length, 'j')},
                                                 {"namespace", "d"}})},
                         {"spec", J(spec)}})));
  };
  EXPECT_EQ(wrong(54, ""), Lines());
  EXPECT_EQ(wrong(54, R"("replicas":10,)"), Lines());
  EXPECT_EQ(wrong(54, R"("replicas":0,)"), Lines());
  EXPECT_EQ(wrong(55, ""),
            Lines{"metadata.name: Invalid value: \"" + std::string(55, 'j') +
                  "\": must be no more than 54 characters, because its pods and services are "
                  "called <name>-worker-<index> (at most 63)"});
  const auto one_less = wrong(54, R"("replicas":11,)");
  ASSERT_EQ(one_less.size(), 1u);
  EXPECT_NE(one_less[0].find("no more than 53 characters"), std::string::npos);
  EXPECT_EQ(wrong(54, "", R"(,"elasticPolicy":{"minReplicas":1,"maxReplicas":11})").size(), 1u);
}

TEST(InvalidError, IsWordedAsUpstream) {
  const KindPtr pods = Of("", "pods");
  const Status one =
      InvalidError(*pods, "x", {{"FieldValueRequired", "spec.containers", "Required value"}});
  EXPECT_EQ(one.message(), "Pod \"x\" is invalid: spec.containers: Required value");
  EXPECT_EQ(one.code(), 422);
  EXPECT_EQ(one.details().kind, "Pod");
  EXPECT_EQ(one.details().causes[0].field, "spec.containers");
  Kind job;
  job.group = "kubeflow.org";
  job.kind = "PyTorchJob";
  EXPECT_EQ(InvalidError(job, "y", {{"r", "a", "b"}, {"r", "c", "d"}}).message(),
            "PyTorchJob.kubeflow.org \"y\" is invalid: [a: b, c: d]");
}

TEST(Validation, LimitsItsCauses) {
  json::Array containers;
  for (int i = 0; i < 300; ++i) containers.push_back(json::Obj());
  EXPECT_EQ(Wrong("", "pods", Pod("{}").SetPath({"spec", "containers"}, containers)).size(),
            kMaxCauses);
}

}  // namespace
}  // namespace muster::schema
