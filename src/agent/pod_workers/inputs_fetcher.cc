#include "agent/pod_workers/inputs_fetcher.h"

#include <algorithm>
#include <memory>

#include "agent/volumes/local_volumes.h"
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

// One claim on its way: the claim, then its PersistentVolume, then the Node if that asks for one.
struct ClaimFetch : std::enable_shared_from_this<ClaimFetch> {
  ClaimFetch(client::ApiClient& client_in, json::Value pod_in, json::Value volume_in,
             std::shared_ptr<Fetch> fetch_in)
      : client(client_in),
        pod(std::move(pod_in)),
        volume(std::move(volume_in)),
        fetch(std::move(fetch_in)) {}

  void Start() {
    ++fetch->waiting;
    const client::Target target = {client::resources::kPersistentVolumeClaims,
                                   pod["metadata"]["namespace"].Str(), ClaimOf(pod, volume), ""};
    client.Get(target, [self = shared_from_this()](Result<json::Value> answer) {
      self->OnClaim(std::move(answer));
    });
  }

 private:
  void OnClaim(Result<json::Value> answer) {
    if (!answer) return Fail("failed to fetch PVC from API server: " + answer.error().message());
    claim = std::move(*answer);
    const Result<std::string> name = VolumeOfClaim(pod, volume, claim);
    if (!name) return Finish(std::unexpected(name.error()));
    client.Get({kPersistentVolumes, "", *name, ""},
               [self = shared_from_this(), name = *name](Result<json::Value> found) {
                 self->OnVolume(name, std::move(found));
               });
  }

  void OnVolume(const std::string& name, Result<json::Value> answer) {
    if (!answer) {
      return Fail(
          fmt::format("failed to fetch PV {} from API server: {}", name, answer.error().message()));
    }
    persistent_volume = std::move(*answer);
    if (persistent_volume["spec"]["nodeAffinity"].IsNull()) return Resolve({});
    client.Get({client::resources::kNodes, "", pod["spec"]["nodeName"].Str(), ""},
               [self = shared_from_this()](const Result<json::Value>& node) {
                 if (!node) return self->Fail("failed to read the node: " + node.error().message());
                 self->Resolve(*node);
               });
  }

  void Resolve(const json::Value& node) {
    Finish(ResolveClaim(pod, volume, claim, persistent_volume, node));
  }
  void Fail(const std::string& why) {
    Finish(std::unexpected(ClaimError(pod, ClaimOf(pod, volume), why)));
  }
  void Finish(Result<ClaimVolume> found) {
    fetch->inputs.claims.emplace(volume["name"].Str(), std::move(found));
    fetch->FinishOne();
  }

  client::ApiClient& client;
  json::Value pod, volume, claim, persistent_volume;
  std::shared_ptr<Fetch> fetch;
};

void FetchClaims(client::ApiClient& client, const json::Value& pod, const PodInputs& known,
                 std::shared_ptr<Fetch> fetch) {
  for (const json::Value& volume : pod["spec"]["volumes"].items()) {
    if (ClaimOf(pod, volume).empty()) continue;
    const auto found = known.claims.find(volume["name"].Str());
    if (found != known.claims.end() && found->second) {
      fetch->inputs.claims.insert(*found);
    } else {
      std::make_shared<ClaimFetch>(client, pod, volume, fetch)->Start();
    }
  }
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
  FetchClaims(client, pod, known, fetch);
  fetch->FinishOne();
}

}  // namespace muster::agent
