#include "client/kubeconfig.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/write.h"
#include "net/url.h"

namespace muster::client {
namespace {

std::string DirectoryOf(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// The bytes of `name`-data, or of the file that `name` points to; "" if neither is there.
Result<std::string> DataOrFile(const json::Value& value, const std::string& name,
                               const std::string& base_dir) {
  std::string_view data = value[name + "-data"].AsString();
  if (!data.empty()) {
    std::optional<std::string> bytes = Base64Decode(data);
    if (!bytes) return Error(Reason::kInvalid, "{}-data: not base64", name);
    return *std::move(bytes);
  }
  std::string path = value[name].Str();
  if (path.empty()) return std::string();
  if (path[0] != '/') path = base_dir + "/" + path;
  Result<std::string> text = ReadSmallFile(path);
  if (!text) return Error(text.error().WithPrefix(name + ": "));
  return text;
}

Status ReadCluster(const json::Value& cluster, const std::string& base_dir, ConnectionConfig& out) {
  ASSIGN_OR_RETURN(net::ParsedUrl url, net::ParseUrl(cluster["server"].AsString()));
  out.endpoint = std::move(url.endpoint);
  out.endpoint.server_name = cluster["tls-server-name"].Str();
  out.path_prefix = std::move(url.path);
  while (out.path_prefix.ends_with('/')) out.path_prefix.pop_back();
  out.tls.insecure_skip_verify = cluster["insecure-skip-tls-verify"].AsBool();
  ASSIGN_OR_RETURN(out.tls.ca_pem, DataOrFile(cluster, "certificate-authority", base_dir));
  return Status::Ok();
}

Status ReadUser(const json::Value& user, const std::string& base_dir, ConnectionConfig& out) {
  ASSIGN_OR_RETURN(out.tls.certificate_pem, DataOrFile(user, "client-certificate", base_dir));
  ASSIGN_OR_RETURN(out.tls.key_pem, DataOrFile(user, "client-key", base_dir));
  if (out.tls.certificate_pem.empty() != out.tls.key_pem.empty()) {
    return Error(Reason::kInvalid, "client-certificate and client-key: need each other");
  }
  out.bearer_token = user["token"].Str();
  if (out.bearer_token.empty() && user.Has("tokenFile")) {
    ASSIGN_OR_RETURN(std::string token, ReadSmallFile(user["tokenFile"].Str()));
    out.bearer_token = std::string(Trim(token));
  }
  bool known = !out.tls.certificate_pem.empty() || !out.bearer_token.empty();
  for (const char* method : {"exec", "auth-provider", "username"}) {
    if (!known && user.Has(method)) {
      return Error(Reason::kInvalid,
                   "{}: muster signs in with a client certificate or a token only; put one of them "
                   "into the kubeconfig",
                   method);
    }
  }
  return Status::Ok();
}

}  // namespace

void Kubeconfig::Add(std::vector<Entry>& entries, const json::Value& list, const char* field,
                     const std::string& base_dir) {
  for (const json::Value& item : list.items()) {
    entries.push_back({item["name"].Str(), item[field], base_dir});
  }
}

const Kubeconfig::Entry* Kubeconfig::Find(const std::vector<Entry>& entries,
                                          std::string_view name) {
  for (const Entry& entry : entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

Result<Kubeconfig> Kubeconfig::Parse(std::string_view yaml, const std::string& base_dir) {
  ASSIGN_OR_RETURN(std::vector<json::Value> documents, json::ParseYaml(yaml));
  Kubeconfig out;
  if (documents.empty()) return out;
  const json::Value& root = documents.front();
  if (!root.IsObject()) return Error(Reason::kInvalid, "not a kubeconfig: expected a mapping");
  out.current_context_ = root["current-context"].Str();
  out.Add(out.clusters_, root["clusters"], "cluster", base_dir);
  out.Add(out.users_, root["users"], "user", base_dir);
  out.Add(out.contexts_, root["contexts"], "context", base_dir);
  return out;
}

Result<Kubeconfig> Kubeconfig::LoadFile(const std::string& path) {
  ASSIGN_OR_RETURN(std::string text, ReadSmallFile(path));
  Result<Kubeconfig> parsed = Parse(text, DirectoryOf(path));
  if (!parsed) return Error(parsed.error().WithPrefix(path + ": "));
  return parsed;
}

Result<Kubeconfig> Kubeconfig::LoadFiles(const std::vector<std::string>& paths) {
  Kubeconfig out;
  bool found = false;
  for (const std::string& path : paths) {
    Result<Kubeconfig> one = LoadFile(path);
    if (!one && one.error().reason() == Reason::kNotFound) continue;
    if (!one) return Error(one.error());
    out.Merge(*std::move(one));
    found = true;
  }
  if (!found) return Error(Reason::kNotFound, "no kubeconfig: {} not found", Join(paths, ", "));
  return out;
}

void Kubeconfig::Merge(Kubeconfig other) {
  if (current_context_.empty()) current_context_ = std::move(other.current_context_);
  auto append = [](std::vector<Entry>& to, std::vector<Entry> from) {
    for (Entry& entry : from) {
      if (Find(to, entry.name) == nullptr) to.push_back(std::move(entry));
    }
  };
  append(clusters_, std::move(other.clusters_));
  append(users_, std::move(other.users_));
  append(contexts_, std::move(other.contexts_));
}

std::vector<std::string> Kubeconfig::contexts() const {
  std::vector<std::string> names;
  for (const Entry& entry : contexts_) names.push_back(entry.name);
  return names;
}

Result<ConnectionConfig> Kubeconfig::Connect(std::string_view wanted) const {
  std::string name = wanted.empty() ? current_context_ : std::string(wanted);
  if (name.empty() && contexts_.empty())
    return Error(Reason::kInvalid, "kubeconfig: it names no context");
  if (name.empty()) {
    return Error(Reason::kInvalid,
                 "kubeconfig: current-context is not set; choose one with --context: {}",
                 Join(contexts(), ", "));
  }
  const Entry* context = Find(contexts_, name);
  if (context == nullptr) {
    return Error(Reason::kNotFound, "kubeconfig: context {:?} not found; there is: {}", name,
                 Join(contexts(), ", "));
  }
  const std::string cluster_name = context->value["cluster"].Str();
  const Entry* cluster = Find(clusters_, cluster_name);
  if (cluster == nullptr) {
    return Error(Reason::kNotFound, "kubeconfig: context {:?}: cluster {:?} not found", name,
                 cluster_name);
  }
  ConnectionConfig out;
  out.context = name;
  out.ns = context->value["namespace"].Str("default");
  if (out.ns.empty()) out.ns = "default";
  if (Status status = ReadCluster(cluster->value, cluster->base_dir, out); !status.ok()) {
    return Error(status.WithPrefix(fmt::format("kubeconfig: cluster {:?}: ", cluster_name)));
  }
  const std::string user_name = context->value["user"].Str();
  if (const Entry* user = Find(users_, user_name); user != nullptr) {
    if (Status status = ReadUser(user->value, user->base_dir, out); !status.ok()) {
      return Error(status.WithPrefix(fmt::format("kubeconfig: user {:?}: ", user_name)));
    }
  } else if (!user_name.empty()) {
    return Error(Reason::kNotFound, "kubeconfig: context {:?}: user {:?} not found", name,
                 user_name);
  }
  return out;
}

json::Value MakeKubeconfig(const std::string& name, const std::string& server_url,
                           const std::string& ca_pem, const std::string& certificate_pem,
                           const std::string& key_pem) {
  using json::List;
  using json::Obj;
  json::Value cluster =
      Obj({{"certificate-authority-data", Base64Encode(ca_pem)}, {"server", server_url}});
  json::Value user = Obj({{"client-certificate-data", Base64Encode(certificate_pem)},
                          {"client-key-data", Base64Encode(key_pem)}});
  json::Value context = Obj({{"cluster", name}, {"user", name}});
  return Obj({{"apiVersion", "v1"},
              {"kind", "Config"},
              {"clusters", List({Obj({{"name", name}, {"cluster", cluster}})})},
              {"users", List({Obj({{"name", name}, {"user", user}})})},
              {"contexts", List({Obj({{"name", name}, {"context", context}})})},
              {"current-context", name}});
}

Status WriteKubeconfig(const std::string& path, const json::Value& kubeconfig) {
  return WriteFileAtomic(path, json::WriteYaml(kubeconfig), 0600, true);
}

json::Value MergeKubeconfig(const json::Value& existing, const json::Value& added) {
  json::Value out = existing;
  if (!out.Has("apiVersion")) out = out.Set("apiVersion", "v1").Set("kind", "Config");
  for (const char* field : {"clusters", "users", "contexts"}) {
    json::Array entries;
    auto is_replaced = [&](const json::Value& entry) {
      for (const json::Value& fresh : added[field].items()) {
        if (fresh["name"] == entry["name"]) return true;
      }
      return false;
    };
    for (const json::Value& entry : existing[field].items()) {
      if (!is_replaced(entry)) entries.push_back(entry);
    }
    for (const json::Value& fresh : added[field].items()) entries.push_back(fresh);
    out = out.Set(field, json::Value(std::move(entries)));
  }
  return out.Set("current-context", added["current-context"]);
}

json::Value RenewKubeconfig(const json::Value& existing, const json::Value& fresh) {
  json::Array contexts;
  for (const json::Value& context : fresh["contexts"].items()) {
    const json::Value& ours = context["context"];
    json::Value kept = FindEntry(existing, "contexts", context["name"].Str())["context"];
    if (!kept.IsObject()) kept = ours;
    const std::string user = kept["user"].Str();
    if (user.empty() || FindEntry(existing, "users", user).IsNull())
      kept = std::move(kept).Set("user", ours["user"]);
    contexts.push_back(context.Set("context", std::move(kept).Set("cluster", ours["cluster"])));
  }
  const json::Value out =
      MergeKubeconfig(existing, fresh.Set("contexts", json::Value(std::move(contexts))));
  const std::string current = existing["current-context"].Str();
  const bool stays = !FindEntry(out, "contexts", current).IsNull();
  return stays ? out.Set("current-context", current) : out;
}

Status RenewKubeconfigFile(const std::string& path, const json::Value& fresh) {
  json::Value existing;
  if (const Result<std::string> text = ReadSmallFile(path); text) {
    const Result<std::vector<json::Value>> documents = json::ParseYaml(*text);
    const bool good =
        documents && documents->size() <= 1 &&
        (documents->empty() || documents->front().IsNull() || documents->front().IsObject());
    if (!good) LOG_WARN("client: {} is no kubeconfig any more: written anew", path);
    if (good && !documents->empty()) existing = documents->front();
  } else if (text.error().reason() != Reason::kNotFound) {
    return text.error();
  }
  return WriteKubeconfig(path, RenewKubeconfig(existing, fresh));
}

json::Value UnmergeKubeconfig(const json::Value& existing, const std::string& name) {
  json::Value out = existing;
  for (const char* field : {"clusters", "users", "contexts"}) {
    json::Array entries;
    for (const json::Value& entry : existing[field].items()) {
      if (entry["name"] != json::Value(name)) entries.push_back(entry);
    }
    if (existing[field].size() != entries.size())
      out = out.Set(field, json::Value(std::move(entries)));
  }
  return out["current-context"] == json::Value(name) ? out.Set("current-context", "") : out;
}

json::Value FindEntry(const json::Value& kubeconfig, std::string_view field,
                      std::string_view name) {
  for (const json::Value& entry : kubeconfig[field].items()) {
    if (entry["name"].Str() == name) return entry;
  }
  return {};
}

}  // namespace muster::client
