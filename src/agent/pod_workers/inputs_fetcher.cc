#include "agent/pod_workers/inputs_fetcher.h"

#include <memory>

namespace muster::agent {
namespace {

struct Fetch {
  PodInputs inputs;
  Status first_error;
  size_t waiting = 1;
  Function<void(Result<PodInputs>)> done;

  void FinishOne() {
    if (--waiting > 0) return;
    if (first_error.ok()) return done(std::move(inputs));
    done(std::unexpected(first_error));
  }
};

void GetOne(client::ApiClient& client, const client::Target& target, std::shared_ptr<Fetch> fetch,
            std::map<std::string, json::Value> PodInputs::* into) {
  ++fetch->waiting;
  client.Get(target, [fetch, into, name = target.name](Result<json::Value> answer) {
    if (answer) {
      (fetch->inputs.*into)[name] = std::move(*answer);
    } else if (answer.error().reason() != Reason::kNotFound && fetch->first_error.ok()) {
      fetch->first_error = answer.error();
    }
    fetch->FinishOne();
  });
}

}  // namespace

void FetchPodInputs(client::ApiClient& client, const client::Informer& services,
                    const json::Value& pod, Function<void(Result<PodInputs>)> done) {
  auto fetch = std::make_shared<Fetch>();
  fetch->done = std::move(done);
  const std::string ns = pod["metadata"]["namespace"].Str();
  for (const auto& [key, service] : services.objects()) {
    if (key.ns == ns || (key.ns == "default" && key.name == "kubernetes"))
      fetch->inputs.services.push_back(service);
  }
  if (!services.Synced())
    fetch->first_error = Error(Reason::kServiceUnavailable, "services have not been synced yet");
  const NeededObjects needed = FindNeededObjects(pod);
  for (const std::string& name : needed.config_maps) {
    GetOne(client, {client::resources::kConfigMaps, ns, name, ""}, fetch, &PodInputs::config_maps);
  }
  for (const std::string& name : needed.secrets) {
    GetOne(client, {client::resources::kSecrets, ns, name, ""}, fetch, &PodInputs::secrets);
  }
  fetch->FinishOne();
}

}  // namespace muster::agent
