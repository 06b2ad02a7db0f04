#include "ray/submission.h"

#include <utility>

#include <fmt/core.h>

#include "base/strings.h"
#include "controllers/pods/ownership.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::ray {
namespace {

constexpr int64_t kDefaultBackoffLimit = 2;

// As one word of a shell.
std::string Quote(std::string_view text) {
  std::string quoted = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      quoted += R"('\'')";
    } else {
      quoted += letter;
    }
  }
  return quoted + "'";
}

json::Value ResourcesOf(const json::Value& ray_job) {
  const Result<json::Value> resources =
      json::Parse(ray_job["spec"]["entrypointResources"].AsString());
  return resources && resources->IsObject() ? *resources : json::Value();
}

std::string Options(const json::Value& ray_job) {
  const json::Value& spec = ray_job["spec"];
  std::string options;
  if (const Result<json::Value> env = RuntimeEnvOf(ray_job); env && !env->IsNull())
    options += fmt::format(" --runtime-env-json {}", Quote(json::Write(*env)));
  if (!spec["metadata"].empty())
    options += fmt::format(" --metadata-json {}", Quote(json::Write(spec["metadata"])));
  if (spec["entrypointNumCpus"].AsDouble() > 0)
    options += fmt::format(" --entrypoint-num-cpus {}", spec["entrypointNumCpus"].AsDouble());
  if (spec["entrypointNumGpus"].AsDouble() > 0)
    options += fmt::format(" --entrypoint-num-gpus {}", spec["entrypointNumGpus"].AsDouble());
  if (const json::Value resources = ResourcesOf(ray_job); !resources.IsNull())
    options += fmt::format(" --entrypoint-resources {}", Quote(json::Write(resources)));
  return options;
}

json::Value DefaultTemplate(const Submission& submission) {
  const json::Value resources =
      json::Obj({{"requests", json::Obj({{"cpu", "500m"}, {"memory", "200Mi"}})},
                 {"limits", json::Obj({{"cpu", "1"}, {"memory", "1Gi"}})}});
  const json::Value container = json::Obj(
      {{"name", "ray-job-submitter"}, {"image", submission.image}, {"resources", resources}});
  return json::Obj(
      {{"spec", json::Obj({{"restartPolicy", "Never"}, {"containers", json::List({container})}})}});
}

}  // namespace

Result<json::Value> RuntimeEnvOf(const json::Value& ray_job) {
  const std::string_view text = ray_job["spec"]["runtimeEnvYAML"].AsString();
  if (Trim(text).empty()) return json::Value();
  ASSIGN_OR_RETURN(const std::vector<json::Value> documents, json::ParseYaml(text));
  if (documents.size() != 1 || !documents[0].IsObject())
    return Error(Reason::kInvalid, "runtimeEnvYAML must be one YAML object");
  return documents[0];
}

std::string SubmitScript(const json::Value& ray_job, const Submission& submission) {
  constexpr std::string_view kAddress = "--address http://$RAY_DASHBOARD_ADDRESS";
  return fmt::format(
      "if ! ray job status {0} $RAY_JOB_SUBMISSION_ID >/dev/null 2>&1; then ray job submit {0} "
      "--no-wait --submission-id $RAY_JOB_SUBMISSION_ID{1} -- {2}; fi; "
      "ray job logs {0} --follow $RAY_JOB_SUBMISSION_ID",
      kAddress, Options(ray_job), ray_job["spec"]["entrypoint"].AsString(), submission.id);
}

json::Value MakeSubmitter(const json::Value& ray_job, const Submission& submission) {
  const json::Value& given = ray_job["spec"]["submitterPodTemplate"];
  json::Value pod_template = given.IsNull() ? DefaultTemplate(submission) : given;
  json::Value container = pod_template["spec"]["containers"].At(0);
  if (!container.Has("command")) {
    container = std::move(container)
                    .Set("command", json::Strings({"/bin/bash", "-ce", "--"}))
                    .Set("args", json::Strings({SubmitScript(ray_job, submission)}));
  }
  json::Value env = container["env"];
  const std::pair<std::string_view, std::string_view> variables[] = {
      {"PYTHONUNBUFFERED", "1"},
      {"RAY_DASHBOARD_ADDRESS", submission.dashboard},
      {"RAY_JOB_SUBMISSION_ID", submission.id}};
  for (const auto& [name, value] : variables)
    env = std::move(env).Append(json::Obj({{"name", name}, {"value", value}}));
  container = std::move(container).Set("env", std::move(env));
  json::Value spec = pod_template["spec"];
  spec = spec.Set("containers", spec["containers"].SetAt(0, std::move(container)));
  if (!spec.Has("restartPolicy")) spec = std::move(spec).Set("restartPolicy", "Never");
  const json::Value& name = ray_job["metadata"]["name"];
  const json::Value& limit = ray_job["spec"]["submitterConfig"]["backoffLimit"];
  return json::Obj(
      {{"apiVersion", "batch/v1"},
       {"kind", "Job"},
       {"metadata",
        json::Obj({{"name", name},
                   {"namespace", ray_job["metadata"]["namespace"]},
                   {"labels", json::Obj({{"ray.io/originated-from-cr-name", name},
                                         {"ray.io/originated-from-crd", "RayJob"},
                                         {"app.kubernetes.io/created-by", "kuberay-operator"}})},
                   {"ownerReferences", controllers::ControlledByOnly(ray_job)}})},
       {"spec", json::Obj({{"backoffLimit", limit.AsInt(kDefaultBackoffLimit)},
                           {"template", std::move(pod_template).Set("spec", std::move(spec))}})}});
}

json::Value SubmitRequest(const json::Value& ray_job, const Submission& submission) {
  const json::Value& spec = ray_job["spec"];
  json::Value request =
      json::Obj({{"entrypoint", spec["entrypoint"]}, {"submission_id", submission.id}});
  if (const Result<json::Value> env = RuntimeEnvOf(ray_job); env && !env->IsNull())
    request = std::move(request).Set("runtime_env", *env);
  if (!spec["metadata"].empty()) request = std::move(request).Set("metadata", spec["metadata"]);
  if (spec["entrypointNumCpus"].AsDouble() > 0)
    request = std::move(request).Set("entrypoint_num_cpus", spec["entrypointNumCpus"]);
  if (spec["entrypointNumGpus"].AsDouble() > 0)
    request = std::move(request).Set("entrypoint_num_gpus", spec["entrypointNumGpus"]);
  if (const json::Value resources = ResourcesOf(ray_job); !resources.IsNull())
    request = std::move(request).Set("entrypoint_resources", resources);
  return request;
}

}  // namespace muster::ray
