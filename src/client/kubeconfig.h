// src/client/kubeconfig.h
//
// Kubeconfig: the file by which every Kubernetes client finds its server and proves who it is.
// Reads what kubectl writes (clusters, users, contexts; *-data fields and file paths; a list of
// files in KUBECONFIG), writes what kubectl reads.
//
// Life cycle: a value.
// Thread:     any; reads and writes files, so only programs that just start use it.
// Rule:       of two entries with one name the first counts, and so does the first current-context
// (as kubectl merges).

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "net/client.h"

namespace muster::client {

// Everything that a transport needs of one context.
struct ConnectionConfig {
  std::string context;
  net::Endpoint endpoint;
  std::string path_prefix;  // before "/api/...", "" usually
  net::ClientOptions tls;
  std::string bearer_token;
  std::string ns;  // of the context, "default" if it names none
};

class Kubeconfig {
 public:
  // `base_dir`: what relative file names in it are relative to.
  static Result<Kubeconfig> Parse(std::string_view yaml, const std::string& base_dir);
  static Result<Kubeconfig> LoadFile(const std::string& path);
  // Merged in order; files that do not exist are left out unless none exists.
  static Result<Kubeconfig> LoadFiles(const std::vector<std::string>& paths);

  // `context` "" = current-context. NotFound or Invalid says which entry of which context is wrong.
  Result<ConnectionConfig> Connect(std::string_view context = {}) const;

  const std::string& current_context() const { return current_context_; }
  std::vector<std::string> contexts() const;

 private:
  struct Entry {
    std::string name;
    json::Value value;
    std::string base_dir;
  };
  static const Entry* Find(const std::vector<Entry>& entries, std::string_view name);
  void Add(std::vector<Entry>& entries, const json::Value& list, const char* field,
           const std::string& base_dir);
  void Merge(Kubeconfig other);

  std::string current_context_;
  std::vector<Entry> clusters_, users_, contexts_;
};

// What `muster up` calls its cluster, user and context.
inline constexpr const char* kOwnEntry = "muster";

// A whole kubeconfig with one cluster, user and context, all called `name`; certificates inline.
json::Value MakeKubeconfig(const std::string& name, const std::string& server_url,
                           const std::string& ca_pem, const std::string& certificate_pem,
                           const std::string& key_pem);
// As YAML, mode 0600, whole or not at all.
Status WriteKubeconfig(const std::string& path, const json::Value& kubeconfig);
// Puts the entries of `added` into `existing` in place of those with the same names, makes its
// context current, and keeps everything else.
json::Value MergeKubeconfig(const json::Value& existing, const json::Value& added);
// The cluster's own file, written anew: its cluster and user are those of `fresh`; what users put
// there stays, such as other entries, and in the context its namespace.
json::Value RenewKubeconfig(const json::Value& existing, const json::Value& fresh);
// The same with a file, which need not exist. One that is no kubeconfig is replaced.
Status RenewKubeconfigFile(const std::string& path, const json::Value& fresh);
// Without the cluster, user and context of that name, and current-context if it is that one.
json::Value UnmergeKubeconfig(const json::Value& existing, const std::string& name);
// The entry of that name in "clusters", "users" or "contexts"; null if there is none.
json::Value FindEntry(const json::Value& kubeconfig, std::string_view field, std::string_view name);

}  // namespace muster::client
