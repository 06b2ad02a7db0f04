#include "serving/predictor_pod.h"

#include <gtest/gtest.h>

#include "serving/builtin_runtime.h"
#include "serving/model_storage.h"
#include "serving/test_services.h"

namespace muster::serving {
namespace {

using json::Value;

Value PodOf(const Value& service, const Value& runtime) {
  const Result<Value> made = PredictorPodTemplate(ParseInferenceService(service), runtime);
  EXPECT_TRUE(made.has_value());
  return made ? *made : Value();
}
const Value& ServerOf(const Value& pod) { return pod["spec"]["containers"].At(0); }

TEST(PredictorPod, HasTheRuntimesServerTheModelAndWhatTheUserSaysBeside) {
  const Value service = Yaml(R"(
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: iris, namespace: ml, uid: u1}
spec:
  predictor:
    nodeSelector: {disk: ssd}
    serviceAccountName: models
    labels: {team: a}
    annotations: {note: b}
    model:
      modelFormat: {name: sklearn}
      storageUri: pvc://models/iris/v1
      runtimeVersion: v9
      args: [--more]
      env: [{name: PREDICT_PROBA, value: "true"}]
      resources: {limits: {nvidia.com/gpu: 1}}
)");
  const Value pod = PodOf(service, MakeSklearnRuntime());
  const Value& server = ServerOf(pod);
  EXPECT_EQ(server["name"].AsString(), "kserve-container");
  EXPECT_EQ(server["image"].AsString(), "kserve/sklearnserver:v9");
  EXPECT_EQ(json::ToStrings(server["args"]),
            (std::vector<std::string>{"--model_name=iris", "--model_dir=/mnt/models",
                                      "--http_port=8080", "--more"}));
  EXPECT_EQ(server["env"].At(0)["name"].AsString(), "PREDICT_PROBA");
  // Those of the runtime stay where the user says nothing.
  EXPECT_EQ(server["resources"]["requests"]["cpu"].AsString(), "100m");
  EXPECT_EQ(server["resources"]["limits"]["nvidia.com/gpu"].AsInt(), 1);
  EXPECT_EQ(server["readinessProbe"]["httpGet"]["path"].AsString(), "/v2/health/ready");
  EXPECT_EQ(server["lifecycle"]["preStop"]["sleep"]["seconds"].AsInt(), kDrainSeconds);
  const Value& mount = server["volumeMounts"].At(1);
  EXPECT_EQ(mount["mountPath"].AsString(), "/mnt/models");
  EXPECT_EQ(mount["subPath"].AsString(), "iris/v1");
  EXPECT_TRUE(mount["readOnly"].AsBool());
  EXPECT_EQ(pod["spec"]["volumes"].At(1)["persistentVolumeClaim"]["claimName"].AsString(),
            "models");
  EXPECT_EQ(pod["spec"]["nodeSelector"]["disk"].AsString(), "ssd");
  EXPECT_EQ(pod["spec"]["serviceAccountName"].AsString(), "models");
  EXPECT_EQ(pod["metadata"]["labels"][kServiceLabel].AsString(), "iris");
  EXPECT_EQ(pod["metadata"]["labels"]["team"].AsString(), "a");
  EXPECT_EQ(pod["metadata"]["annotations"]["note"].AsString(), "b");
  EXPECT_TRUE(UsesSklearnConfigMap(pod["spec"]));
}

TEST(PredictorPod, OfContainersOfOnesOwnIsAsGiven) {
  const Value service = Yaml(R"(
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: own, namespace: ml, uid: u1}
spec:
  predictor:
    containers:
      - name: mine
        image: a
        ports: [{containerPort: 9000}]
        env: [{name: STORAGE_URI, value: "file:///srv/m"}]
      - {name: beside, image: b}
)");
  const Value pod = PodOf(service, {});
  EXPECT_EQ(pod["spec"]["containers"].size(), 2u);
  EXPECT_EQ(ServerOf(pod)["name"].AsString(), "kserve-container");
  EXPECT_EQ(ServerOf(pod)["readinessProbe"]["tcpSocket"]["port"].AsInt(), 9000);
  EXPECT_EQ(ServerPortOf(pod), 9000);
  EXPECT_EQ(pod["spec"]["volumes"].At(0)["hostPath"]["path"].AsString(), "/srv/m");
  EXPECT_TRUE(pod["spec"]["containers"].At(1)["lifecycle"].IsNull());
}

TEST(PredictorPod, ARuntimesServerWithoutAProbeIsAskedWhetherTheModelIsReady) {
  const Value runtime =
      Yaml("{metadata: {name: r}, spec: {containers: [{name: kserve-container, image: i}]}}");
  const auto path = [&](std::string_view protocol) {
    const Value service =
        Iris().SetPath({"spec", "predictor", "model", "protocolVersion"}, protocol);
    return ServerOf(PodOf(service, runtime))["readinessProbe"]["httpGet"]["path"].Str();
  };
  EXPECT_EQ(path("v1"), "/v1/models/iris");
  EXPECT_EQ(path("v2"), "/v2/models/iris/ready");
  EXPECT_EQ(path("grpc-v2"), "");
  const Value nameless = Yaml("{metadata: {name: r}, spec: {containers: [{name: x}]}}");
  EXPECT_FALSE(PredictorPodTemplate(ParseInferenceService(Iris()), nameless).has_value());
}

TEST(ModelStorage, MountsDirectoriesAndFiles) {
  const auto target = [](std::string_view uri) { return MountOf(uri)->mount["mountPath"].Str(); };
  EXPECT_EQ(target("file:///srv/iris/"), "/mnt/models");
  EXPECT_EQ(target("file:///srv/iris/v1.2"), "/mnt/models");
  EXPECT_EQ(target("file:///srv/iris/model.joblib"), "/mnt/models/model.joblib");
  EXPECT_EQ(target("pvc://claim"), "/mnt/models");
  EXPECT_EQ(target("pvc://claim/a/model.pkl"), "/mnt/models/model.pkl");
  EXPECT_EQ(MountOf("pvc://claim/a/model.pkl")->mount["subPath"].AsString(), "a/model.pkl");
  const auto type = [](std::string_view uri) {
    return MountOf(uri)->volume["hostPath"]["type"].Str();
  };
  EXPECT_EQ(type("file:///srv/iris/v1.2"), "Directory") << "it is not made if it is missing";
  EXPECT_EQ(type("file:///srv/iris/model.joblib"), "File");
  for (const char* uri : {"file:///", "pvc:///x", "file:///srv/../etc", "gs://b/m", "https://h/m"})
    EXPECT_FALSE(MountOf(uri).has_value()) << uri;
}

TEST(ScalePolicy, ReadsWhoDecides) {
  const auto policy = [](std::string_view predictor) {
    return ParseInferenceService(Iris(predictor)).scale;
  };
  EXPECT_FALSE(policy("").ByTraffic() || policy("").ByPods());
  EXPECT_TRUE(policy("maxReplicas: 3").ByPods());
  EXPECT_TRUE(policy("minReplicas: 0").ByTraffic());
  EXPECT_EQ(policy("minReplicas: 0").most, 1);
  EXPECT_TRUE(policy("maxReplicas: 3, scaleMetric: concurrency").ByTraffic());
  const Value external =
      Iris("maxReplicas: 3").SetPath({"metadata", "annotations", kAutoscalerAnnotation}, "none");
  EXPECT_FALSE(ParseInferenceService(external).scale.ByPods());
  const auto window = [](std::string_view text) {
    return ParseInferenceService(
               Iris("minReplicas: 0").SetPath({"metadata", "annotations", kWindowAnnotation}, text))
        .scale.window;
  };
  EXPECT_EQ(window("30s"), seconds(30));
  EXPECT_EQ(window("1s"), kMinWindow);
  EXPECT_EQ(window("9h"), kMaxWindow);
  EXPECT_EQ(window("soon"), kDefaultWindow);
}

}  // namespace
}  // namespace muster::serving
