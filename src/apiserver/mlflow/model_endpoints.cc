// registered-models/...

#include <unordered_map>

#include "apiserver/mlflow/endpoints.h"
#include "apiserver/mlflow/views.h"
#include "base/strings.h"
#include "base/time.h"
#include "schema/model_names.h"

namespace muster::apiserver {
namespace {

using json::Value;

constexpr const char* kModels = "registeredmodels";
constexpr const char* kVersions = "modelversions";
constexpr int64_t kDefaultResults = 100;
constexpr int64_t kMostResults = 1000;

std::string VersionsOf(const Value& model) {
  return "spec.model=" + model["metadata"]["name"].Str();
}

void AnswerModel(const MlflowRequestPtr& request, const Value& model) {
  request->kinds->List(kVersions, VersionsOf(model), [request, model](Result<Value> versions) {
    if (!versions) return request->answer(std::move(versions));
    request->answer(json::Obj({{"registered_model", ModelView(model, versions->items())}}));
  });
}

void Create(const MlflowRequestPtr& request) {
  const Result<std::string> name = NeedText(request->arguments, "name");
  if (!name) return request->answer(Error(name.error()));
  if (name->size() > schema::kMaxModelNameBytes) {
    return request->answer(Error(Reason::kInvalid, "the name of a model has at most {} bytes",
                                 schema::kMaxModelNameBytes));
  }
  if (Trim(*name).empty() || name->find_first_of("/:") != std::string::npos) {
    return request->answer(Error(
        Reason::kInvalid, "Invalid model name '{}'. Names cannot contain '/' or ':'.", *name));
  }
  const std::string object = schema::ModelObjectName(*name);
  Value spec = json::Obj({{"tags", MapOf(request->arguments["tags"])}});
  if (object != *name) spec = std::move(spec).Set("name", *name);
  if (const std::string text = request->arguments["description"].Str(); !text.empty())
    spec = std::move(spec).Set("description", text);
  request->kinds->Create(
      kModels,
      json::Obj({{"apiVersion", kRegistryGroupVersion},
                 {"kind", "RegisteredModel"},
                 {"metadata", json::Obj({{"name", object}})},
                 {"spec", std::move(spec)}}),
      [request, name = *name](Result<Value> model) {
        if (model) return request->answer(json::Obj({{"registered_model", ModelView(*model, {})}}));
        if (model.error().reason() != Reason::kAlreadyExists)
          return request->answer(std::move(model));
        request->answer(
            Error(Reason::kAlreadyExists, "Registered Model (name={}) already exists.", name));
      });
}

void Get(const MlflowRequestPtr& request) {
  const Result<std::string> name = NeedText(request->arguments, "name");
  if (!name) return request->answer(Error(name.error()));
  FindModel(request, *name, [request](Result<Value> model) {
    if (!model) return request->answer(std::move(model));
    AnswerModel(request, *model);
  });
}

// Changes the model that the arguments name; `then` gets the new state.
void Change(const MlflowRequestPtr& request, std::function<Result<Value>(const Value&)> change,
            std::function<void(const Value&)> then) {
  const Result<std::string> name = NeedText(request->arguments, "name");
  if (!name) return request->answer(Error(name.error()));
  const Time now = request->kinds->now();
  request->kinds->Update(
      kModels, schema::ModelObjectName(*name),
      OfModel(*name,
              [change = std::move(change), now](const Value& model) -> Result<Value> {
                ASSIGN_OR_RETURN(const Value changed, change(model));
                return changed.SetPath({"status", "lastUpdated"}, FormatTime(now));
              }),
      [request, name = *name, then = std::move(then)](Result<Value> model) {
        if (!model) return request->answer(Error(Renamed(model.error(), NoSuchModel(name))));
        then(*model);
      });
}

void Update(const MlflowRequestPtr& request) {
  Change(
      request,
      [text = request->arguments["description"].Str()](const Value& model) -> Result<Value> {
        return model.SetPath({"spec", "description"}, text);
      },
      [request](const Value& model) { AnswerModel(request, model); });
}

void AnswerNothing(const MlflowRequestPtr& request, const Value&) { request->answer(json::Obj()); }

void SetTag(const MlflowRequestPtr& request) {
  const Result<std::string> key = NeedText(request->arguments, "key");
  if (!key) return request->answer(Error(key.error()));
  Change(
      request,
      [key = *key, value = request->arguments["value"].Str()](const Value& model) -> Result<Value> {
        return model.SetPath({"spec", "tags", key}, value);
      },
      [request](const Value& model) { AnswerNothing(request, model); });
}

void DeleteTag(const MlflowRequestPtr& request) {
  const Result<std::string> key = NeedText(request->arguments, "key");
  if (!key) return request->answer(Error(key.error()));
  Change(
      request,
      [key = *key](const Value& model) -> Result<Value> {
        return model.RemovePath({"spec", "tags", key});
      },
      [request](const Value& model) { AnswerNothing(request, model); });
}

void Delete(const MlflowRequestPtr& request) {
  const Result<std::string> name = NeedText(request->arguments, "name");
  if (!name) return request->answer(Error(name.error()));
  FindModel(request, *name, [request](Result<Value> model) {
    if (!model) return request->answer(std::move(model));
    const std::string object = (*model)["metadata"]["name"].Str();
    // Both or none: who may not delete the model does not take its versions away.
    if (AnswerError(request, request->kinds->CheckMayDelete(kModels, object))) return;
    request->kinds->DeleteAll(
        kVersions, VersionsOf(*model), [request, object](Result<Value> versions) {
          if (!versions) return request->answer(std::move(versions));
          request->kinds->Delete(kModels, object, [request](Result<Value> gone) {
            if (!gone) return request->answer(std::move(gone));
            request->answer(json::Obj());
          });
        });
  });
}

Result<Value> Found(const Value& arguments, const SearchFilter& filter, const Value& models,
                    const Value& versions) {
  std::unordered_map<std::string, json::Array> of;  // by the model's object
  for (const Value& version : versions.items())
    of[version["spec"]["model"].Str()].push_back(version);
  return PageView(
      "registered_models",
      SearchIn(arguments, models.items(), filter, ModelField, {kDefaultResults, kMostResults}),
      [&of](const Value& model) { return ModelView(model, of[model["metadata"]["name"].Str()]); });
}

void Search(const MlflowRequestPtr& request) {
  const Result<SearchFilter> filter = SearchFilter::Parse(request->arguments["filter"].AsString());
  if (!filter) return request->answer(Error(filter.error()));
  request->kinds->List(kModels, "", [request, filter = *filter](Result<Value> models) {
    if (!models) return request->answer(std::move(models));
    request->kinds->List(
        kVersions, "", [request, filter, models = *models](Result<Value> versions) {
          if (!versions) return request->answer(std::move(versions));
          AnswerAway(request,
                     [arguments = request->arguments, filter, models, versions = *versions] {
                       return Found(arguments, filter, models, versions);
                     });
        });
  });
}

void GetLatestVersions(const MlflowRequestPtr& request) {
  const Result<std::string> name = NeedText(request->arguments, "name");
  if (!name) return request->answer(Error(name.error()));
  FindModel(request, *name, [request](Result<Value> model) {
    if (!model) return request->answer(std::move(model));
    request->kinds->List(
        kVersions, VersionsOf(*model), [request, model = *model](Result<Value> versions) {
          if (!versions) return request->answer(std::move(versions));
          json::Array views;
          const Value& stages = request->arguments["stages"];
          for (const Value& version : LatestOfStages(versions->items())) {
            bool wanted = stages.empty();
            for (const Value& stage : stages.items())
              wanted = wanted || EqualsIgnoreCase(stage.AsString(),
                                                  version["spec"]["stage"].AsString("None"));
            if (wanted) views.push_back(VersionView(version, model));
          }
          request->answer(json::Obj({{"model_versions", std::move(views)}}));
        });
  });
}

Status CheckAlias(const std::string& alias) {
  const bool like_version = alias.size() > 1 && (alias[0] == 'v' || alias[0] == 'V') &&
                            ParseInt(std::string_view(alias).substr(1)).has_value();
  if (!like_version && ToLower(alias) != "latest" && !ParseInt(alias)) return Status::Ok();
  return Error(Reason::kInvalid, "'{}' is no alias: latest, numbers and v1, v2, ... are taken",
               alias);
}

void SetAlias(const MlflowRequestPtr& request) {
  const Result<std::string> name = NeedText(request->arguments, "name"),
                            alias = NeedText(request->arguments, "alias"),
                            version = NeedText(request->arguments, "version");
  for (const auto* each : {&name, &alias, &version})
    if (!*each) return request->answer(Error(each->error()));
  if (AnswerError(request, CheckAlias(*alias))) return;
  const int64_t number = ParseInt(*version).value_or(0);
  request->kinds->Get(
      kVersions, schema::ModelVersionObjectName(schema::ModelObjectName(*name), number),
      [request, name = *name, alias = *alias, number](Result<Value> found) {
        const Status missing(
            Reason::kNotFound,
            fmt::format("Model Version (name={}, version={}) not found", name, number));
        if (!found) return request->answer(Error(Renamed(found.error(), missing)));
        Change(
            request,
            [alias, number](const Value& model) -> Result<Value> {
              return model.SetPath({"spec", "aliases", alias}, number);
            },
            [request](const Value& model) { AnswerNothing(request, model); });
      });
}

void DeleteAlias(const MlflowRequestPtr& request) {
  const Result<std::string> alias = NeedText(request->arguments, "alias");
  if (!alias) return request->answer(Error(alias.error()));
  Change(
      request,
      [alias = *alias](const Value& model) -> Result<Value> {
        return model.RemovePath({"spec", "aliases", alias});
      },
      [request](const Value& model) { AnswerNothing(request, model); });
}

void GetByAlias(const MlflowRequestPtr& request) {
  const Result<std::string> name = NeedText(request->arguments, "name"),
                            alias = NeedText(request->arguments, "alias");
  for (const auto* each : {&name, &alias})
    if (!*each) return request->answer(Error(each->error()));
  FindModel(request, *name, [request, alias = *alias](Result<Value> model) {
    if (!model) return request->answer(std::move(model));
    const int64_t number = (*model)["spec"]["aliases"][alias].AsInt();
    if (number == 0) {
      return request->answer(
          Error(Reason::kNotFound, "Registered model alias {} not found.", alias));
    }
    request->kinds->Get(
        kVersions, schema::ModelVersionObjectName((*model)["metadata"]["name"].AsString(), number),
        [request, model = *model, alias, number](Result<Value> version) {
          const Status gone(Reason::kNotFound,
                            fmt::format("Registered model alias {} names version {}, which is gone",
                                        alias, number));
          if (!version) return request->answer(Error(Renamed(version.error(), gone)));
          request->answer(json::Obj({{"model_version", VersionView(*version, model)}}));
        });
  });
}

constexpr Endpoint kEndpoints[] = {
    {"POST", "registered-models/create", Create},
    {"GET", "registered-models/get", Get},
    {"PATCH", "registered-models/update", Update},
    {"DELETE", "registered-models/delete", Delete},
    {"GET", "registered-models/search", Search},
    {"GET", "registered-models/get-latest-versions", GetLatestVersions},
    {"POST", "registered-models/get-latest-versions", GetLatestVersions},
    {"POST", "registered-models/set-tag", SetTag},
    {"DELETE", "registered-models/delete-tag", DeleteTag},
    {"POST", "registered-models/alias", SetAlias},
    {"DELETE", "registered-models/alias", DeleteAlias},
    {"GET", "registered-models/alias", GetByAlias},
};

}  // namespace

std::span<const Endpoint> ModelEndpoints() { return kEndpoints; }

}  // namespace muster::apiserver
