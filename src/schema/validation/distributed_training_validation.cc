// DistributedTraining (ml.example.com/v1), a kind of ours.

#include <fmt/core.h>

#include "base/go_duration.h"
#include "base/strings.h"
#include "schema/defaulting.h"
#include "schema/distributed_training.h"
#include "schema/names.h"
#include "schema/quantity_syntax.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

// Its pods are called <name>-master-0 and <name>-worker-<index>.
constexpr int64_t kMaxWorkers = 10'000;

void ValidateDuration(const Value& text, const Path& path, FieldErrors& errors) {
  if (text.AsString().empty()) return;
  const std::optional<Duration> duration = ParseGoDuration(text.AsString());
  if (!duration || *duration <= Duration::zero())
    errors.Invalid(path, text, "must be a duration greater than 0, such as 24h or 1h30m");
}

void ValidateSize(const Value& text, const Path& path, FieldErrors& errors) {
  if (text.AsString().empty()) return;
  const Result<Amount> amount = ParseAmount(SizeAsQuantity(text.AsString()));
  if (!amount || amount->nano <= 0)
    errors.Invalid(path, text, "must be an amount of bytes greater than 0, such as 100GB or 20Gi");
}

void ValidateTrainer(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& pod = spec["template"]["spec"];
  if (!spec.Has("template")) return;
  const Path pod_template = path.Child("template");
  const Path pod_spec = pod_template.Child("spec");
  bool named = false;
  for (const Value& container : pod["containers"].items())
    named = named || container["name"].AsString() == "pytorch";
  if (!named)
    return errors.Required(pod_spec.Child("containers"),
                           "must have at least one container with name pytorch");
  ValidatePodSpec(DefaultPodSpec(pod), pod_spec, errors);
}

}  // namespace

void ValidateDistributedTraining(const Value& training, FieldErrors& errors) {
  const Path path("spec");
  const Value& spec = training["spec"];
  const int64_t workers = spec["numWorkers"].AsInt(1);
  if (workers < 1 || workers > kMaxWorkers) {
    errors.Invalid(path.Child("numWorkers"), spec["numWorkers"],
                   fmt::format("must be between 1 and {}", kMaxWorkers));
  }
  errors.NotNegative(path.Child("gpusPerWorker"), spec["gpusPerWorker"]);
  errors.NotNegative(path.Child("maxRestarts"), spec["maxRestarts"]);
  if (!spec["gpuType"].AsString().empty()) {
    errors.Check(CheckLabelValue, path.Child("gpuType"), spec["gpuType"]);
    if (spec["gpusPerWorker"].AsInt(1) == 0)
      errors.Forbidden(path.Child("gpuType"), "must not be used with gpusPerWorker 0");
  }
  ValidateSize(spec["datasetSize"], path.Child("datasetSize"), errors);
  ValidateSize(spec["checkpointSize"], path.Child("checkpointSize"), errors);
  ValidateDuration(spec["trainingDuration"], path.Child("trainingDuration"), errors);
  if (!spec["checkpointClaim"].AsString().empty())
    errors.Check(CheckDns1123Subdomain, path.Child("checkpointClaim"), spec["checkpointClaim"]);
  ValidateTrainer(spec, path, errors);
  const std::string_view name = training["metadata"]["name"].AsString();
  const std::string suffix = fmt::format("-worker-{}", std::max<int64_t>(workers - 2, 0));
  if (name.size() + suffix.size() > kMaxDnsLabelLength) {
    errors.Invalid(Path("metadata").Child("name"), training["metadata"]["name"],
                   fmt::format("must be no more than {} characters, because its pods and services "
                               "are called <name>-worker-<index> (at most {})",
                               kMaxDnsLabelLength - suffix.size(), kMaxDnsLabelLength));
  }
}

// What pods are made from is read once; how many there are, how long they train and whether at all
// may change.
void ValidateDistributedTrainingUpdate(const Value& before, const Value& after,
                                       FieldErrors& errors) {
  for (const char* field : {"modelType", "datasetSize", "gpuType", "gpusPerWorker", "template",
                            "checkpointClaim", "checkpointSize"}) {
    if (before["spec"][field] != after["spec"][field])
      errors.Invalid(Path("spec").Child(field), after["spec"][field], kImmutable);
  }
}

}  // namespace muster::schema
