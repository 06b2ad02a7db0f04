// model-versions/...

#include <algorithm>
#include <array>
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
constexpr int64_t kDefaultResults = 1000;
constexpr int64_t kMostResults = 200'000;
// Numbers that were taken by objects that somebody made himself.
constexpr int kNumberTries = 10;

struct Which {
  std::string name;
  int64_t number = 0;
  std::string Object() const {
    return schema::ModelVersionObjectName(schema::ModelObjectName(name), number);
  }
  Status Missing() const {
    return Status(Reason::kNotFound,
                  fmt::format("Model Version (name={}, version={}) not found", name, number));
  }
};

Result<Which> WhichOf(const Value& arguments) {
  ASSIGN_OR_RETURN(std::string name, NeedText(arguments, "name"));
  ASSIGN_OR_RETURN(const std::string version, NeedText(arguments, "version"));
  const std::optional<int64_t> number = ParseInt(version);
  if (!number || *number < 1)
    return Error(Reason::kInvalid, "Parameter 'version' must be an integer, got '{}'.", version);
  return Which{std::move(name), *number};
}

void AnswerVersion(const MlflowRequestPtr& request, const Value& version, const Value& model) {
  request->answer(json::Obj({{"model_version", VersionView(version, model)}}));
}

// The version that the arguments name and its model.
void Find(const MlflowRequestPtr& request,
          std::function<void(const Value& version, const Value& model)> then) {
  const Result<Which> which = WhichOf(request->arguments);
  if (!which) return request->answer(Error(which.error()));
  FindModel(request, which->name,
            [request, which = *which, then = std::move(then)](Result<Value> model) {
              if (!model) return request->answer(std::move(model));
              request->kinds->Get(
                  kVersions, which.Object(),
                  [request, which, then, model = *model](Result<Value> version) {
                    if (!version)
                      return request->answer(Error(Renamed(version.error(), which.Missing())));
                    then(*version, model);
                  });
            });
}

void Change(const MlflowRequestPtr& request, std::function<Value(const Value&)> change,
            std::function<void(const Value& version, const Value& model)> then) {
  Find(request, [request, change = std::move(change), then = std::move(then)](const Value& version,
                                                                              const Value& model) {
    request->kinds->Update(
        kVersions, version["metadata"]["name"].AsString(),
        [change, now = request->kinds->now()](const Value& object) -> Result<Value> {
          return change(object).SetPath({"status", "lastUpdated"}, FormatTime(now));
        },
        [request, then, model](Result<Value> changed) {
          if (!changed) return request->answer(std::move(changed));
          then(*changed, model);
        });
  });
}

Value NewVersion(const MlflowRequest& request, const Value& model, int64_t number) {
  const Value& arguments = request.arguments;
  const std::string object = model["metadata"]["name"].Str();
  Value spec = json::Obj({{"model", object},
                          {"version", number},
                          {"source", arguments["source"].Str()},
                          {"user", request.kinds->user().name},
                          {"tags", MapOf(arguments["tags"])}});
  struct Field {
    const char *argument, *field;
  };
  for (const Field& each : {Field{"run_id", "runID"}, Field{"run_link", "runLink"},
                            Field{"description", "description"}}) {
    if (const std::string text = arguments[each.argument].Str(); !text.empty())
      spec = std::move(spec).Set(each.field, text);
  }
  // The garbage collector takes it away with its model.
  Value owner = OwnerReference("RegisteredModel", model);
  return json::Obj(
      {{"apiVersion", kRegistryGroupVersion},
       {"kind", "ModelVersion"},
       {"metadata", json::Obj({{"name", schema::ModelVersionObjectName(object, number)},
                               {"ownerReferences", json::List({std::move(owner)})}})},
       {"spec", std::move(spec)},
       {"status", json::Obj({{"state", "READY"}})}});
}

// Takes the next number, then makes the version.
void TryCreate(const MlflowRequestPtr& request, const std::string& name, int tries) {
  const Time now = request->kinds->now();
  request->kinds->Update(
      kModels, schema::ModelObjectName(name),
      OfModel(name,
              [now](const Value& model) -> Result<Value> {
                const int64_t next = model["status"]["latestVersion"].AsInt() + 1;
                return model.Set("status", json::Obj({{"latestVersion", next},
                                                      {"lastUpdated", FormatTime(now)}}));
              }),
      [request, name, tries](Result<Value> model) {
        if (!model) return request->answer(Error(Renamed(model.error(), NoSuchModel(name))));
        const int64_t number = (*model)["status"]["latestVersion"].AsInt();
        request->kinds->Create(
            kVersions, NewVersion(*request, *model, number),
            [request, name, tries, model = *model](Result<Value> version) {
              if (version) return AnswerVersion(request, *version, model);
              if (version.error().reason() == Reason::kAlreadyExists && tries < kNumberTries) {
                return TryCreate(request, name, tries + 1);
              }
              request->answer(std::move(version));
            });
      });
}

void Create(const MlflowRequestPtr& request) {
  const Result<std::string> name = NeedText(request->arguments, "name"),
                            source = NeedText(request->arguments, "source");
  for (const auto* each : {&name, &source})
    if (!*each) return request->answer(Error(each->error()));
  if (const std::string id = request->arguments["model_id"].Str(); !id.empty()) {
    return request->answer(
        Error(Reason::kInvalid, "there are no logged models here ({}): say where it lies", id));
  }
  TryCreate(request, *name, 1);
}

void Get(const MlflowRequestPtr& request) {
  Find(request, [request](const Value& version, const Value& model) {
    AnswerVersion(request, version, model);
  });
}

void GetDownloadUri(const MlflowRequestPtr& request) {
  Find(request, [request](const Value& version, const Value&) {
    request->answer(json::Obj({{"artifact_uri", version["spec"]["source"].Str()}}));
  });
}

void Update(const MlflowRequestPtr& request) {
  Change(
      request,
      [text = request->arguments["description"].Str()](const Value& version) {
        return version.SetPath({"spec", "description"}, text);
      },
      [request](const Value& version, const Value& model) {
        AnswerVersion(request, version, model);
      });
}

void SetTag(const MlflowRequestPtr& request) {
  const Result<std::string> key = NeedText(request->arguments, "key");
  if (!key) return request->answer(Error(key.error()));
  Change(
      request,
      [key = *key, value = request->arguments["value"].Str()](const Value& version) {
        return version.SetPath({"spec", "tags", key}, value);
      },
      [request](const Value&, const Value&) { request->answer(json::Obj()); });
}

void DeleteTag(const MlflowRequestPtr& request) {
  const Result<std::string> key = NeedText(request->arguments, "key");
  if (!key) return request->answer(Error(key.error()));
  Change(
      request,
      [key = *key](const Value& version) { return version.RemovePath({"spec", "tags", key}); },
      [request](const Value&, const Value&) { request->answer(json::Obj()); });
}

// An alias of a version that is gone would name nothing.
Value WithoutAliasesOf(const Value& model, int64_t number) {
  Value out = model;
  for (const auto& [alias, version] : model["spec"]["aliases"].members())
    if (version.AsInt() == number) out = out.RemovePath({"spec", "aliases", alias});
  return out;
}

void Delete(const MlflowRequestPtr& request) {
  Find(request, [request](const Value& version, const Value& model) {
    const int64_t number = version["spec"]["version"].AsInt();
    request->kinds->Update(
        kModels, model["metadata"]["name"].AsString(),
        [number](const Value& object) -> Result<Value> {
          Value changed = WithoutAliasesOf(object, number);
          return changed == object ? Value() : changed;
        },
        [request, name = version["metadata"]["name"].Str()](Result<Value> changed) {
          if (!changed) return request->answer(std::move(changed));
          request->kinds->Delete(kVersions, name, [request](Result<Value> gone) {
            if (!gone) return request->answer(std::move(gone));
            request->answer(json::Obj());
          });
        });
  });
}

// Those with their models, by the models' objects.
Result<Value> Found(const Value& arguments, const SearchFilter& filter, const Value& versions,
                    const Value& models) {
  std::unordered_map<std::string, Value> by_object;
  for (const Value& model : models.items()) by_object[model["metadata"]["name"].Str()] = model;
  const auto model_of = [&by_object](const Value& version) -> Value {
    const auto found = by_object.find(version["spec"]["model"].Str());
    if (found != by_object.end()) return found->second;
    return json::Obj({{"metadata", json::Obj({{"name", version["spec"]["model"]}})}});
  };
  const FieldLookup lookup = [&](const Value& version,
                                 const std::string& field) -> std::optional<Value> {
    if (field == "name") return NameOf(model_of(version));
    return VersionField(version, field);
  };
  // The newest first, as upstream.
  json::Array objects = versions.items();
  std::ranges::stable_sort(objects, [](const Value& a, const Value& b) {
    return a["spec"]["version"].AsInt() > b["spec"]["version"].AsInt();
  });
  return PageView(
      "model_versions",
      SearchIn(arguments, std::move(objects), filter, lookup, {kDefaultResults, kMostResults}),
      [&](const Value& version) { return VersionView(version, model_of(version)); });
}

void Search(const MlflowRequestPtr& request) {
  const Result<SearchFilter> filter = SearchFilter::Parse(request->arguments["filter"].AsString());
  if (!filter) return request->answer(Error(filter.error()));
  const std::string name = filter->Equal("name");
  const std::string selector = name.empty() ? "" : "spec.model=" + schema::ModelObjectName(name);
  request->kinds->List(kVersions, selector, [request, filter = *filter](Result<Value> versions) {
    if (!versions) return request->answer(std::move(versions));
    request->kinds->List(
        kModels, "", [request, filter, versions = *versions](Result<Value> models) {
          if (!models) return request->answer(std::move(models));
          AnswerAway(request, [arguments = request->arguments, filter, versions, models = *models] {
            return Found(arguments, filter, versions, models);
          });
        });
  });
}

Result<std::string> StageOf(const Value& arguments) {
  constexpr std::array<std::string_view, 4> kStages = {"None", "Staging", "Production", "Archived"};
  ASSIGN_OR_RETURN(const std::string asked, NeedText(arguments, "stage"));
  for (const std::string_view stage : kStages)
    if (EqualsIgnoreCase(stage, asked)) return std::string(stage);
  return Error(Reason::kInvalid,
               "Invalid Model Version stage: {}. Value must be one of None, Staging, Production, "
               "Archived.",
               asked);
}

// Who goes to a stage and sends the others away.
struct Transition {
  std::string stage;
  int64_t version = 0;
  // Who came after it stays: of two that go to production at a time, one is left there.
  int64_t revision = 0;

  bool Replaces(const Value& other) const {
    const Value& spec = other["spec"];
    return spec["stage"].AsString() == stage && spec["version"].AsInt() != version &&
           ParseInt(other["metadata"]["resourceVersion"].AsString()).value_or(0) < revision;
  }
};

// Archives the versions from `at` on, then goes on.
void ArchiveFrom(const MlflowRequestPtr& request, const Transition& transition, const Value& others,
                 size_t at, std::function<void()> then) {
  if (at == others.size()) return then();
  request->kinds->Update(
      kVersions, others.At(at)["metadata"]["name"].AsString(),
      [transition, now = request->kinds->now()](const Value& version) -> Result<Value> {
        if (!transition.Replaces(version)) return Value();
        return version.SetPath({"spec", "stage"}, "Archived")
            .SetPath({"status", "lastUpdated"}, FormatTime(now));
      },
      [request, transition, others, at, then = std::move(then)](Result<Value> archived) {
        if (!archived && archived.error().reason() != Reason::kNotFound)
          return request->answer(std::move(archived));
        ArchiveFrom(request, transition, others, at + 1, then);
      });
}

void ArchiveOthers(const MlflowRequestPtr& request, const Value& model,
                   const Transition& transition, std::function<void()> then) {
  request->kinds->List(
      kVersions, "spec.model=" + model["metadata"]["name"].Str(),
      [request, transition, then = std::move(then)](Result<Value> versions) {
        if (!versions) return request->answer(std::move(versions));
        json::Array others = versions->items();
        std::erase_if(others, [&](const Value& version) { return !transition.Replaces(version); });
        request->kinds->EndScan();
        ArchiveFrom(request, transition, std::move(others), 0, then);
      });
}

void TransitionStage(const MlflowRequestPtr& request) {
  const Result<std::string> stage = StageOf(request->arguments);
  if (!stage) return request->answer(Error(stage.error()));
  auto stayed = std::make_shared<bool>(false);
  Change(
      request,
      [stage = *stage, stayed](const Value& version) {
        *stayed = version["spec"]["stage"].AsString() == stage;
        return version.SetPath({"spec", "stage"}, stage);
      },
      [request, stage = *stage, stayed](const Value& version, const Value& model) {
        if (!request->arguments["archive_existing_versions"].AsBool())
          return AnswerVersion(request, version, model);
        // One that was there is as old as it is.
        const int64_t revision =
            *stayed ? INT64_MAX
                    : ParseInt(version["metadata"]["resourceVersion"].AsString()).value_or(0);
        ArchiveOthers(request, model, {stage, version["spec"]["version"].AsInt(), revision},
                      [request, version, model] { AnswerVersion(request, version, model); });
      });
}

constexpr Endpoint kEndpoints[] = {
    {"POST", "model-versions/create", Create},
    {"GET", "model-versions/get", Get},
    {"PATCH", "model-versions/update", Update},
    {"DELETE", "model-versions/delete", Delete},
    {"GET", "model-versions/search", Search},
    {"POST", "model-versions/transition-stage", TransitionStage},
    {"POST", "model-versions/set-tag", SetTag},
    {"DELETE", "model-versions/delete-tag", DeleteTag},
    {"GET", "model-versions/get-download-uri", GetDownloadUri},
};

}  // namespace

std::span<const Endpoint> VersionEndpoints() { return kEndpoints; }

}  // namespace muster::apiserver
