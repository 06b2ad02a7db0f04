#include "schema/validation.h"

#include <gtest/gtest.h>

#include "json/parse.h"
#include "json/patch.h"
#include "schema/conform.h"
#include "schema/defaulting.h"
#include "schema/registry.h"
#include "schema/validation/kind_validation.h"

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
// The rules of single fields are rows in tests/conformance/validation.
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
  EXPECT_EQ(PodWrong(R"({"metadata":{"finalizers":["plain"]}})"),
            Lines{"metadata.finalizers[0]: Invalid value: \"plain\": name is neither a standard "
                  "finalizer name nor is it fully qualified"});
  EXPECT_EQ(PodWrong(R"({"metadata":{"annotations":{"a":")" + std::string(300000, 'x') + "\"}}}"),
            Lines{"metadata.annotations: Too long: may not be more than 262144 bytes"});
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
        kind, json::Obj({{"metadata",
                          json::Obj({{"name", std::string(length, 'j')}, {"namespace", "d"}})},
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

TEST(ValidateTraining, APodGroupHasABoundedNumberOfSubGroupPolicies) {
  Kind kind;
  kind.group = "scheduling.volcano.sh";
  kind.kind = "PodGroup";
  for (const size_t count : {kMaxSubGroupPolicies, kMaxSubGroupPolicies + 1}) {
    json::Array policies;
    for (size_t i = 0; i < count; ++i)
      policies.push_back(json::Obj({{"name", "p" + std::to_string(i)}, {"minSubGroups", 1}}));
    const json::Value group =
        J(R"({"metadata":{"name":"g","namespace":"d"},"spec":{"minMember":32}})")
            .SetPath({"spec", "subGroupPolicy"}, policies);
    const Lines wrong = Texts(Validate(kind, group));
    EXPECT_EQ(wrong, count == kMaxSubGroupPolicies
                         ? Lines()
                         : Lines{"spec.subGroupPolicy: Too many: 33: must have at most 32 items"});
  }
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

// One from before the value was looked at must stay changeable, so that it can be ended.
TEST(ValidateJobSetUpdate, AGangOfAnotherValueMayStay) {
  KindPtr kind;
  for (const KindPtr& own : Registry::BuiltIn().own_custom_kinds()) {
    if (own->kind == "JobSet") kind = own;
  }
  ASSERT_NE(kind, nullptr);
  const auto job_set = [&](const std::string& gang, const std::string& note) {
    return Prepared(*kind,
                    J(R"({"metadata":{"name":"t","namespace":"d","uid":"u","resourceVersion":"5",)"
                      R"("creationTimestamp":"2026-01-01T00:00:00Z","annotations":{"note":")" +
                      note + R"(","muster.dev/gang":")" + gang +
                      R"("}},"spec":{"replicatedJobs":[{"name":"a","template":{"spec":{"template":)"
                      R"({"spec":{"containers":[{"name":"c","image":"i"}]}}}}}]}})"));
  };
  const Lines wrong = {
      "metadata.annotations[muster.dev/gang]: Unsupported value: \"yes\": supported values: "
      "\"false\", \"true\""};
  EXPECT_EQ(Texts(Validate(*kind, job_set("yes", "a"))), wrong);
  EXPECT_EQ(Texts(ValidateUpdate(*kind, job_set("yes", "a"), job_set("yes", "b"))), Lines());
  EXPECT_EQ(Texts(ValidateUpdate(*kind, job_set("yes", "a"), job_set("true", "b"))), Lines());
  EXPECT_EQ(Texts(ValidateUpdate(*kind, job_set("true", "a"), job_set("yes", "b"))), wrong);
}

}  // namespace
}  // namespace muster::schema
