// The part of PodWorker that waits for the images that its containers start from.

#include <algorithm>

#include "agent/images/image_credentials.h"
#include "agent/pod_workers/backoff.h"
#include "agent/pod_workers/plain_pod.h"
#include "agent/pod_workers/pod_worker.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

using client::EventType;
using Is = ContainerRuntimeState::Is;

// As Go prints a duration of whole milliseconds: "845ms", "1.58s", "2m3s".
std::string Milliseconds(Duration duration) {
  const int64_t ms = std::chrono::duration_cast<milliseconds>(duration).count();
  if (ms < 1000) return fmt::format("{}ms", ms);
  const int64_t s = ms / 1000;
  std::string fraction = ms % 1000 == 0 ? "" : fmt::format(".{:03}", ms % 1000);
  while (fraction.ends_with('0')) fraction.pop_back();
  const std::string rest = fmt::format("{}{}s", s % 60, fraction);
  if (s < 60) return rest;
  if (s < 3600) return fmt::format("{}m{}", s / 60, rest);
  return fmt::format("{}h{}m{}", s / 3600, s / 60 % 60, rest);
}

}  // namespace

// The container waits with this reason; events as upstream, once for each failure.
void PodWorker::WaitForImage(size_t index, std::string_view reason, const std::string& message) {
  ContainerRuntimeState& container = state_.containers[index];
  if (container.is == Is::kTerminated) {
    container.last_exit = container.exit;
    container.last_exit_attempt = container.exit_attempt;
  }
  if (container.is != Is::kWaiting || container.waiting_reason != reason)
    Event(EventType::kWarning, "Failed", fmt::format("Error: {}", reason));
  WaitWith(index, std::string(reason), message);
}

void PodWorker::UseImage(size_t index, const ImageRecord& image, const std::string& called) {
  ContainerRuntimeState& container = state_.containers[index];
  container.image_name = image.root;
  container.image = called;
  container.image_id = image.ImageId();
  container.image_stop_signal = image.config.stop_signal;
  image_waits_[index] = {};
  image_waits_[index].ready = true;
  context_.images->Touch(image.root);
}

// True when the container may start: from container.image_name, or from the machine if that is "".
bool PodWorker::ImageReady(size_t index) {
  const json::Value spec = AllContainers(pod_)[index];
  ImageWait& wait = image_waits_[index];
  const std::string name = spec["image"].Str();
  if (context_.images == nullptr || IsMachineImage(name) || wait.ready) return true;
  if (IsPlain()) {
    const std::string why = CheckPlainImage(spec).message();
    if (state_.containers[index].waiting_message != why)
      Event(EventType::kWarning, "Failed", fmt::format("Error: {}", why));
    WaitWith(index, "CreateContainerConfigError", why);
    return false;
  }
  if (wait.pulling) return false;
  const Result<ImageReference> reference = ParseImageReference(name);
  if (!reference) {
    const std::string message = fmt::format("Failed to apply default image tag {:?}: {}", name,
                                            reference.error().message());
    if (state_.containers[index].waiting_message != message)
      Event(EventType::kWarning, "InspectFailed", message);
    WaitForImage(index, "InvalidImageName", message);
    return false;
  }
  const std::string_view policy =
      spec["imagePullPolicy"].AsString(reference->tag == "latest" ? "Always" : "IfNotPresent");
  const ImageRecord* present = context_.images->Find(*reference);
  if (present != nullptr && policy != "Always") {
    Event(EventType::kNormal, "Pulled",
          fmt::format("Container image {:?} already present on machine", name));
    UseImage(index, *present, reference->Name());
    return true;
  }
  if (policy == "Never") {
    const std::string message =
        fmt::format("Container image {:?} is not present with pull policy of Never", name);
    if (state_.containers[index].waiting_reason != "ErrImageNeverPull")
      Event(EventType::kWarning, "ErrImageNeverPull", message);
    WaitForImage(index, "ErrImageNeverPull", message);
    ScheduleSync(kInitialBackoff);
    return false;
  }
  const Time now = context_.loop.Now();
  if (now >= wait.failed_at + wait.delay) {
    // The secrets of a further try are those of then.
    if (!wait.failure.empty() && !wait.refreshed && !pod_["spec"]["imagePullSecrets"].empty()) {
      wait.refreshed = true;
      step_ = Step::kInputs;
      ScheduleSync(Duration());
      return false;
    }
    wait.refreshed = false;
    PullImage(index, *reference);
    return false;
  }
  if (now < wait.failed_at + kErrImagePullTime) {
    ScheduleSync(wait.failed_at + kErrImagePullTime - now);
    return false;
  }
  if (state_.containers[index].waiting_reason != "ImagePullBackOff")
    Event(EventType::kNormal, "BackOff", fmt::format("Back-off pulling image {:?}", name));
  WaitForImage(index, "ImagePullBackOff",
               fmt::format("Back-off pulling image {:?}: ErrImagePull: {}", name, wait.failure));
  ScheduleSync(wait.failed_at + wait.delay - now);
  return false;
}

std::vector<json::Value> PodWorker::PullSecrets() {
  std::vector<json::Value> out;
  std::vector<std::string> missing;
  for (const json::Value& entry : pod_["spec"]["imagePullSecrets"].items()) {
    const auto found = inputs_.secrets.find(entry["name"].Str());
    if (found == inputs_.secrets.end()) {
      missing.push_back(entry["name"].Str());
    } else {
      out.push_back(found->second);
    }
  }
  if (!missing.empty()) {
    Event(EventType::kWarning, "FailedToRetrieveImagePullSecret",
          fmt::format("Unable to retrieve some image pull secrets ({}); attempting to pull the "
                      "image may not succeed.",
                      Join(missing, ", ")));
  }
  return out;
}

void PodWorker::PullImage(size_t index, const ImageReference& reference) {
  image_waits_[index].pulling = true;
  const std::string name = AllContainers(pod_)[index]["image"].Str();
  Event(EventType::kNormal, "Pulling", fmt::format("Pulling image {:?}", name));
  context_.images->Pull(reference, CredentialsFor(reference, PullSecrets()),
                        lifetime_.Guard([this, index, reference](Result<PulledImage> pulled) {
                          OnPulled(index, reference, pulled);
                        }));
}

void PodWorker::OnPulled(size_t index, const ImageReference& reference,
                         const Result<PulledImage>& pulled) {
  ImageWait& wait = image_waits_[index];
  wait.pulling = false;
  if (ShouldStop()) return Sync();
  const std::string name = AllContainers(pod_)[index]["image"].Str();
  if (pulled) {
    Event(EventType::kNormal, "Pulled",
          fmt::format("Successfully pulled image {:?} in {} ({} including waiting). Image size: {} "
                      "bytes.",
                      name, Milliseconds(pulled->took), Milliseconds(pulled->with_waiting),
                      pulled->image.size_bytes));
    UseImage(index, pulled->image, reference.Name());
    return Sync();
  }
  wait.failure = pulled.error().message();
  wait.failed_at = context_.loop.Now();
  wait.delay =
      wait.delay == Duration() ? kInitialBackoff : std::min<Duration>(wait.delay * 2, kMaxBackoff);
  Event(EventType::kWarning, "Failed",
        fmt::format("Failed to pull image {:?}: {}", name, wait.failure));
  WaitForImage(index, "ErrImagePull", wait.failure);
  ScheduleSync(kErrImagePullTime);
}

}  // namespace muster::agent
