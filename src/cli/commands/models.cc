// muster models: the registry of models of a namespace.

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/printable.h"
#include "cli/session.h"
#include "cli/table_printer.h"
#include "json/write.h"
#include "schema/model_names.h"

namespace muster::cli {
namespace {

using json::Value;

const client::Resource kModels{"registry.muster.dev", "v1alpha1", "registeredmodels"};
const client::Resource kVersions{"registry.muster.dev", "v1alpha1", "modelversions"};
const client::Resource kRuns{"registry.muster.dev", "v1alpha1", "runs"};

std::string NameOf(const Value& model) {
  return model["spec"]["name"].Str(model["metadata"]["name"].AsString());
}

std::string AliasesOf(const Value& model, int64_t version) {
  std::vector<std::string> out;
  for (const auto& [alias, number] : model["spec"]["aliases"].members())
    if (number.AsInt() == version) out.push_back(alias);
  return out.empty() ? "-" : Printable(Join(out, ","));
}

std::string PairsOf(const Value& map) {
  std::vector<std::string> out;
  for (const auto& [key, value] : map.members()) {
    const Value& shown = value.IsObject() ? value["value"] : value;
    out.push_back(fmt::format("{}={}", key, shown.AsString()));
  }
  return Printable(Join(out, ", "));
}

Result<Value> FindModel(Invocation& run, const std::string& name) {
  Result<Value> model =
      run.session.Get({kModels, run.session.ns(), schema::ModelObjectName(name), ""});
  if (model || model.error().reason() != Reason::kNotFound) return model;
  return Error(Reason::kNotFound, "namespace {} has no model {:?}: muster models list",
               run.session.ns(), name);
}

// The versions of a model, the newest first.
Result<json::Array> VersionsOf(Invocation& run, const Value& model) {
  client::ListOptions options;
  options.field_selector = "spec.model=" + model["metadata"]["name"].Str();
  ASSIGN_OR_RETURN(const Value list, run.session.List(kVersions, run.session.ns(), options));
  json::Array versions = list["items"].items();
  std::ranges::sort(versions, [](const Value& a, const Value& b) {
    return a["spec"]["version"].AsInt() > b["spec"]["version"].AsInt();
  });
  return versions;
}

Result<int> List(Invocation& run) {
  ASSIGN_OR_RETURN(const Value models, run.session.List(kModels, run.session.ns()));
  ASSIGN_OR_RETURN(const Value versions, run.session.List(kVersions, run.session.ns()));
  std::map<std::string, int64_t> counts, production;
  for (const Value& version : versions["items"].items()) {
    const Value& spec = version["spec"];
    ++counts[spec["model"].Str()];
    if (spec["stage"].AsString() != "Production") continue;
    int64_t& newest = production[spec["model"].Str()];
    newest = std::max(newest, spec["version"].AsInt());
  }
  std::vector<std::vector<std::string>> rows = {
      {"MODEL", "VERSIONS", "LATEST", "PRODUCTION", "ALIASES"}};
  for (const Value& model : models["items"].items()) {
    const std::string object = model["metadata"]["name"].Str();
    std::vector<std::string> aliases;
    for (const auto& [alias, number] : model["spec"]["aliases"].members())
      aliases.push_back(fmt::format("{}={}", alias, number.AsInt()));
    rows.push_back({NameOf(model), std::to_string(counts[object]),
                    std::to_string(model["status"]["latestVersion"].AsInt()),
                    production[object] == 0 ? "-" : std::to_string(production[object]),
                    aliases.empty() ? "-" : Join(aliases, ",")});
  }
  if (rows.size() == 1) {
    run.console.Err(fmt::format("No models found in {} namespace.\n", run.session.ns()));
  } else {
    run.console.Out(FormatColumns(rows));
  }
  return 0;
}

void PrintRun(Invocation& run, const std::string& id) {
  const Result<Value> made = run.session.Get({kRuns, run.session.ns(), id, ""});
  if (!made) {
    run.console.Print("    run         {} ({})\n", Printable(id), made.error().message());
    return;
  }
  const Value &spec = (*made)["spec"], &status = (*made)["status"];
  run.console.Print("    run         {} ({}), {}\n", id, Printable(spec["name"].AsString("-")),
                    status["state"].AsString("-"));
  if (!spec["params"].empty()) run.console.Print("    parameters  {}\n", PairsOf(spec["params"]));
  if (!status["metrics"].empty())
    run.console.Print("    metrics     {}\n", PairsOf(status["metrics"]));
}

Result<int> Describe(Invocation& run, const std::string& name) {
  constexpr size_t kRunsShown = 20;
  ASSIGN_OR_RETURN(const Value model, FindModel(run, name));
  ASSIGN_OR_RETURN(const json::Array versions, VersionsOf(run, model));
  run.console.Print("{}\n", Printable(NameOf(model)));
  if (const std::string text = model["spec"]["description"].Str(); !text.empty())
    run.console.Print("  {}\n", Printable(text));
  if (!model["spec"]["tags"].empty())
    run.console.Print("  tags  {}\n", PairsOf(model["spec"]["tags"]));
  for (size_t i = 0; i < versions.size(); ++i) {
    const Value& spec = versions[i]["spec"];
    run.console.Print("\n  version {}  stage {}  aliases {}  {}\n", spec["version"].AsInt(),
                      spec["stage"].AsString("None"), AliasesOf(model, spec["version"].AsInt()),
                      versions[i]["metadata"]["creationTimestamp"].AsString());
    run.console.Print("    source      {}\n", Printable(spec["source"].AsString("-")));
    if (const std::string text = spec["description"].Str(); !text.empty())
      run.console.Print("    about       {}\n", Printable(text));
    if (!spec["tags"].empty()) run.console.Print("    tags        {}\n", PairsOf(spec["tags"]));
    if (const std::string id = spec["runID"].Str(); !id.empty()) {
      if (i < kRunsShown) {
        PrintRun(run, id);
      } else {
        run.console.Print("    run         {}\n", Printable(id));
      }
    }
  }
  return 0;
}

Status DeleteVersion(Invocation& run, const Value& model, int64_t number) {
  const std::string object = model["metadata"]["name"].Str();
  // An alias of a version that is gone would name nothing.
  Value aliases;
  for (const auto& [alias, version] : model["spec"]["aliases"].members())
    if (version.AsInt() == number) aliases = std::move(aliases).Set(alias, nullptr);
  if (!aliases.IsNull()) {
    net::Request request;
    request.method = "PATCH";
    request.target = client::ApiClient::PathOf({kModels, run.session.ns(), object, ""});
    request.headers.Set("Content-Type", "application/merge-patch+json");
    request.body = json::Write(json::Obj({{"spec", json::Obj({{"aliases", std::move(aliases)}})}}));
    const Result<net::Response> answer = run.session.Raw(std::move(request));
    if (!answer) return answer.error();
  }
  const Result<Value> gone = run.session.Delete(
      {kVersions, run.session.ns(), schema::ModelVersionObjectName(object, number), ""}, {});
  return gone ? Status::Ok() : gone.error();
}

// "digits", or "digits/3".
Result<int> Delete(Invocation& run, const std::string& what) {
  const size_t slash = what.rfind('/');
  const std::optional<int64_t> number = slash == std::string::npos
                                            ? std::nullopt
                                            : ParseInt(std::string_view(what).substr(slash + 1));
  const std::string name = number ? what.substr(0, slash) : what;
  ASSIGN_OR_RETURN(const Value model, FindModel(run, name));
  if (number) {
    RETURN_IF_ERROR(DeleteVersion(run, model, *number));
    run.console.Print("version {} of {} is deleted\n", *number, name);
    return 0;
  }
  // Its versions go with it: they are its own.
  const Result<Value> gone =
      run.session.Delete({kModels, run.session.ns(), model["metadata"]["name"].Str(), ""}, {});
  if (!gone) return Error(gone.error());
  run.console.Print("{} is deleted with its versions; what they lead to stays where it is\n", name);
  return 0;
}

Result<int> Run(Invocation& run) {
  const std::vector<std::string>& words = run.arguments.positionals;
  if (words[0] == "list") return List(run);
  return words[0] == "describe" ? Describe(run, words[1]) : Delete(run, words[1]);
}

}  // namespace

Command ModelsCommand() {
  Command command;
  command.name = "models";
  command.summary = "list, describe and delete the models that jobs have registered";
  command.usage = "list | describe NAME | delete NAME[/VERSION]";
  command.details =
      "Training jobs register models with MLflow's clients at https://SERVER/mlflow/NAMESPACE.\n"
      "A version says where a model lies and which run made it; deleting it deletes no file.";
  command.examples = {{"muster models list -n research", "the models of a namespace"},
                      {"muster models describe digits", "its versions and the runs behind them"},
                      {"muster models delete digits/3", "one version"}};
  command.verbs = {{"list", 0, 0}, {"describe", 1, 1}, {"delete", 1, 1}};
  command.run = Run;
  return command;
}

}  // namespace muster::cli
