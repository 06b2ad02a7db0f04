// src/agent/node/node_secrets.h
//
// NodeSecrets: what only root may read on the node. A pod's root is the node's root, without most
// capabilities but with the right to read every file, and its file system is the node's `/`. So
// what others may not read (backups of /etc/shadow, keys, a swap file) is hidden from every pod.
//
// Life cycle: one per agent. Looks again when its last look is older than kNodeSecretsPeriod.
// Thread:     any (pool); blocks for some milliseconds when it looks.
// Limits:     it looks at the file system of `/` only, some levels deep (node_secrets.cc), and
//             keeps kMaxNodeSecrets paths.

#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"

namespace muster::agent {

inline constexpr Duration kNodeSecretsPeriod = seconds(60);
inline constexpr size_t kMaxNodeSecrets =
    4096;  // paths; those beyond are not hidden, and it is said

// Files and folders without read permission for others; nothing below such a folder is listed.
// `root` is "/" (tests give another).
std::vector<std::string> FindNodeSecrets(const std::string& root);

class NodeSecrets {
 public:
  std::vector<std::string> Paths();

 private:
  std::mutex mutex_;
  std::optional<Duration> looked_at_;  // monotonic
  std::vector<std::string> paths_;
};

}  // namespace muster::agent
