#include "apiserver/kinds/service_account_admission.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/errors.h"
#include "apiserver/stored_object.h"
#include "base/rng.h"
#include "base/strings.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

constexpr const char* kDefaultAccount = "default";
constexpr const char* kMirrorAnnotation = "kubernetes.io/config.mirror";
constexpr const char* kEnforceAnnotation = "kubernetes.io/enforce-mountable-secrets";
constexpr std::string_view kVolumePrefix = "kube-api-access-";
constexpr int kVolumeSuffixLetters = 5;
// By this lifetime the token endpoint knows a token that nobody asked for (token_request_handler).
constexpr int64_t kTokenSeconds = 3607;
constexpr int64_t kFileMode = 0644;

bool IsMirror(const json::Value& pod) {
  return pod["metadata"]["annotations"].Has(kMirrorAnnotation);
}

std::string AccountNameOf(const json::Value& pod) {
  const json::Value& spec = pod["spec"];
  std::string name = spec["serviceAccountName"].Str();
  return name.empty() ? spec["serviceAccount"].Str() : name;
}

const schema::Kind& AccountKind() {
  static const schema::KindPtr kKind =
      schema::Registry::BuiltIn().Find("", "v1", "serviceaccounts");
  return *kKind;
}

store::EntryPtr FindAccount(const store::Store& store, std::string_view ns, std::string_view name) {
  return store.GetLatest(ObjectKey(AccountKind(), ns, name));
}

// One tree for all pods.
const json::Value& TokenVolumeSource() {
  static const json::Value kSource = json::Obj(
      {{"sources",
        json::List(
            {json::Obj({{"serviceAccountToken",
                         json::Obj({{"expirationSeconds", kTokenSeconds}, {"path", "token"}})}}),
             json::Obj({{"configMap",
                         json::Obj({{"name", "kube-root-ca.crt"},
                                    {"items", json::List({json::Obj(
                                                  {{"key", "ca.crt"}, {"path", "ca.crt"}})})}})}}),
             json::Obj(
                 {{"downwardAPI",
                   json::Obj({{"items",
                               json::List({json::Obj(
                                   {{"path", "namespace"},
                                    {"fieldRef",
                                     json::Obj({{"apiVersion", "v1"},
                                                {"fieldPath", "metadata.namespace"}})}})})}})}})})},
       {"defaultMode", kFileMode}});
  return kSource;
}

// Whether a container got the mount: not one that mounts something else there.
bool AddMount(json::Value& pod, const char* list, const json::Value& mount) {
  json::Array containers;
  bool added = false;
  for (json::Value container : pod["spec"][list].items()) {
    const json::Array& mounts = container["volumeMounts"].items();
    const bool taken = std::ranges::any_of(mounts, [](const json::Value& one) {
      return one["mountPath"].AsString() == kTokenMountPath;
    });
    if (!taken && container.IsObject()) {
      json::Value all = container["volumeMounts"].Append(mount);
      container = std::move(container).Set("volumeMounts", std::move(all));
      added = true;
    }
    containers.push_back(std::move(container));
  }
  if (added) pod = std::move(pod).SetPath({"spec", list}, json::Value(std::move(containers)));
  return added;
}

void MountToken(json::Value& pod) {
  std::string name;
  for (const json::Value& volume : pod["spec"]["volumes"].items()) {
    if (!name.empty() || !volume["name"].AsString().starts_with(kVolumePrefix)) continue;
    name = volume["name"].Str();
  }
  const bool there = !name.empty();
  if (!there) {
    Rng rng(Hash64(pod["metadata"]["uid"].AsString()));
    name = std::string(kVolumePrefix) + rng.NameSuffix(kVolumeSuffixLetters);
  }
  const json::Value mount =
      json::Obj({{"name", name}, {"readOnly", true}, {"mountPath", kTokenMountPath}});
  const bool in_init_containers = AddMount(pod, "initContainers", mount);
  const bool in_containers = AddMount(pod, "containers", mount);
  if (there || (!in_init_containers && !in_containers)) return;
  json::Value volumes = pod["spec"]["volumes"].Append(
      json::Obj({{"name", name}, {"projected", TokenVolumeSource()}}));
  pod = std::move(pod).SetPath({"spec", "volumes"}, std::move(volumes));
}

bool WantsToken(const json::Value& account, const json::Value& pod) {
  const json::Value& own = pod["spec"]["automountServiceAccountToken"];
  return own.IsBool() ? own.AsBool() : account["automountServiceAccountToken"].AsBool(true);
}

bool NamesSecret(const json::Value& container) {
  return std::ranges::any_of(container["envFrom"].items(),
                             [](const json::Value& one) { return one.Has("secretRef"); }) ||
         std::ranges::any_of(container["env"].items(), [](const json::Value& one) {
           return one["valueFrom"].Has("secretKeyRef");
         });
}

bool NamesSecret(const json::Member& source) {
  const json::Value& volume = source.second;
  const auto is_secret = [](const json::Value& one) { return one.Has("secret"); };
  return source.first == "secret" || volume.Has("secretName") || volume.Has("secretRef") ||
         volume.Has("nodePublishSecretRef") ||
         std::ranges::any_of(volume["sources"].items(), is_secret);
}

bool NamesSecrets(const json::Value& spec) {
  if (!spec["imagePullSecrets"].empty()) return true;
  for (const char* list : {"initContainers", "containers"}) {
    for (const json::Value& container : spec[list].items()) {
      if (NamesSecret(container)) return true;
    }
  }
  return std::ranges::any_of(spec["volumes"].items(), [](const json::Value& volume) {
    return std::ranges::any_of(volume.members(),
                               [](const json::Member& source) { return NamesSecret(source); });
  });
}

bool HasTokens(const json::Value& spec) {
  return std::ranges::any_of(spec["volumes"].items(), [](const json::Value& volume) {
    return std::ranges::any_of(
        volume["projected"]["sources"].items(),
        [](const json::Value& source) { return source.Has("serviceAccountToken"); });
  });
}

// A mirror pod stands for one that the node has from a file: who writes it could read anything.
Status CheckMirror(const WriteContext& context, const json::Value& pod) {
  std::string_view fault;
  if (!AccountNameOf(pod).empty()) {
    fault = "a mirror pod may not reference service accounts";
  } else if (NamesSecrets(pod["spec"])) {
    fault = "a mirror pod may not reference secrets";
  } else if (HasTokens(pod["spec"])) {
    fault = "a mirror pod may not use ServiceAccountToken volume projections";
  }
  return fault.empty() ? Status::Ok() : ForbiddenError(context.kind, context.name, fault);
}

bool Lists(const json::Value& references, const json::Value& name) {
  return std::ranges::any_of(references.items(), [&](const json::Value& reference) {
    return reference["name"].AsString() == name.AsString();
  });
}

// The first Secret that a container takes and `allowed` does not list, and by which of its fields.
std::string SecretBeyond(const json::Value& allowed, const json::Value& container) {
  for (const json::Value& variable : container["env"].items()) {
    const json::Value& reference = variable["valueFrom"]["secretKeyRef"];
    if (!reference.IsObject() || Lists(allowed, reference["name"])) continue;
    return fmt::format("envVar {} referencing secret.secretName=\"{}\"",
                       variable["name"].AsString(), reference["name"].AsString());
  }
  for (const json::Value& source : container["envFrom"].items()) {
    const json::Value& reference = source["secretRef"];
    if (!reference.IsObject() || Lists(allowed, reference["name"])) continue;
    return fmt::format("envFrom referencing secret.secretName=\"{}\"",
                       reference["name"].AsString());
  }
  return "";
}

// What a pod takes of Secrets that its account does not list, where the account says that this
// counts; "" if nothing.
std::string FaultOfSecrets(const json::Value& account, const json::Value& spec) {
  const std::string end = fmt::format(" is not allowed because service account {} does not ",
                                      account["metadata"]["name"].AsString());
  const json::Value& allowed = account["secrets"];
  for (const json::Value& volume : spec["volumes"].items()) {
    const json::Value& name = volume["secret"]["secretName"];
    if (volume.Has("secret") && !Lists(allowed, name)) {
      return fmt::format("volume with secret.secretName=\"{}\"{}reference that secret",
                         name.AsString(), end);
    }
  }
  for (const auto& [list, word] :
       {std::pair("initContainers", "init container"), std::pair("containers", "container")}) {
    for (const json::Value& container : spec[list].items()) {
      const std::string secret = SecretBeyond(allowed, container);
      if (secret.empty()) continue;
      return fmt::format("{} {} with {}{}reference that secret", word, container["name"].AsString(),
                         secret, end);
    }
  }
  for (size_t i = 0; i < spec["imagePullSecrets"].size(); ++i) {
    const json::Value& name = spec["imagePullSecrets"].At(i)["name"];
    if (Lists(account["imagePullSecrets"], name)) continue;
    return fmt::format("imagePullSecrets[{}].name=\"{}\"{}reference that imagePullSecret", i,
                       name.AsString(), end);
  }
  return "";
}

bool LimitsSecrets(const json::Value& account) {
  const std::string_view word = account["metadata"]["annotations"][kEnforceAnnotation].AsString();
  return word == "1" || word == "t" || word == "T" || word == "true" || word == "TRUE" ||
         word == "True";
}

}  // namespace

Status ApplyServiceAccount(const store::Store& store, const WriteContext& context,
                           json::Value& pod) {
  if (IsMirror(pod)) return CheckMirror(context, pod);
  std::string name = AccountNameOf(pod);
  if (name.empty()) name = kDefaultAccount;
  pod = std::move(pod)
            .SetPath({"spec", "serviceAccountName"}, name)
            .SetPath({"spec", "serviceAccount"}, name);
  const store::EntryPtr entry = FindAccount(store, context.ns, name);
  if (entry == nullptr) {
    return ForbiddenError(context.kind, context.name,
                          fmt::format("error looking up service account {}/{}: serviceaccount "
                                      "\"{}\" not found",
                                      context.ns, name, name));
  }
  const json::Value account = DecodeStored(AccountKind(), *entry->value);
  if (WantsToken(account, pod)) MountToken(pod);
  if (pod["spec"]["imagePullSecrets"].empty() && !account["imagePullSecrets"].empty())
    pod = std::move(pod).SetPath({"spec", "imagePullSecrets"}, account["imagePullSecrets"]);
  if (!LimitsSecrets(account)) return Status::Ok();
  const std::string fault = FaultOfSecrets(account, pod["spec"]);
  return fault.empty() ? Status::Ok() : ForbiddenError(context.kind, context.name, fault);
}

bool AwaitsServiceAccount(const store::Store& store, const WriteContext& context,
                          const json::Value& pod) {
  if (IsMirror(pod)) return false;
  const std::string name = AccountNameOf(pod);
  return (name.empty() || name == kDefaultAccount) &&
         FindAccount(store, context.ns, kDefaultAccount) == nullptr;
}

}  // namespace muster::apiserver
