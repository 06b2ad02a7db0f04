// runs/...: what a training job says before it registers its model.

#include <algorithm>

#include "apiserver/mlflow/endpoints.h"
#include "apiserver/mlflow/views.h"
#include "base/strings.h"
#include "base/time.h"
#include "schema/model_names.h"

namespace muster::apiserver {
namespace {

using json::Value;

constexpr const char* kRuns = "runs";
constexpr int64_t kDefaultResults = 1000;
constexpr const char* kNameTag = "mlflow.runName";
constexpr const char* kUserTag = "mlflow.user";
constexpr int64_t kMostResults = 50'000;

int64_t MillisOf(Time time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

// A number, or its digits, as some clients send 64 bits.
int64_t IntOf(const Value& value, int64_t otherwise) {
  if (value.IsString()) return ParseInt(value.AsString()).value_or(otherwise);
  return value.AsInt(otherwise);
}

std::string IdOf(const Value& arguments) {
  return arguments["run_id"].Str(arguments["run_uuid"].AsString());
}

Status NoSuchRun(const std::string& id) {
  return Status(Reason::kNotFound, fmt::format("Run with id={} not found", id));
}

Value NewRun(const MlflowRequest& request, const Value& experiment, const std::string& id) {
  const Value& arguments = request.arguments;
  Value tags = MapOf(arguments["tags"]);
  std::string name = arguments["run_name"].Str(tags[kNameTag].AsString());
  if (name.empty()) name = "run-" + id.substr(0, 8);
  tags = std::move(tags).Set(kNameTag, name);
  const std::string user =
      arguments["user_id"].Str(tags[kUserTag].AsString(request.kinds->user().name));
  Value metadata = json::Obj({{"name", id}});
  Value spec = json::Obj({{"name", name}, {"user", user}, {"tags", std::move(tags)}});
  const std::string belongs_to = experiment["metadata"]["name"].Str();
  if (belongs_to != schema::kDefaultExperimentId) {
    spec = std::move(spec).Set("experiment", belongs_to);
    // The garbage collector takes it away with its experiment.
    metadata = std::move(metadata).Set("ownerReferences",
                                       json::List({OwnerReference("Experiment", experiment)}));
  }
  if (const std::string folder = experiment["spec"]["artifactLocation"].Str(); !folder.empty()) {
    spec = std::move(spec).Set(
        "artifactLocation",
        fmt::format("{}{}{}/artifacts", folder, folder.ends_with('/') ? "" : "/", id));
  }
  const int64_t start = IntOf(arguments["start_time"], MillisOf(request.kinds->now()));
  return json::Obj({{"apiVersion", kRegistryGroupVersion},
                    {"kind", "Run"},
                    {"metadata", std::move(metadata)},
                    {"spec", std::move(spec)},
                    {"status", json::Obj({{"state", "RUNNING"}, {"startMillis", start}})}});
}

void Create(const MlflowRequestPtr& request) {
  const std::string experiment =
      request->arguments["experiment_id"].Str(schema::kDefaultExperimentId);
  FindExperiment(request, experiment, [request](Result<Value> found) {
    if (!found) return request->answer(std::move(found));
    const std::string id = request->kinds->NewRunId();
    request->kinds->Create(kRuns, NewRun(*request, *found, id), [request](Result<Value> run) {
      if (!run) return request->answer(std::move(run));
      request->answer(json::Obj({{"run", RunView(*run, true)}}));
    });
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

// A run that its maker deleted stays as it was.
KindsClient::Change IfActive(KindsClient::Change change) {
  return [change = std::move(change)](const Value& run) -> Result<Value> {
    if (run["status"]["deleted"].AsBool()) {
      return Error(Reason::kInvalid,
                   "The run {} must be in the 'active' state. Current state is deleted.",
                   run["metadata"]["name"].AsString());
    }
    return change(run);
  };
}

void Update(const MlflowRequestPtr& request) {
  Change(request, IfActive([arguments = request->arguments](const Value& run) -> Result<Value> {
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
         }),
         [](const Value& run) { return json::Obj({{"run_info", RunView(run, false)["info"]}}); });
}

Result<Value> WithParameter(Value run, const Value& pair) {
  ASSIGN_OR_RETURN(const std::string key, NeedText(pair, "key"));
  const std::string value = pair["value"].Str();
  if (const Value& has = run["spec"]["params"][key]; !has.IsNull() && has.AsString() != value) {
    return Error(Reason::kInvalid,
                 "Changing param values is not allowed. Param with key='{}' was already logged "
                 "with value='{}'.",
                 key, has.AsString());
  }
  return std::move(run).SetPath({"spec", "params", key}, value);
}

// The one of the later step stays.
Result<Value> WithMetric(Value run, const Value& metric, Time now) {
  ASSIGN_OR_RETURN(const std::string key, NeedText(metric, "key"));
  ASSIGN_OR_RETURN(const std::string value, NeedText(metric, "value"));
  const int64_t step = IntOf(metric["step"], 0);
  const int64_t millis = IntOf(metric["timestamp"], MillisOf(now));
  if (const Value& has = run["status"]["metrics"][key];
      !has.IsNull() &&
      std::pair(has["step"].AsInt(), has["millis"].AsInt()) > std::pair(step, millis))
    return run;
  return std::move(run).SetPath({"status", "metrics", key},
                                json::Obj({{"value", value}, {"millis", millis}, {"step", step}}));
}

Result<Value> WithTag(Value run, const Value& pair) {
  ASSIGN_OR_RETURN(const std::string key, NeedText(pair, "key"));
  if (key == kNameTag) run = std::move(run).SetPath({"spec", "name"}, pair["value"].Str());
  return std::move(run).SetPath({"spec", "tags", key}, pair["value"].Str());
}

void LogParameter(const MlflowRequestPtr& request) {
  Change(request, IfActive([arguments = request->arguments](const Value& run) {
           return WithParameter(run, arguments);
         }));
}

void LogMetric(const MlflowRequestPtr& request) {
  Change(request, IfActive([arguments = request->arguments, now = request->kinds->now()](
                               const Value& run) { return WithMetric(run, arguments, now); }));
}

void SetTag(const MlflowRequestPtr& request) {
  Change(request, IfActive([arguments = request->arguments](const Value& run) {
           return WithTag(run, arguments);
         }));
}

void DeleteTag(const MlflowRequestPtr& request) {
  const Result<std::string> key = NeedText(request->arguments, "key");
  if (!key) return request->answer(Error(key.error()));
  Change(request, IfActive([key = *key](const Value& run) -> Result<Value> {
           if (!run["spec"]["tags"].Has(key)) {
             return Error(Reason::kNotFound, "No tag with name: {} in run with id {}", key,
                          run["metadata"]["name"].AsString());
           }
           return run.RemovePath({"spec", "tags", key});
         }));
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
  Change(request,
         IfActive([arguments, now = request->kinds->now()](const Value& run) -> Result<Value> {
           Value out = run;
           for (const Value& each : arguments["params"].items()) {
             ASSIGN_OR_RETURN(out, WithParameter(std::move(out), each));
           }
           for (const Value& each : arguments["metrics"].items()) {
             ASSIGN_OR_RETURN(out, WithMetric(std::move(out), each, now));
           }
           for (const Value& each : arguments["tags"].items()) {
             ASSIGN_OR_RETURN(out, WithTag(std::move(out), each));
           }
           return out;
         }));
}

void SetDeleted(const MlflowRequestPtr& request, bool deleted) {
  Change(request, [deleted](const Value& run) -> Result<Value> {
    return run.SetPath({"status", "deleted"}, deleted);
  });
}
void Delete(const MlflowRequestPtr& request) { SetDeleted(request, true); }
void Restore(const MlflowRequestPtr& request) { SetDeleted(request, false); }

bool IsOfView(const Value& run, const std::string& view) {
  return view == "ALL" || run["status"]["deleted"].AsBool() == (view == "DELETED_ONLY");
}

Result<Value> Found(const Value& arguments, const SearchFilter& filter, const Value& runs) {
  const std::vector<std::string> ids = ToStrings(arguments["experiment_ids"]);
  const std::string view = arguments["run_view_type"].Str("ACTIVE_ONLY");
  json::Array objects = runs.items();
  std::erase_if(objects, [&](const Value& run) {
    const std::string of = run["spec"]["experiment"].Str(schema::kDefaultExperimentId);
    return !IsOfView(run, view) || std::ranges::find(ids, of) == ids.end();
  });
  // The newest first, as upstream.
  std::ranges::stable_sort(objects, [](const Value& a, const Value& b) {
    return a["status"]["startMillis"].AsInt() > b["status"]["startMillis"].AsInt();
  });
  return PageView(
      "runs",
      SearchIn(arguments, std::move(objects), filter, RunField, {kDefaultResults, kMostResults}),
      [](const Value& run) { return RunView(run, true); });
}

void Search(const MlflowRequestPtr& request) {
  const Result<SearchFilter> filter = SearchFilter::Parse(request->arguments["filter"].AsString());
  if (!filter) return request->answer(Error(filter.error()));
  const Value& ids = request->arguments["experiment_ids"];
  if (ids.size() > kMaxSearchedExperiments) {
    return request->answer(Error(Reason::kInvalid, "a search is for at most {} experiments, not {}",
                                 kMaxSearchedExperiments, ids.size()));
  }
  const std::string only = ids.size() == 1 ? ids.At(0).Str() : "";
  const bool stored = !only.empty() && only != schema::kDefaultExperimentId;
  request->kinds->List(kRuns, stored ? "spec.experiment=" + schema::ModelObjectName(only) : "",
                       [request, filter = *filter](Result<Value> runs) {
                         if (!runs) return request->answer(std::move(runs));
                         AnswerAway(request,
                                    [arguments = request->arguments, filter, runs = *runs] {
                                      return Found(arguments, filter, runs);
                                    });
                       });
}

// There are none: they cannot be made. Clients look for them beside a run's files.
void SearchLoggedModels(const MlflowRequestPtr& request) {
  request->kinds->CheckMayList(kRuns, [request](Result<Value> may) {
    if (!may) return request->answer(std::move(may));
    request->answer(json::Obj({{"models", json::List()}}));
  });
}

constexpr Endpoint kEndpoints[] = {
    {"POST", "runs/create", Create},        {"GET", "runs/get", Get},
    {"POST", "runs/update", Update},        {"POST", "runs/delete", Delete},
    {"POST", "runs/restore", Restore},      {"POST", "runs/log-parameter", LogParameter},
    {"POST", "runs/log-metric", LogMetric}, {"POST", "runs/log-batch", LogBatch},
    {"POST", "runs/set-tag", SetTag},       {"POST", "runs/delete-tag", DeleteTag},
    {"POST", "runs/search", Search},        {"POST", "logged-models/search", SearchLoggedModels},
};

}  // namespace

std::span<const Endpoint> RunEndpoints() { return kEndpoints; }

}  // namespace muster::apiserver
