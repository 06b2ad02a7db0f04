#include "apiserver/mlflow/views.h"

#include <charconv>
#include <limits>
#include <map>
#include <utility>

#include "base/strings.h"
#include "base/time.h"
#include "schema/model_names.h"

namespace muster::apiserver {
namespace {

using json::Value;

// Of a run whose experiment does not say where its files go. With "" clients would put them into
// the folder in which they happen to run; this they refuse, and quote it.
constexpr const char* kNoArtifacts = "the-experiment-has-no-artifact-location:/";

int64_t MillisOf(const Value& time) {
  const std::optional<Time> parsed = ParseTime(time.AsString());
  if (!parsed) return 0;
  return std::chrono::duration_cast<std::chrono::milliseconds>(parsed->time_since_epoch()).count();
}

Value Created(const Value& object) { return MillisOf(object["metadata"]["creationTimestamp"]); }

Value Updated(const Value& object) {
  const Value& time = object["status"]["lastUpdated"];
  return time.IsNull() ? Created(object) : Value(MillisOf(time));
}

// A number where it is one.
Value MetricValue(const Value& metric) {
  const std::string_view text = metric["value"].AsString();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() ||
      text.find_first_of("nN") != text.npos)
    return text;
  return number;
}

// What it is compared by: nothing is beyond infinities; NaN is no number, and comes last.
Value MetricRank(const Value& metric) {
  constexpr double kBeyondAll = std::numeric_limits<double>::max();
  if (metric["value"].AsString() == "Infinity") return kBeyondAll;
  if (metric["value"].AsString() == "-Infinity") return -kBeyondAll;
  Value value = MetricValue(metric);
  return value.IsNumber() ? std::move(value) : Value();
}

Value AliasesOf(const Value& model, int64_t version) {
  Value out = json::List();
  for (const auto& [alias, number] : model["spec"]["aliases"].members())
    if (number.AsInt() == version) out = std::move(out).Append(alias);
  return out;
}

// "tags.team" of {"tags": {"team": ...}}; nothing if the field is not of that map.
std::optional<Value> Word(const Value& spec, const std::string& field, std::string_view map) {
  if (!field.starts_with(map) || field.size() <= map.size() + 1 || field[map.size()] != '.')
    return std::nullopt;
  return spec[map][std::string_view(field).substr(map.size() + 1)];
}

// Clients search for models that are no prompts by a tag that only prompts have.
std::optional<Value> TagOfModel(const Value& spec, const std::string& field) {
  std::optional<Value> tag = Word(spec, field, "tags");
  if (tag && tag->IsNull() && field == "tags.mlflow.prompt.is_prompt") tag = "false";
  return tag;
}

}  // namespace

Value PairsOf(const Value& map) {
  json::Array out;
  for (const auto& [key, value] : map.members())
    out.push_back(json::Obj({{"key", key}, {"value", value}}));
  return out;
}

Value MapOf(const Value& pairs) {
  Value out = json::Obj();
  for (const Value& pair : pairs.items())
    out = std::move(out).Set(pair["key"].AsString(), pair["value"].Str());
  return out;
}

std::string NameOf(const Value& object) {
  return object["spec"]["name"].Str(object["metadata"]["name"].AsString());
}

json::Array LatestOfStages(const json::Array& versions) {
  std::map<std::string, Value> latest;
  for (const Value& version : versions) {
    const Value& spec = version["spec"];
    Value& kept = latest[spec["stage"].Str("None")];
    if (kept["spec"]["version"].AsInt() < spec["version"].AsInt()) kept = version;
  }
  json::Array out;
  for (auto& [stage, version] : latest) out.push_back(std::move(version));
  return out;
}

Value ModelView(const Value& model, const json::Array& versions) {
  const Value& spec = model["spec"];
  json::Array latest, aliases;
  for (const Value& version : LatestOfStages(versions))
    latest.push_back(VersionView(version, model));
  for (const auto& [alias, number] : spec["aliases"].members())
    aliases.push_back(json::Obj({{"alias", alias}, {"version", std::to_string(number.AsInt())}}));
  return json::Obj({{"name", NameOf(model)},
                    {"creation_timestamp", Created(model)},
                    {"last_updated_timestamp", Updated(model)},
                    {"description", spec["description"].Str()},
                    {"latest_versions", std::move(latest)},
                    {"tags", PairsOf(spec["tags"])},
                    {"aliases", std::move(aliases)}});
}

Value VersionView(const Value& version, const Value& model) {
  const Value& spec = version["spec"];
  return json::Obj({{"name", NameOf(model)},
                    {"version", std::to_string(spec["version"].AsInt())},
                    {"creation_timestamp", Created(version)},
                    {"last_updated_timestamp", Updated(version)},
                    {"user_id", spec["user"].Str()},
                    {"current_stage", spec["stage"].Str("None")},
                    {"description", spec["description"].Str()},
                    {"source", spec["source"].Str()},
                    {"run_id", spec["runID"].Str()},
                    {"run_link", spec["runLink"].Str()},
                    {"status", version["status"]["state"].Str("READY")},
                    {"status_message", version["status"]["message"].Str()},
                    {"tags", PairsOf(spec["tags"])},
                    {"aliases", AliasesOf(model, spec["version"].AsInt())}});
}

Value RunView(const Value& run, bool with_data) {
  const Value &spec = run["spec"], &status = run["status"];
  Value info = json::Obj({{"run_id", run["metadata"]["name"]},
                          {"run_uuid", run["metadata"]["name"]},
                          {"run_name", spec["name"].Str()},
                          {"experiment_id", spec["experiment"].Str(schema::kDefaultExperimentId)},
                          {"user_id", spec["user"].Str()},
                          {"status", status["state"].Str("RUNNING")},
                          {"start_time", status["startMillis"].AsInt()},
                          {"artifact_uri", spec["artifactLocation"].Str(kNoArtifacts)},
                          {"lifecycle_stage", status["deleted"].AsBool() ? "deleted" : "active"}});
  if (status.Has("endMillis")) info = std::move(info).Set("end_time", status["endMillis"]);
  Value view = json::Obj({{"info", std::move(info)}});
  if (!with_data) return view;
  json::Array metrics;
  for (const auto& [key, metric] : status["metrics"].members()) {
    metrics.push_back(json::Obj({{"key", key},
                                 {"value", MetricValue(metric)},
                                 {"timestamp", metric["millis"].AsInt()},
                                 {"step", metric["step"].AsInt()}}));
  }
  return std::move(view).Set("data", json::Obj({{"metrics", std::move(metrics)},
                                                {"params", PairsOf(spec["params"])},
                                                {"tags", PairsOf(spec["tags"])}}));
}

Value DefaultExperiment() {
  return json::Obj({{"metadata", json::Obj({{"name", schema::kDefaultExperimentId}})},
                    {"spec", json::Obj({{"name", kDefaultExperimentName}})}});
}

Value ExperimentView(const Value& experiment) {
  const Value& spec = experiment["spec"];
  return json::Obj({{"experiment_id", experiment["metadata"]["name"]},
                    {"name", NameOf(experiment)},
                    {"artifact_location", spec["artifactLocation"].Str()},
                    {"lifecycle_stage", "active"},
                    {"creation_time", Created(experiment)},
                    {"last_update_time", Created(experiment)},
                    {"tags", PairsOf(spec["tags"])}});
}

std::optional<Value> ExperimentField(const Value& experiment, const std::string& field) {
  if (field == "name") return NameOf(experiment);
  if (field == "experiment_id") return experiment["metadata"]["name"];
  if (field == "creation_time" || field == "last_update_time") return Created(experiment);
  return Word(experiment["spec"], field, "tags");
}

std::optional<Value> ModelField(const Value& model, const std::string& field) {
  if (field == "name") return NameOf(model);
  if (field == "creation_timestamp") return Created(model);
  if (field == "last_updated_timestamp" || field == "timestamp") return Updated(model);
  return TagOfModel(model["spec"], field);
}

std::optional<Value> VersionField(const Value& version, const std::string& field) {
  const Value& spec = version["spec"];
  if (field == "version_number" || field == "version") return spec["version"];
  if (field == "run_id") return spec["runID"];
  if (field == "source_path" || field == "source") return spec["source"];
  if (field == "current_stage" || field == "stage") return spec["stage"].Str("None");
  if (field == "creation_timestamp") return Created(version);
  if (field == "last_updated_timestamp" || field == "timestamp") return Updated(version);
  return TagOfModel(spec, field);
}

std::optional<Value> RunField(const Value& run, const std::string& field) {
  const Value &spec = run["spec"], &status = run["status"];
  if (field == "run_id") return run["metadata"]["name"];
  if (field == "run_name" || ToLower(field) == "run name") return spec["name"];
  if (field == "user_id") return spec["user"];
  if (field == "status") return status["state"].Str("RUNNING");
  if (field == "start_time" || ToLower(field) == "created") return status["startMillis"];
  if (field == "end_time") return status["endMillis"];
  if (field == "artifact_uri") return spec["artifactLocation"];
  if (const std::optional<Value> metric = Word(status, field, "metrics"))
    return MetricRank(*metric);
  const std::optional<Value> param = Word(spec, field, "params");
  return param ? param : Word(spec, field, "tags");
}

}  // namespace muster::apiserver
