#include "agent/pod_workers/inputs_fetcher.h"

#include <algorithm>
#include <memory>

#include "base/log.h"

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

// With a uid, so that the token is not that of an earlier pod of this name.
json::Value TokenRequest(const json::Value& pod, const TokenNeed& need) {
  json::Value spec = json::Obj({{"expirationSeconds", need.expiration_seconds},
                                {"boundObjectRef", json::Obj({{"apiVersion", "v1"},
                                                              {"kind", "Pod"},
                                                              {"name", pod["metadata"]["name"]},
                                                              {"uid", pod["metadata"]["uid"]}})}});
  if (!need.audience.empty()) spec = spec.Set("audiences", json::Strings({need.audience}));
  return json::Obj({{"apiVersion", "authentication.k8s.io/v1"},
                    {"kind", "TokenRequest"},
                    {"metadata", json::Obj()},
                    {"spec", std::move(spec)}});
}

Result<ServiceAccountToken> ReadToken(const json::Value& answer) {
  const std::optional<Time> expires = ParseTime(answer["status"]["expirationTimestamp"].AsString());
  ServiceAccountToken out{answer["status"]["token"].Str(), {}, {}};
  if (out.token.empty() || !expires)
    return Error(Reason::kInternalError, "the server's answer has no token or no end");
  const Duration life = seconds(answer["spec"]["expirationSeconds"].AsInt());
  out.expires = *expires;
  out.refresh_at = std::min<Time>(*expires - life / 5, *expires - life + kMaxTokenAge);
  return out;
}

void AskForToken(client::ApiClient& client, const json::Value& pod, const TokenNeed& need,
                 const PodInputs& known, std::shared_ptr<Fetch> fetch) {
  const Time now = client.loop().Now();
  const auto old = known.tokens.find(need);
  std::optional<ServiceAccountToken> valid;
  if (old != known.tokens.end() && old->second && now < old->second->expires) valid = *old->second;
  if (valid && now < valid->refresh_at) {
    fetch->inputs.tokens.emplace(need, *valid);
    return;
  }
  ++fetch->waiting;
  const client::Target target = {client::resources::kServiceAccounts,
                                 pod["metadata"]["namespace"].Str(),
                                 pod["spec"]["serviceAccountName"].Str("default"), "token"};
  client.Create(target, TokenRequest(pod, need), [fetch, need, valid](Result<json::Value> answer) {
    Result<ServiceAccountToken> token =
        answer ? ReadToken(*answer) : Result<ServiceAccountToken>(std::unexpected(answer.error()));
    if (!token && valid) {
      LOG_WARN("agent: refresh a token: {}; the old one is kept", token.error().message());
      token = *valid;
    }
    fetch->inputs.tokens.emplace(need, std::move(token));
    fetch->FinishOne();
  });
}

}  // namespace

void FetchPodInputs(client::ApiClient& client, const client::Informer& services,
                    const json::Value& pod, const PodInputs& known,
                    Function<void(Result<PodInputs>)> done) {
  auto fetch = std::make_shared<Fetch>();
  fetch->done = std::move(done);
  const std::string ns = pod["metadata"]["namespace"].Str();
  for (const auto& [key, service] : services.objects()) {
    if (key.ns == ns || (key.ns == "default" && key.name == "kubernetes"))
      fetch->inputs.services.push_back(service);
  }
  if (!services.Synced()) {
    // Nothing is asked for in vain: a token would be thrown away.
    fetch->first_error = Error(Reason::kServiceUnavailable, "services have not been synced yet");
    return fetch->FinishOne();
  }
  const NeededObjects needed = FindNeededObjects(pod);
  for (const std::string& name : needed.config_maps) {
    GetOne(client, {client::resources::kConfigMaps, ns, name, ""}, fetch, &PodInputs::config_maps);
  }
  for (const std::string& name : needed.secrets) {
    GetOne(client, {client::resources::kSecrets, ns, name, ""}, fetch, &PodInputs::secrets);
  }
  for (const TokenNeed& need : needed.tokens) AskForToken(client, pod, need, known, fetch);
  fetch->FinishOne();
}

}  // namespace muster::agent
