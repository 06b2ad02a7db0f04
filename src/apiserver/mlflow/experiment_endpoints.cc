// experiments/...: what runs belong to. Default is there without an object.

#include "apiserver/mlflow/endpoints.h"
#include "apiserver/mlflow/views.h"
#include "schema/model_names.h"

namespace muster::apiserver {
namespace {

using json::Value;

constexpr const char* kExperiments = "experiments";
constexpr int64_t kDefaultResults = 1000;
constexpr int64_t kMostResults = 50'000;

Status NoSuchExperiment(std::string_view what) {
  return Status(Reason::kNotFound, fmt::format("No Experiment with {} exists", what));
}

// It has no object, but who may not read others may not read it.
void FindDefault(const MlflowRequestPtr& request, KindsClient::Done done) {
  request->kinds->CheckMayList(kExperiments, [done = std::move(done)](Result<Value> may) mutable {
    if (!may) return done(std::move(may));
    done(DefaultExperiment());
  });
}

void Answer(const MlflowRequestPtr& request, Result<Value> experiment) {
  if (!experiment) return request->answer(std::move(experiment));
  request->answer(json::Obj({{"experiment", ExperimentView(*experiment)}}));
}

void Get(const MlflowRequestPtr& request) {
  const Result<std::string> id = NeedText(request->arguments, "experiment_id");
  if (!id) return request->answer(Error(id.error()));
  FindExperiment(request, *id, [request](Result<Value> found) { Answer(request, found); });
}

void GetByName(const MlflowRequestPtr& request) {
  const Result<std::string> name = NeedText(request->arguments, "experiment_name");
  if (!name) return request->answer(Error(name.error()));
  const auto answer = [request](Result<Value> found) { Answer(request, found); };
  if (*name == kDefaultExperimentName) return FindDefault(request, answer);
  request->kinds->Get(kExperiments, schema::ModelObjectName(*name),
                      [name = *name, answer](Result<Value> found) {
                        const Status missing = NoSuchExperiment(fmt::format("name={}", name));
                        if (!found) return answer(Error(Renamed(found.error(), missing)));
                        if (NameOf(*found) != name) return answer(Error(missing));
                        answer(std::move(found));
                      });
}

void Create(const MlflowRequestPtr& request) {
  const Value& arguments = request->arguments;
  const Result<std::string> name = NeedText(arguments, "name");
  if (!name) return request->answer(Error(name.error()));
  const Status exists = Error(Reason::kAlreadyExists, "Experiment(name={}) already exists.", *name);
  if (*name == kDefaultExperimentName) return request->answer(Error(exists));
  const std::string object = schema::ModelObjectName(*name);
  Value spec = json::Obj({{"tags", MapOf(arguments["tags"])}});
  if (object != *name) spec = std::move(spec).Set("name", *name);
  if (const std::string folder = arguments["artifact_location"].Str(); !folder.empty())
    spec = std::move(spec).Set("artifactLocation", folder);
  request->kinds->Create(
      kExperiments,
      json::Obj({{"apiVersion", kRegistryGroupVersion},
                 {"kind", "Experiment"},
                 {"metadata", json::Obj({{"name", object}})},
                 {"spec", std::move(spec)}}),
      [request, exists](Result<Value> made) {
        if (made) {
          return request->answer(json::Obj({{"experiment_id", (*made)["metadata"]["name"]}}));
        }
        const bool twice = made.error().reason() == Reason::kAlreadyExists;
        request->answer(Error(twice ? exists : made.error()));
      });
}

Result<Value> Found(const Value& arguments, const SearchFilter& filter, const Value& stored) {
  json::Array all = stored.items();
  all.push_back(DefaultExperiment());
  // None is ever only marked as deleted.
  if (arguments["view_type"].AsString() == "DELETED_ONLY") all.clear();
  return PageView(
      "experiments",
      SearchIn(arguments, std::move(all), filter, ExperimentField, {kDefaultResults, kMostResults}),
      ExperimentView);
}

void Search(const MlflowRequestPtr& request) {
  const Result<SearchFilter> filter = SearchFilter::Parse(request->arguments["filter"].AsString());
  if (!filter) return request->answer(Error(filter.error()));
  request->kinds->List(kExperiments, "", [request, filter = *filter](Result<Value> stored) {
    if (!stored) return request->answer(std::move(stored));
    AnswerAway(request, [arguments = request->arguments, filter, stored = *stored] {
      return Found(arguments, filter, stored);
    });
  });
}

void SetTag(const MlflowRequestPtr& request) {
  const Result<std::string> id = NeedText(request->arguments, "experiment_id"),
                            key = NeedText(request->arguments, "key");
  for (const auto* each : {&id, &key})
    if (!*each) return request->answer(Error(each->error()));
  if (*id == schema::kDefaultExperimentId)
    return request->answer(Error(Reason::kInvalid, "Default has no tags: make an experiment"));
  request->kinds->Update(
      kExperiments, *id,
      [key = *key, value = request->arguments["value"].Str()](const Value& experiment)
          -> Result<Value> { return experiment.SetPath({"spec", "tags", key}, value); },
      [request, id = *id](Result<Value> changed) {
        const Status missing = NoSuchExperiment(fmt::format("id={}", id));
        if (!changed) return request->answer(Error(Renamed(changed.error(), missing)));
        request->answer(json::Obj());
      });
}

constexpr Endpoint kEndpoints[] = {
    {"GET", "experiments/get", Get},        {"GET", "experiments/get-by-name", GetByName},
    {"POST", "experiments/create", Create}, {"GET", "experiments/search", Search},
    {"POST", "experiments/search", Search}, {"POST", "experiments/set-experiment-tag", SetTag},
};

}  // namespace

void FindExperiment(const MlflowRequestPtr& request, const std::string& id,
                    KindsClient::Done done) {
  if (id == schema::kDefaultExperimentId) return FindDefault(request, std::move(done));
  if (id.empty()) return done(Error(NoSuchExperiment("id=")));
  request->kinds->Get(kExperiments, id, [id, done = std::move(done)](Result<Value> found) mutable {
    const Status missing = NoSuchExperiment(fmt::format("id={}", id));
    if (!found) return done(Error(Renamed(found.error(), missing)));
    done(std::move(found));
  });
}

std::span<const Endpoint> ExperimentEndpoints() { return kEndpoints; }

}  // namespace muster::apiserver
