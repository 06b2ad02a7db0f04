// experiments/... and runs/...: what a training job says before it registers its model. There is
// one experiment, Default.

#include <algorithm>

#include "apiserver/mlflow/endpoints.h"
#include "apiserver/mlflow/views.h"
#include "base/strings.h"
#include "base/time.h"

namespace muster::apiserver {
namespace {

using json::Value;

constexpr const char* kRuns = "runs";
constexpr int64_t kDefaultResults = 1000;
constexpr const char* kNameTag = "mlflow.runName";
constexpr const char* kUserTag = "mlflow.user";
constexpr const char* kOneExperiment =
    "there is one experiment, Default (0): runs and models are kept apart by namespaces";

int64_t MillisOf(Time time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

// A number, or its digits, as some clients send 64 bits.
int64_t IntOf(const Value& value, int64_t otherwise) {
  if (value.IsString()) return ParseInt(value.AsString()).value_or(otherwise);
  return value.IsNumber() ? static_cast<int64_t>(value.AsDouble()) : otherwise;
}

// --- experiments

void AnswerIfMayList(const MlflowRequestPtr& request, Value answer) {
  request->kinds->CheckMayList(kRuns, [request, answer = std::move(answer)](Result<Value> allowed) {
    if (!allowed) return request->answer(std::move(allowed));
    request->answer(answer);
  });
}

void AnswerExperiment(const MlflowRequestPtr& request, bool it_is) {
  if (it_is) return AnswerIfMayList(request, json::Obj({{"experiment", DefaultExperimentView()}}));
  request->kinds->CheckMayList(kRuns, [request](Result<Value> allowed) {
    if (!allowed) return request->answer(std::move(allowed));
    request->answer(Error(Reason::kNotFound, "No such experiment: {}", kOneExperiment));
  });
}

void GetExperiment(const MlflowRequestPtr& request) {
  const Result<std::string> id = NeedText(request->arguments, "experiment_id");
  if (!id) return request->answer(Error(id.error()));
  AnswerExperiment(request, *id == kDefaultExperimentId);
}

void GetExperimentByName(const MlflowRequestPtr& request) {
  const Result<std::string> name = NeedText(request->arguments, "experiment_name");
  if (!name) return request->answer(Error(name.error()));
  AnswerExperiment(request, *name == kDefaultExperimentName);
}

void CreateExperiment(const MlflowRequestPtr& request) {
  const Result<std::string> name = NeedText(request->arguments, "name");
  if (!name) return request->answer(Error(name.error()));
  request->kinds->CheckMayList(kRuns, [request, name = *name](Result<Value> allowed) {
    if (!allowed) return request->answer(std::move(allowed));
    if (name == kDefaultExperimentName)
      return request->answer(Error(Reason::kAlreadyExists, "Experiment(name=Default) exists."));
    request->answer(Error(Reason::kInvalid, "{}", kOneExperiment));
  });
}

void SearchExperiments(const MlflowRequestPtr& request) {
  AnswerIfMayList(request, json::Obj({{"experiments", json::List({DefaultExperimentView()})}}));
}

// --- runs

std::string IdOf(const Value& arguments) {
  return arguments["run_id"].Str(arguments["run_uuid"].AsString());
}

Status NoSuchRun(const std::string& id) {
  return Status(Reason::kNotFound, fmt::format("Run with id={} not found", id));
}

void Create(const MlflowRequestPtr& request) {
  const Value& arguments = request->arguments;
  const std::string experiment = arguments["experiment_id"].Str(kDefaultExperimentId);
  if (experiment != kDefaultExperimentId)
    return request->answer(
        Error(Reason::kNotFound, "No Experiment with id={}: {}", experiment, kOneExperiment));
  const std::string id = request->kinds->NewRunId();
  Value tags = MapOf(arguments["tags"]);
  std::string name = arguments["run_name"].Str(tags[kNameTag].AsString());
  if (name.empty()) name = "run-" + id.substr(0, 8);
  tags = std::move(tags).Set(kNameTag, name);
  const std::string user =
      arguments["user_id"].Str(tags[kUserTag].AsString(request->kinds->user().name));
  request->kinds->Create(
      kRuns,
      json::Obj({{"apiVersion", kRegistryGroupVersion},
                 {"kind", "Run"},
                 {"metadata", json::Obj({{"name", id}})},
                 {"spec", json::Obj({{"name", name}, {"user", user}, {"tags", std::move(tags)}})},
                 {"status", json::Obj({{"state", "RUNNING"},
                                       {"startMillis", IntOf(arguments["start_time"],
                                                             MillisOf(request->kinds->now()))}})}}),
      [request](Result<Value> run) {
        if (!run) return request->answer(std::move(run));
        request->answer(json::Obj({{"run", RunView(*run, true)}}));
      });
}

void Get(const MlflowRequestPtr& request) {
  const std::string id = IdOf(request->arguments);
  if (id.empty()) return request->answer(Error(NeedText(Value(), "run_id").error()));
  request->kinds->Get(kRuns, id, [request, id](Result<Value> run) {
    if (!run) return request->answer(Error(Renamed(run.error(), NoSuchRun(id))));
    request->answer(json::Obj({{"run", RunView(*run, true)}}));
  });
}

void Change(
    const MlflowRequestPtr& request, KindsClient::Change change,
    std::function<Value(const Value& run)> say = [](const Value&) { return json::Obj(); }) {
  const std::string id = IdOf(request->arguments);
  if (id.empty()) return request->answer(Error(NeedText(Value(), "run_id").error()));
  request->kinds->Update(kRuns, id, std::move(change),
                         [request, id, say = std::move(say)](Result<Value> run) {
                           if (!run)
                             return request->answer(Error(Renamed(run.error(), NoSuchRun(id))));
                           request->answer(say(*run));
                         });
}

void Update(const MlflowRequestPtr& request) {
  Change(
      request,
      [arguments = request->arguments](const Value& run) -> Result<Value> {
        Value out = run;
        if (const std::string state = arguments["status"].Str(); !state.empty())
          out = std::move(out).SetPath({"status", "state"}, state);
        if (const int64_t end = IntOf(arguments["end_time"], 0); end > 0)
          out = std::move(out).SetPath({"status", "endMillis"}, end);
        if (const std::string name = arguments["run_name"].Str(); !name.empty()) {
          out = std::move(out).SetPath({"spec", "name"}, name);
          out = std::move(out).SetPath({"spec", "tags", kNameTag}, name);
        }
        return out;
      },
      [](const Value& run) { return json::Obj({{"run_info", RunView(run, false)["info"]}}); });
}

Result<Value> WithParameter(const Value& run, const Value& pair) {
  ASSIGN_OR_RETURN(const std::string key, NeedText(pair, "key"));
  const Value& has = run["spec"]["params"][key];
  const std::string value = pair["value"].Str();
  if (!has.IsNull() && has.AsString() != value) {
    return Error(Reason::kInvalid,
                 "Changing param values is not allowed. Param with key='{}' was already logged "
                 "with value='{}'.",
                 key, has.AsString());
  }
  return run.SetPath({"spec", "params", key}, value);
}

// The one of the later step stays.
Result<Value> WithMetric(const Value& run, const Value& metric, Time now) {
  ASSIGN_OR_RETURN(const std::string key, NeedText(metric, "key"));
  ASSIGN_OR_RETURN(const std::string value, NeedText(metric, "value"));
  const int64_t step = IntOf(metric["step"], 0);
  const int64_t millis = IntOf(metric["timestamp"], MillisOf(now));
  const Value& has = run["status"]["metrics"][key];
  if (!has.IsNull() &&
      std::pair(has["step"].AsInt(), has["millis"].AsInt()) > std::pair(step, millis))
    return run;
  return run.SetPath({"status", "metrics", key},
                     json::Obj({{"value", value}, {"millis", millis}, {"step", step}}));
}

Result<Value> WithTag(const Value& run, const Value& pair) {
  ASSIGN_OR_RETURN(const std::string key, NeedText(pair, "key"));
  Value out = run.SetPath({"spec", "tags", key}, pair["value"].Str());
  if (key == kNameTag) out = std::move(out).SetPath({"spec", "name"}, pair["value"].Str());
  return out;
}

void LogParameter(const MlflowRequestPtr& request) {
  Change(request, [arguments = request->arguments](const Value& run) {
    return WithParameter(run, arguments);
  });
}

void LogMetric(const MlflowRequestPtr& request) {
  Change(request, [arguments = request->arguments, now = request->kinds->now()](const Value& run) {
    return WithMetric(run, arguments, now);
  });
}

void SetTag(const MlflowRequestPtr& request) {
  Change(request,
         [arguments = request->arguments](const Value& run) { return WithTag(run, arguments); });
}

void DeleteTag(const MlflowRequestPtr& request) {
  const Result<std::string> key = NeedText(request->arguments, "key");
  if (!key) return request->answer(Error(key.error()));
  Change(request, [key = *key](const Value& run) -> Result<Value> {
    return run.RemovePath({"spec", "tags", key});
  });
}

void LogBatch(const MlflowRequestPtr& request) {
  const Value& arguments = request->arguments;
  const size_t all =
      arguments["metrics"].size() + arguments["params"].size() + arguments["tags"].size();
  if (all > kMaxLoggedAtOnce) {
    return request->answer(
        Error(Reason::kInvalid,
              "A batch logging request can contain at most {} metrics, params and tags, not {}",
              kMaxLoggedAtOnce, all));
  }
  Change(request, [arguments, now = request->kinds->now()](const Value& run) -> Result<Value> {
    Value out = run;
    for (const Value& each : arguments["params"].items()) {
      ASSIGN_OR_RETURN(out, WithParameter(out, each));
    }
    for (const Value& each : arguments["metrics"].items()) {
      ASSIGN_OR_RETURN(out, WithMetric(out, each, now));
    }
    for (const Value& each : arguments["tags"].items()) {
      ASSIGN_OR_RETURN(out, WithTag(out, each));
    }
    return out;
  });
}

void SetDeleted(const MlflowRequestPtr& request, bool deleted) {
  Change(request, [deleted](const Value& run) -> Result<Value> {
    return run.SetPath({"status", "deleted"}, deleted);
  });
}
void Delete(const MlflowRequestPtr& request) { SetDeleted(request, true); }
void Restore(const MlflowRequestPtr& request) { SetDeleted(request, false); }

// Of the experiments that are searched, is Default one?
bool AsksForDefault(const Value& experiments) {
  return std::ranges::any_of(experiments.items(),
                             [](const Value& id) { return id.AsString() == kDefaultExperimentId; });
}

void Search(const MlflowRequestPtr& request) {
  const Result<SearchFilter> filter = SearchFilter::Parse(request->arguments["filter"].AsString());
  if (!filter) return request->answer(Error(filter.error()));
  request->kinds->List(kRuns, "", [request, filter = *filter](Result<Value> runs) {
    if (!runs) return request->answer(std::move(runs));
    const std::string view = request->arguments["run_view_type"].Str("ACTIVE_ONLY");
    json::Array objects = runs->items();
    std::erase_if(objects, [&](const Value& run) {
      const bool deleted = run["status"]["deleted"].AsBool();
      return view != "ALL" && deleted != (view == "DELETED_ONLY");
    });
    if (!AsksForDefault(request->arguments["experiment_ids"])) objects.clear();
    std::ranges::stable_sort(objects, [](const Value& a, const Value& b) {
      return a["status"]["startMillis"].AsInt() > b["status"]["startMillis"].AsInt();
    });
    const Result<SearchPage> page =
        SearchIn(request->arguments, std::move(objects), filter, RunField, kDefaultResults);
    if (!page) return request->answer(Error(page.error()));
    json::Array views;
    for (const Value& run : page->objects) views.push_back(RunView(run, true));
    Value out = json::Obj({{"runs", std::move(views)}});
    if (!page->next_token.empty()) out = std::move(out).Set("next_page_token", page->next_token);
    request->answer(std::move(out));
  });
}

constexpr Endpoint kEndpoints[] = {
    {"GET", "experiments/get", GetExperiment},
    {"GET", "experiments/get-by-name", GetExperimentByName},
    {"POST", "experiments/create", CreateExperiment},
    {"GET", "experiments/search", SearchExperiments},
    {"POST", "experiments/search", SearchExperiments},
    {"POST", "runs/create", Create},
    {"GET", "runs/get", Get},
    {"POST", "runs/update", Update},
    {"POST", "runs/delete", Delete},
    {"POST", "runs/restore", Restore},
    {"POST", "runs/log-parameter", LogParameter},
    {"POST", "runs/log-metric", LogMetric},
    {"POST", "runs/log-batch", LogBatch},
    {"POST", "runs/set-tag", SetTag},
    {"POST", "runs/delete-tag", DeleteTag},
    {"POST", "runs/search", Search},
};

}  // namespace

std::span<const Endpoint> RunEndpoints() { return kEndpoints; }

}  // namespace muster::apiserver
