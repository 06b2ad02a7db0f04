#include <gtest/gtest.h>

#include "apiserver/apiserver_testing.h"
#include "apiserver/mlflow/endpoints.h"
#include "apiserver/turns.h"
#include "base/strings.h"
#include "json/write.h"

namespace muster::apiserver {
namespace {

using json::Value;

constexpr const char* kKinds = "/apis/registry.muster.dev/v1alpha1/namespaces/default/";
constexpr const char* kRbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/";
constexpr const char* kMlflow = "/mlflow/default/api/2.0/mlflow/";

net::Headers JsonBody() {
  net::Headers headers;
  headers.Add("Content-Type", "application/json");
  return headers;
}

class MlflowTest : public testing::Test {
 protected:
  // As a client of MLflow in the namespace default.
  Value Ask(const std::string& method, const std::string& path, const std::string& body = "",
            int code = 200) {
    const auto writer = server_.Send(method, kMlflow + path, body, JsonBody());
    EXPECT_EQ(writer->status, code) << method << " " << path << ": " << writer->body;
    EXPECT_EQ(writer->headers.Get("Content-Type"), "application/json");
    return TestServer::Json(*writer);
  }
  std::string ErrorOf(const std::string& method, const std::string& path, const std::string& body,
                      int code) {
    const Value answer = Ask(method, path, body, code);
    EXPECT_FALSE(answer["message"].AsString().empty());
    return answer["error_code"].Str();
  }
  void Register(const std::string& name, int versions) {
    Ask("POST", "registered-models/create", R"({"name": ")" + name + "\"}");
    for (int i = 1; i <= versions; ++i) {
      const Value made =
          Ask("POST", "model-versions/create",
              fmt::format(R"({{"name": "{}", "source": "pvc://models/{}"}})", name, i));
      EXPECT_EQ(made["model_version"]["version"].AsString(), std::to_string(i));
    }
  }
  void Bind(const std::string& user, const std::string& role,
            const std::string& kind = "ClusterRole") {
    const auto made = server_.Send("POST", std::string(kRbac) + "rolebindings",
                                   fmt::format(R"({{"metadata": {{"name": "{0}"}},
                        "roleRef": {{"apiGroup": "rbac.authorization.k8s.io", "kind": "{2}",
                                     "name": "{1}"}},
                        "subjects": [{{"kind": "User", "name": "{0}",
                                       "apiGroup": "rbac.authorization.k8s.io"}}]}})",
                                               user, role, kind),
                                   JsonBody());
    ASSERT_EQ(made->status, 201) << made->body;
  }
  Value Object(const std::string& path) {
    return TestServer::Json(*server_.Send("GET", kKinds + path));
  }

  static ServerOptions Options() {
    ServerOptions options;
    options.own_groups = {"registry.muster.dev"};
    return options;
  }

  TestServer server_{Options()};
};

TEST_F(MlflowTest, AModelIsRegisteredReadChangedAndDeleted) {
  Value model = Ask("POST", "registered-models/create",
                    R"({"name": "digits", "description": "of MNIST",
                        "tags": [{"key": "team", "value": "vision"}]})")["registered_model"];
  EXPECT_EQ(model["name"].AsString(), "digits");
  EXPECT_GT(model["creation_timestamp"].AsInt(), 1'600'000'000'000);
  EXPECT_EQ(model["tags"].At(0)["value"].AsString(), "vision");
  EXPECT_EQ(ErrorOf("POST", "registered-models/create", R"({"name": "digits"})", 400),
            "RESOURCE_ALREADY_EXISTS");

  Ask("PATCH", "registered-models/update", R"({"name": "digits", "description": "new"})");
  Ask("POST", "registered-models/set-tag", R"({"name": "digits", "key": "a.b/c", "value": "1"})");
  Ask("DELETE", "registered-models/delete-tag", R"({"name": "digits", "key": "team"})");
  model = Ask("GET", "registered-models/get?name=digits")["registered_model"];
  EXPECT_EQ(model["description"].AsString(), "new");
  ASSERT_EQ(model["tags"].size(), 1u);
  EXPECT_EQ(model["tags"].At(0)["key"].AsString(), "a.b/c");
  EXPECT_EQ(Object("registeredmodels/digits")["spec"]["description"].AsString(), "new");

  Ask("DELETE", "registered-models/delete", R"({"name": "digits"})");
  EXPECT_EQ(ErrorOf("GET", "registered-models/get?name=digits", "", 404),
            "RESOURCE_DOES_NOT_EXIST");
}

TEST_F(MlflowTest, VersionsAreNumberedAndLeadToTheirRunAndSource) {
  Ask("POST", "registered-models/create", R"({"name": "digits"})");
  const std::string id =
      Ask("POST", "runs/create", R"({"experiment_id": "0"})")["run"]["info"]["run_id"].Str();
  const Value version = Ask("POST", "model-versions/create",
                            R"({"name": "digits", "source": "pvc://m/1", "run_id": ")" + id +
                                R"(", "description": "d"})")["model_version"];
  EXPECT_EQ(version["version"].AsString(), "1");
  EXPECT_EQ(version["status"].AsString(), "READY");
  EXPECT_EQ(version["run_id"].AsString(), id);
  EXPECT_EQ(version["current_stage"].AsString(), "None");
  EXPECT_EQ(version["user_id"].AsString(), "admin");
  const Value object = Object("modelversions/digits.1");
  EXPECT_EQ(object["spec"]["runID"].AsString(), id);
  EXPECT_EQ(object["metadata"]["ownerReferences"].At(0)["uid"],
            Object("registeredmodels/digits")["metadata"]["uid"]);
  EXPECT_EQ(Ask("GET", "model-versions/get-download-uri?name=digits&version=1")["artifact_uri"]
                .AsString(),
            "pvc://m/1");
  Ask("DELETE", "model-versions/delete", R"({"name": "digits", "version": "1"})");
  // A number is not given twice.
  EXPECT_EQ(Ask("POST", "model-versions/create",
                R"({"name": "digits", "source": "s"})")["model_version"]["version"]
                .AsString(),
            "2");
  EXPECT_EQ(ErrorOf("GET", "model-versions/get?name=digits&version=1", "", 404),
            "RESOURCE_DOES_NOT_EXIST");
  EXPECT_EQ(ErrorOf("GET", "model-versions/get?name=digits&version=x", "", 400),
            "INVALID_PARAMETER_VALUE");
  EXPECT_EQ(ErrorOf("POST", "model-versions/create", R"({"name": "nobody", "source": "s"})", 404),
            "RESOURCE_DOES_NOT_EXIST");
}

TEST_F(MlflowTest, AVersionThatSomebodyMadeHimselfKeepsItsNumber) {
  Register("digits", 0);
  const auto made = server_.Send(
      "POST", std::string(kKinds) + "modelversions",
      R"({"metadata": {"name": "digits.1"}, "spec": {"model": "digits", "version": 1}})",
      JsonBody());
  ASSERT_EQ(made->status, 201) << made->body;
  EXPECT_EQ(Ask("POST", "model-versions/create",
                R"({"name": "digits", "source": "s"})")["model_version"]["version"]
                .AsString(),
            "2");
}

TEST_F(MlflowTest, StagesArchiveTheOnesBefore) {
  Register("digits", 3);
  const auto to = [&](int version, const std::string& stage, bool archive) {
    return Ask("POST", "model-versions/transition-stage",
               fmt::format(R"({{"name": "digits", "version": "{}", "stage": "{}",
                               "archive_existing_versions": {}}})",
                           version, stage, archive))["model_version"]["current_stage"]
        .Str();
  };
  EXPECT_EQ(to(1, "production", false), "Production");
  EXPECT_EQ(to(2, "Production", true), "Production");
  EXPECT_EQ(Object("modelversions/digits.1")["spec"]["stage"].AsString(), "Archived");
  EXPECT_EQ(Object("modelversions/digits.3")["spec"]["stage"].AsString(), "None");
  EXPECT_EQ(ErrorOf("POST", "model-versions/transition-stage",
                    R"({"name": "digits", "version": "1", "stage": "Live"})", 400),
            "INVALID_PARAMETER_VALUE");
  const Value latest =
      Ask("GET", "registered-models/get-latest-versions?name=digits&stages=Production");
  ASSERT_EQ(latest["model_versions"].size(), 1u);
  EXPECT_EQ(latest["model_versions"].At(0)["version"].AsString(), "2");
  EXPECT_EQ(Ask("POST", "registered-models/get-latest-versions",
                R"({"name": "digits"})")["model_versions"]
                .size(),
            3u);
}

// Two clients at a time do not archive each other's.
TEST_F(MlflowTest, OfTwoThatGoToProductionAtATimeOneStays) {
  Register("digits", 3);
  std::vector<std::shared_ptr<FakeWriter>> both;
  for (const char* version : {"1", "2"}) {
    both.push_back(
        server_.Begin("POST", std::string(kMlflow) + "model-versions/transition-stage",
                      fmt::format(R"({{"name": "digits", "version": "{}", "stage": "Production",
                        "archive_existing_versions": true}})",
                                  version),
                      JsonBody()));
  }
  server_.loop.RunReady();
  for (const auto& each : both) EXPECT_EQ(each->status, 200) << each->body;
  const Value production =
      Ask("GET", "registered-models/get-latest-versions?name=digits&stages=Production");
  EXPECT_EQ(production["model_versions"].size(), 1u);
  // One that is there already sends away who came after it.
  Ask("POST", "model-versions/transition-stage",
      R"({"name": "digits", "version": "3", "stage": "Production"})");
  const std::string first = production["model_versions"].At(0)["version"].Str();
  Ask("POST", "model-versions/transition-stage",
      fmt::format(R"({{"name": "digits", "version": "{}", "stage": "Production",
                      "archive_existing_versions": true}})",
                  first));
  EXPECT_EQ(Object("modelversions/digits.3")["spec"]["stage"].AsString(), "Archived");
  EXPECT_EQ(Object("modelversions/digits." + first)["spec"]["stage"].AsString(), "Production");
}

TEST_F(MlflowTest, NamesThatOthersCannotWriteDownAreRefused) {
  for (const char* name : {"digits/3", "digits:3", " "}) {
    EXPECT_EQ(
        ErrorOf("POST", "registered-models/create", fmt::format(R"({{"name": "{}"}})", name), 400),
        "INVALID_PARAMETER_VALUE")
        << name;
  }
}

TEST_F(MlflowTest, MetricsThatAreNoNumbersAreNotLess) {
  for (const char* loss : {"0.5", "\"NaN\"", "\"Infinity\"", "0.1", "\"-Infinity\""}) {
    const std::string id =
        Ask("POST", "runs/create",
            fmt::format(R"({{"run_name": {}}})",
                        *loss == '"' ? loss : fmt::format("\"{}\"", loss)))["run"]["info"]["run_id"]
            .Str();
    Ask("POST", "runs/log-metric",
        fmt::format(R"({{"run_id": "{}", "key": "loss", "value": {}}})", id, loss));
  }
  const auto found = [&](const std::string& filter, const std::string& order) {
    std::string names;
    const Value answer =
        Ask("POST", "runs/search",
            fmt::format(R"({{"experiment_ids": ["0"], "filter": "{}", "order_by": ["{}"]}})",
                        filter, order));
    for (const Value& run : answer["runs"].items()) names += run["info"]["run_name"].Str() + " ";
    return names;
  };
  EXPECT_EQ(found("", "metrics.loss"), "-Infinity 0.1 0.5 Infinity NaN ");
  EXPECT_EQ(found("", "metrics.loss DESC"), "Infinity 0.5 0.1 -Infinity NaN ");
  EXPECT_EQ(found("metrics.loss > 0.2", "metrics.loss"), "0.5 Infinity ");
  for (const char* wrong : {"metrics.loss = NaN", "loss < 0.5", "dataset.name = 'a'"}) {
    EXPECT_EQ(ErrorOf("POST", "runs/search",
                      fmt::format(R"({{"experiment_ids": ["0"], "filter": "{}"}})", wrong), 400),
              "INVALID_PARAMETER_VALUE")
        << wrong;
  }
  EXPECT_EQ(ErrorOf("POST", "runs/search",
                    R"({"experiment_ids": ["0"], "order_by": ["loss DESC"]})", 400),
            "INVALID_PARAMETER_VALUE");
  for (const char* kind : {"registered-models", "model-versions", "experiments"}) {
    EXPECT_EQ(ErrorOf("GET", std::string(kind) + "/search?filter=team%3D%27vision%27", "", 400),
              "INVALID_PARAMETER_VALUE")
        << kind;
  }
}

TEST_F(MlflowTest, AliasesNameVersionsThatAreThere) {
  Register("digits", 2);
  Ask("POST", "registered-models/alias",
      R"({"name": "digits", "alias": "champion", "version": "2"})");
  EXPECT_EQ(
      Ask("GET", "registered-models/alias?name=digits&alias=champion")["model_version"]["version"]
          .AsString(),
      "2");
  EXPECT_EQ(Ask("GET", "model-versions/get?name=digits&version=2")["model_version"]["aliases"],
            json::List({"champion"}));
  EXPECT_EQ(ErrorOf("POST", "registered-models/alias",
                    R"({"name": "digits", "alias": "champion", "version": "9"})", 404),
            "RESOURCE_DOES_NOT_EXIST");
  for (const char* taken : {"latest", "v3", "7"}) {
    EXPECT_EQ(
        ErrorOf("POST", "registered-models/alias",
                fmt::format(R"({{"name": "digits", "alias": "{}", "version": "1"}})", taken), 400),
        "INVALID_PARAMETER_VALUE");
  }
  // It goes with its version, or alone.
  Ask("DELETE", "model-versions/delete", R"({"name": "digits", "version": "2"})");
  EXPECT_EQ(ErrorOf("GET", "registered-models/alias?name=digits&alias=champion", "", 404),
            "RESOURCE_DOES_NOT_EXIST");
  Ask("POST", "registered-models/alias", R"({"name": "digits", "alias": "old", "version": "1"})");
  Ask("DELETE", "registered-models/alias", R"({"name": "digits", "alias": "old"})");
  EXPECT_TRUE(
      Ask("GET", "registered-models/get?name=digits")["registered_model"]["aliases"].empty());
}

TEST_F(MlflowTest, NamesThatObjectsCannotHaveWorkAndStayApart) {
  Register("Digits of MNIST", 1);
  Register("digits of mnist", 2);
  EXPECT_EQ(
      Ask("GET",
          "registered-models/get?name=Digits%20of%20MNIST")["registered_model"]["latest_versions"]
          .At(0)["version"]
          .AsString(),
      "1");
  EXPECT_EQ(
      Ask("GET", "model-versions/search?filter=name%3D%27digits%20of%20mnist%27")["model_versions"]
          .size(),
      2u);
}

TEST_F(MlflowTest, SearchesFilterOrderAndPage) {
  for (const char* name : {"alpha", "beta", "gamma"}) Register(name, 2);
  EXPECT_EQ(Ask("GET", "registered-models/search?filter=name%20LIKE%20%27%25a%25%27&max_results=2")
                ["registered_models"]
                    .size(),
            2u);
  const Value first = Ask("GET", "registered-models/search?max_results=2&order_by=name%20DESC");
  EXPECT_EQ(first["registered_models"].At(0)["name"].AsString(), "gamma");
  const Value rest = Ask("GET",
                         "registered-models/search?max_results=2&order_by=name%20DESC"
                         "&page_token=" +
                             first["next_page_token"].Str());
  EXPECT_EQ(rest["registered_models"].At(0)["name"].AsString(), "alpha");
  EXPECT_FALSE(rest.Has("next_page_token"));
  // What MLflow's client adds: none of them is a prompt.
  EXPECT_EQ(Ask("GET",
                "registered-models/search?filter=tag.%60mlflow.prompt.is_prompt%60%20!%3D%20%27true"
                "%27")["registered_models"]
                .size(),
            3u);
  const Value versions = Ask("GET", "model-versions/search?filter=name%3D%27beta%27");
  ASSERT_EQ(versions["model_versions"].size(), 2u);
  EXPECT_EQ(versions["model_versions"].At(0)["version"].AsString(), "2");
  for (const char* wrong : {"max_results=0", "max_results=99999", "page_token=x", "filter=name",
                            "order_by=a%20b%20c%20d%20up"})
    Ask("GET", std::string("registered-models/search?") + wrong, "", 400);
}

TEST_F(MlflowTest, ARunHasParametersMetricsAndTags) {
  const Value run = Ask("POST", "runs/create",
                        R"({"experiment_id": "0", "run_name": "first", "user_id": "ann",
                            "start_time": 1700000000000})")["run"];
  const std::string id = run["info"]["run_id"].Str();
  EXPECT_EQ(id.size(), 32u);
  const std::string of = R"({"run_id": ")" + id + "\", ";
  Ask("POST", "runs/log-parameter", of + R"("key": "rate", "value": "0.1"})");
  Ask("POST", "runs/log-parameter", of + R"("key": "rate", "value": "0.1"})");
  EXPECT_EQ(ErrorOf("POST", "runs/log-parameter", of + R"("key": "rate", "value": "0.2"})", 400),
            "INVALID_PARAMETER_VALUE");
  Ask("POST", "runs/log-batch",
      of + R"("metrics": [{"key": "loss", "value": 0.5, "step": 1, "timestamp": 1},
                          {"key": "loss", "value": 0.25, "step": 2, "timestamp": 2}],
              "params": [{"key": "epochs", "value": "3"}],
              "tags": [{"key": "data", "value": "mnist"}]})");
  Ask("POST", "runs/log-metric", of + R"("key": "loss", "value": 9, "step": 1, "timestamp": 3})");
  Ask("POST", "runs/log-metric", of + R"("key": "bad", "value": "NaN"})");
  EXPECT_EQ(ErrorOf("POST", "runs/log-metric", of + R"("key": "bad", "value": "low"})", 400),
            "INVALID_PARAMETER_VALUE");
  Ask("POST", "runs/update", of + R"("status": "FINISHED", "end_time": "1700000001000"})");
  const Value read = Ask("GET", "runs/get?run_id=" + id)["run"];
  EXPECT_EQ(read["info"]["status"].AsString(), "FINISHED");
  EXPECT_EQ(read["info"]["end_time"].AsInt(), 1700000001000);
  EXPECT_EQ(read["info"]["user_id"].AsString(), "ann");
  EXPECT_EQ(read["data"]["params"].size(), 2u);
  for (const Value& metric : read["data"]["metrics"].items()) {
    const bool bad = metric["key"].AsString() == "bad";
    EXPECT_EQ(json::Write(metric["value"]), bad ? "\"NaN\"" : "0.25");
  }
  const auto found = [&](const std::string& filter, const std::string& more = "") {
    return Ask("POST", "runs/search",
               R"({"experiment_ids": ["0"], "filter": ")" + filter + "\"" + more + "}")["runs"]
        .size();
  };
  EXPECT_EQ(found("metrics.loss < 0.3 AND params.rate = '0.1' AND tags.data = 'mnist'"), 1u);
  EXPECT_EQ(found("metrics.loss > 0.3"), 0u);
  EXPECT_EQ(found("attributes.status = 'FINISHED'"), 1u);
  Ask("POST", "runs/delete", R"({"run_id": ")" + id + "\"}");
  EXPECT_EQ(found(""), 0u);
  EXPECT_EQ(found("", R"(, "run_view_type": "DELETED_ONLY")"), 1u);
  // A deleted run stays as it was, until it is restored.
  for (const auto& [path, more] :
       {std::pair("runs/log-metric", R"("key": "loss", "value": 1})"),
        std::pair("runs/log-parameter", R"("key": "late", "value": "1"})"),
        std::pair("runs/log-batch", R"("tags": [{"key": "late", "value": "1"}]})"),
        std::pair("runs/set-tag", R"("key": "late", "value": "1"})"),
        std::pair("runs/delete-tag", R"("key": "data"})"),
        std::pair("runs/update", R"("status": "FAILED"})")})
    EXPECT_EQ(ErrorOf("POST", path, of + more, 400), "INVALID_PARAMETER_VALUE") << path;
  Ask("POST", "runs/restore", R"({"run_id": ")" + id + "\"}");
  Ask("POST", "runs/delete-tag", of + R"("key": "data"})");
  EXPECT_EQ(ErrorOf("POST", "runs/delete-tag", of + R"("key": "data"})", 404),
            "RESOURCE_DOES_NOT_EXIST");
  EXPECT_EQ(found("tags.data = 'mnist'"), 0u);
  EXPECT_EQ(found("metrics.loss < 0.3"), 1u);
}

// What MLflow's set_experiment() does: by name, then create, then by the id.
TEST_F(MlflowTest, AnExperimentIsMadeByNameAndHasItsRuns) {
  EXPECT_EQ(ErrorOf("GET", "experiments/get-by-name?experiment_name=My%20digits", "", 404),
            "RESOURCE_DOES_NOT_EXIST");
  const std::string id = Ask("POST", "experiments/create",
                             R"({"name": "My digits", "artifact_location": "file:///claim/runs/",
                                 "tags": [{"key": "team", "value": "vision"}]})")["experiment_id"]
                             .Str();
  EXPECT_EQ(ErrorOf("POST", "experiments/create", R"({"name": "My digits"})", 400),
            "RESOURCE_ALREADY_EXISTS");
  Ask("POST", "experiments/set-experiment-tag",
      R"({"experiment_id": ")" + id + R"(", "key": "data", "value": "mnist"})");
  for (const std::string& path :
       {"experiments/get?experiment_id=" + id,
        std::string("experiments/get-by-name?experiment_name=My%20digits")}) {
    const Value experiment = Ask("GET", path)["experiment"];
    EXPECT_EQ(experiment["name"].AsString(), "My digits");
    EXPECT_EQ(experiment["experiment_id"].AsString(), id);
    EXPECT_EQ(experiment["lifecycle_stage"].AsString(), "active");
    EXPECT_EQ(experiment["tags"].size(), 2u);
  }
  const Value run =
      Ask("POST", "runs/create", R"({"experiment_id": ")" + id + "\"}")["run"]["info"];
  EXPECT_EQ(run["experiment_id"].AsString(), id);
  EXPECT_EQ(run["artifact_uri"].AsString(),
            "file:///claim/runs/" + run["run_id"].Str() + "/artifacts");
  EXPECT_EQ(Object("runs/" + run["run_id"].Str())["metadata"]["ownerReferences"].At(0)["uid"],
            Object("experiments/" + id)["metadata"]["uid"]);
  EXPECT_EQ(Ask("POST", "runs/create", R"({"experiment_id": "0"})")["run"]["info"]["artifact_uri"]
                .AsString(),
            "the-experiment-has-no-artifact-location:/");
  EXPECT_TRUE(
      Ask("POST", "logged-models/search", R"({"experiment_ids": ["0"]})")["models"].empty());
  const auto found = [&](const std::string& ids) {
    return Ask("POST", "runs/search", R"({"experiment_ids": [)" + ids + "]}")["runs"].size();
  };
  EXPECT_EQ(found("\"" + id + "\""), 1u);
  EXPECT_EQ(found("\"0\""), 1u);
  EXPECT_EQ(found("\"0\", \"" + id + "\""), 2u);
  EXPECT_EQ(found("\"a,b=c\""), 0u);
  EXPECT_EQ(found(""), 0u);
  std::string many = "\"0\"";
  for (size_t i = 0; i < kMaxSearchedExperiments; ++i) many += ", \"0\"";
  EXPECT_EQ(ErrorOf("POST", "runs/search", R"({"experiment_ids": [)" + many + "]}", 400),
            "INVALID_PARAMETER_VALUE");
}

TEST_F(MlflowTest, TheExperimentDefaultIsThereFromTheBeginning) {
  EXPECT_EQ(
      Ask("GET", "experiments/get-by-name?experiment_name=Default")["experiment"]["experiment_id"]
          .AsString(),
      "0");
  EXPECT_EQ(Ask("GET", "experiments/get?experiment_id=0")["experiment"]["name"].AsString(),
            "Default");
  EXPECT_EQ(ErrorOf("POST", "experiments/create", R"({"name": "Default"})", 400),
            "RESOURCE_ALREADY_EXISTS");
  EXPECT_EQ(ErrorOf("POST", "experiments/create", R"({"name": "0"})", 400),
            "INVALID_PARAMETER_VALUE");
  EXPECT_EQ(ErrorOf("POST", "runs/create", R"({"experiment_id": "7"})", 404),
            "RESOURCE_DOES_NOT_EXIST");
  Ask("POST", "experiments/create", R"({"name": "default"})");
  const Value all =
      Ask("POST", "experiments/search", R"({"max_results": 10, "order_by": ["name ASC"]})");
  ASSERT_EQ(all["experiments"].size(), 2u);
  EXPECT_EQ(all["experiments"].At(0)["name"].AsString(), "Default");
  EXPECT_EQ(
      Ask("GET", "experiments/search?filter=name%20LIKE%20%27def%25%27")["experiments"].size(), 1u);
}

TEST_F(MlflowTest, WhatIsNotServedOrCannotBeReadSaysSo) {
  EXPECT_EQ(ErrorOf("POST", "registered-models/rename", "{}", 404), "ENDPOINT_NOT_FOUND");
  EXPECT_EQ(ErrorOf("POST", "registered-models/get", "{}", 404), "ENDPOINT_NOT_FOUND");
  EXPECT_EQ(ErrorOf("POST", "registered-models/create", "{", 400), "INVALID_PARAMETER_VALUE");
  EXPECT_EQ(ErrorOf("POST", "registered-models/create", "[]", 400), "INVALID_PARAMETER_VALUE");
  EXPECT_EQ(ErrorOf("POST", "registered-models/create", "{}", 400), "INVALID_PARAMETER_VALUE");
  EXPECT_EQ(ErrorOf("POST", "registered-models/create",
                    R"({"name": ")" + std::string(251, 'x') + "\"}", 400),
            "INVALID_PARAMETER_VALUE");
  std::string many;
  for (size_t i = 0; i <= kMaxLoggedAtOnce; ++i)
    many += fmt::format(R"({}{{"key": "k{}", "value": "v"}})", i == 0 ? "" : ",", i);
  EXPECT_EQ(ErrorOf("POST", "runs/log-batch", R"({"run_id": "r", "tags": [)" + many + "]}", 400),
            "INVALID_PARAMETER_VALUE");
}

// What is of another type is not taken for absent.
TEST_F(MlflowTest, ArgumentsOfAnotherTypeAreRefusedAndNothingIsWritten) {
  Register("digits", 1);
  const std::string id =
      Ask("POST", "runs/create", R"({"experiment_id": "0"})")["run"]["info"]["run_id"].Str();
  const std::string of_run = R"({"run_id": ")" + id + "\", ", of_model = R"({"name": "digits", )";
  for (const auto& [path, body, argument] : {
           std::tuple("registered-models/create", std::string(R"({"name": 5})"), "name"),
           std::tuple("registered-models/create",
                      std::string(R"({"name": "a", "tags": {"b": "c"}})"), "tags"),
           std::tuple("registered-models/create", std::string(R"({"name": "a", "tags": ["b"]})"),
                      "tags[0]"),
           std::tuple("registered-models/set-tag", of_model + R"("key": "a", "value": true})",
                      "value"),
           std::tuple("registered-models/alias", of_model + R"("alias": 1.5, "version": "1"})",
                      "alias"),
           std::tuple("registered-models/alias", of_model + R"("alias": "a", "version": 1.5})",
                      "version"),
           std::tuple("model-versions/create", of_model + R"("source": ["s"]})", "source"),
           std::tuple("model-versions/transition-stage",
                      of_model + R"("version": "1", "stage": "Production",
                                    "archive_existing_versions": "yes"})",
                      "archive_existing_versions"),
           std::tuple("runs/create", std::string(R"({"experiment_id": 7})"), "experiment_id"),
           std::tuple("runs/create", std::string(R"({"start_time": "now"})"), "start_time"),
           std::tuple("runs/update", of_run + R"("status": 3})", "status"),
           std::tuple("runs/log-parameter", of_run + R"("key": "rate", "value": 0.1})", "value"),
           std::tuple("runs/log-metric", of_run + R"("key": "a", "value": true})", "value"),
           std::tuple("runs/log-metric", of_run + R"("key": "a", "value": 1, "step": 1.5})",
                      "step"),
           std::tuple("runs/log-metric",
                      of_run + R"("key": "a", "value": 1, "timestamp": 9223372036854775808})",
                      "timestamp"),
           std::tuple(
               "runs/log-batch",
               of_run + R"("params": [{"key": "a", "value": "1"}, {"key": "b", "value": 1}]})",
               "params[1].value"),
           std::tuple("runs/log-batch", of_run + R"("metrics": {"loss": 1}})", "metrics"),
           std::tuple("runs/search", std::string(R"({"experiment_ids": "0"})"), "experiment_ids"),
           std::tuple("runs/search", std::string(R"({"experiment_ids": [0]})"),
                      "experiment_ids[0]"),
       }) {
    const Value answer = Ask("POST", path, body, 400);
    EXPECT_EQ(answer["error_code"].AsString(), "INVALID_PARAMETER_VALUE") << body;
    EXPECT_NE(answer["message"].AsString().find(fmt::format("'{}'", argument)),
              std::string_view::npos)
        << body << ": " << answer["message"].AsString();
  }
  const Value run = Object("runs/" + id);
  EXPECT_TRUE(run["spec"]["params"].empty());
  EXPECT_TRUE(run["status"]["metrics"].empty());
  EXPECT_EQ(run["status"]["state"].AsString(), "RUNNING");
  EXPECT_EQ(Object("runs")["items"].size(), 1u);
  EXPECT_EQ(Object("registeredmodels")["items"].size(), 1u);
  EXPECT_TRUE(Object("registeredmodels/digits")["spec"]["aliases"].empty());
  EXPECT_EQ(Object("modelversions/digits.1")["spec"]["stage"].AsString(), "None");
  // What is null is absent; 64 bits come as digits, too, and numbers as texts.
  Ask("POST", "runs/log-metric",
      of_run + R"("key": "loss", "value": "0.5", "step": "-3", "timestamp": null})");
  EXPECT_EQ(Object("runs/" + id)["status"]["metrics"]["loss"]["step"].AsInt(), -3);
  EXPECT_EQ(ErrorOf("POST", "runs/create", R"({"experiment_id": ""})", 404),
            "RESOURCE_DOES_NOT_EXIST");
}

TEST_F(MlflowTest, ABodyThatIsNotJsonIsRefused) {
  for (const char* type :
       {"", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"}) {
    net::Headers headers;
    if (*type != 0) headers.Add("Content-Type", type);
    const auto refused = server_.Send("POST", std::string(kMlflow) + "registered-models/create",
                                      R"({"name": "digits"})", headers);
    EXPECT_EQ(refused->status, 400) << type;
    EXPECT_EQ(TestServer::Json(*refused)["error_code"].AsString(), "INVALID_PARAMETER_VALUE");
  }
  net::Headers headers;
  headers.Add("Content-Type", "Application/JSON; charset=utf-8");
  EXPECT_EQ(server_
                .Send("POST", std::string(kMlflow) + "registered-models/create",
                      R"({"name": "digits"})", headers)
                ->status,
            200);
}

// Clients read error_code, whoever refuses.
TEST_F(MlflowTest, WhoIsNobodyOrAsksTooMuchIsToldInTheirWords) {
  const auto ask = [&](const std::string& token, const std::string& user) {
    net::Request request;
    request.method = "GET";
    request.target = std::string(kMlflow) + "registered-models/search";
    request.peer.address = "10.42.0.9:4711";
    request.peer.user = user;
    request.peer.groups = {"system:masters"};
    if (!token.empty()) request.headers.Add("Authorization", "Bearer " + token);
    auto writer = std::make_shared<FakeWriter>();
    server_.server->Handle(std::move(request), writer);
    return writer;
  };
  const auto nobody = ask("stolen", "");
  server_.loop.RunReady();
  EXPECT_EQ(nobody->status, 401);
  EXPECT_EQ(TestServer::Json(*nobody)["error_code"].AsString(), "UNAUTHENTICATED");
  EXPECT_EQ(nobody->body.find("stolen"), std::string::npos);
  std::shared_ptr<FakeWriter> last;
  for (size_t i = 0; i <= kMaxWaitingOfUser; ++i) last = ask("", "admin");
  EXPECT_EQ(last->status, 429);
  EXPECT_EQ(TestServer::Json(*last)["error_code"].AsString(), "REQUEST_LIMIT_EXCEEDED");
  server_.loop.RunReady();
}

TEST_F(MlflowTest, APageIsNotLargerThanItsBudget) {
  constexpr int kModels = 400;
  const std::string text(6000, 'x');
  for (int i = 0; i < kModels; ++i) {
    Ask("POST", "registered-models/create",
        fmt::format(R"({{"name": "m{:03}", "description": "{}"}})", i, text));
  }
  size_t seen = 0, pages = 0;
  for (std::string token; pages < 5; ++pages) {
    const auto writer =
        server_.Send("GET", std::string(kMlflow) +
                                "registered-models/search?max_results=1000&page_token=" + token);
    EXPECT_LT(writer->body.size(), kMaxSearchPageBytes * 11 / 10);
    const Value page = TestServer::Json(*writer);
    seen += page["registered_models"].size();
    token = page["next_page_token"].Str();
    if (token.empty()) break;
  }
  EXPECT_EQ(seen, size_t{kModels});
  EXPECT_EQ(pages, 1u);
  // What MLflow's mlflow.search_runs() asks for.
  Ask("POST", "runs/search", R"({"experiment_ids": ["0"], "max_results": 10000})");
  Ask("POST", "runs/search", R"({"experiment_ids": ["0"], "max_results": 50001})", 400);
}

class MlflowScanTest : public MlflowTest {
 protected:
  // `count` runs with so many bytes of tags.
  void MakeRuns(size_t count, size_t bytes) {
    std::string tags;
    for (size_t i = 0; i * 5000 < bytes; ++i)
      tags += fmt::format(R"({}{{"key": "k{}", "value": "{}"}})", i == 0 ? "" : ",", i,
                          std::string(std::min<size_t>(5000, bytes), 'x'));
    for (size_t i = 0; i < count; ++i)
      Ask("POST", "runs/create", R"({"experiment_id": "0", "tags": [)" + tags + "]}");
  }
  std::string Refusal() {
    const Value answer =
        Ask("POST", "runs/search", R"({"experiment_ids": ["0"], "max_results": 1})", 400);
    return answer["message"].Str();
  }
};

TEST_F(MlflowScanTest, MoreObjectsThanASearchReads) {
  MakeRuns(kMaxRegistryScan, 0);
  Ask("POST", "runs/search", R"({"experiment_ids": ["0"], "max_results": 1})");
  MakeRuns(1, 0);
  EXPECT_EQ(Refusal(), "there are more than 5000 of them: search by name");
}

TEST_F(MlflowScanTest, MoreBytesThanOneReadTakes) {
  MakeRuns(kMaxRegistryPage, kMaxRegistryPageBytes / kMaxRegistryPage + 5000);
  EXPECT_EQ(Refusal(), "there is too much to look through: search by name");
}

TEST_F(MlflowScanTest, MoreBytesThanASearchReads) {
  constexpr size_t kOfOne = 30'000;
  MakeRuns(kMaxRegistryScanBytes / kOfOne + kMaxRegistryPage, kOfOne);
  EXPECT_EQ(Refusal(), "there is too much to look through: search by name");
}

// Each holds what it has read until it is answered.
TEST_F(MlflowScanTest, FewSearchesAreInMemoryAtATime) {
  MakeRuns(kMaxRegistryPage + 1, 0);
  std::vector<std::shared_ptr<FakeWriter>> searches;
  for (size_t i = 0; i <= kMaxScans + kMaxWaitingScansOfUser; ++i) {
    searches.push_back(server_.Begin("POST", std::string(kMlflow) + "runs/search",
                                     R"({"experiment_ids": ["0"]})", JsonBody()));
  }
  EXPECT_EQ(searches.front()->status, 0);
  EXPECT_EQ(searches.back()->status, 429) << searches.back()->body;
  server_.loop.RunReady();
  searches.pop_back();
  for (const auto& search : searches) EXPECT_EQ(search->status, 200);
}

// Who may do what with the kinds may do it through MLflow's clients, and nobody else.
TEST_F(MlflowTest, PermissionsAreThoseOfTheKinds) {
  Register("digits", 1);
  const auto as = [&](const std::string& user, const std::string& method, const std::string& path,
                      const std::string& body = "") {
    net::Headers headers = JsonBody();
    headers.Add("Impersonate-User", user);
    return server_.Send(method, kMlflow + path, body, headers);
  };
  for (const char* path :
       {"registered-models/get?name=digits", "registered-models/search", "model-versions/search",
        "experiments/get?experiment_id=0", "experiments/search", "runs/get?run_id=1"}) {
    const auto refused = as("ann", "GET", path);
    EXPECT_EQ(refused->status, 403) << path;
    EXPECT_EQ(TestServer::Json(*refused)["error_code"].AsString(), "PERMISSION_DENIED") << path;
  }
  EXPECT_EQ(as("ann", "POST", "runs/create", "{}")->status, 403);
  Bind("ann", "muster:view-ml");
  EXPECT_EQ(as("ann", "GET", "registered-models/get?name=digits")->status, 200);
  EXPECT_EQ(as("ann", "DELETE", "registered-models/delete", R"({"name": "digits"})")->status, 403);

  // One verb of one kind at a time.
  const auto made = server_.Send("POST", std::string(kRbac) + "roles",
                                 R"({"metadata": {"name": "no-versions"}, "rules": [
                                     {"apiGroups": ["registry.muster.dev"],
                                      "resources": ["registeredmodels", "runs", "experiments"],
                                      "verbs": ["*"]}]})",
                                 JsonBody());
  ASSERT_EQ(made->status, 201) << made->body;
  Bind("bob", "no-versions", "Role");
  EXPECT_EQ(as("bob", "POST", "registered-models/create", R"({"name": "mine"})")->status, 200);
  EXPECT_EQ(as("bob", "POST", "runs/create", R"({"experiment_id": "0"})")->status, 200);
  for (const auto& [method, path, body] :
       {std::tuple("POST", "model-versions/create", R"({"name": "digits", "source": "s"})"),
        std::tuple("DELETE", "model-versions/delete", R"({"name": "digits", "version": "1"})"),
        std::tuple("POST", "model-versions/set-tag",
                   R"({"name": "digits", "version": "1", "key": "a", "value": "b"})"),
        std::tuple("POST", "model-versions/transition-stage",
                   R"({"name": "digits", "version": "1", "stage": "Production"})"),
        std::tuple("POST", "registered-models/alias",
                   R"({"name": "digits", "version": "1", "alias": "a"})"),
        std::tuple("DELETE", "registered-models/delete", R"({"name": "digits"})")})
    EXPECT_EQ(as("bob", method, path, body)->status, 403) << path;
  const auto only = server_.Send("POST", std::string(kRbac) + "roles",
                                 R"({"metadata": {"name": "only-versions"}, "rules": [
                                     {"apiGroups": ["registry.muster.dev"],
                                      "resources": ["modelversions"], "verbs": ["*"]},
                                     {"apiGroups": ["registry.muster.dev"],
                                      "resources": ["registeredmodels"], "verbs": ["get"]}]})",
                                 JsonBody());
  ASSERT_EQ(only->status, 201) << only->body;
  Bind("carol", "only-versions", "Role");
  EXPECT_EQ(as("carol", "DELETE", "registered-models/delete", R"({"name": "digits"})")->status,
            403);
  EXPECT_EQ(Object("modelversions/digits.1")["spec"]["source"].AsString(), "pvc://models/1");
  EXPECT_EQ(Object("modelversions/digits.2")["status"].AsString(), "Failure");
}

}  // namespace
}  // namespace muster::apiserver
