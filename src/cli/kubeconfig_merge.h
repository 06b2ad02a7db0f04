// src/cli/kubeconfig_merge.h
//
// Puts a cluster's entries into the files in which kubectl looks, and takes them away again. The
// context carries a mark (an extension, which kubectl keeps): whose it is, and which context was
// current before.
//
// Files: as kubectl's ConfigAccess: of $KUBECONFIG's list the first that has the context, else the
//        first that exists, else the last; without one ~/.kube/config. The current context goes
//        where kubectl reads it first. The cluster's own file is never among them.
// Thread: any; blocking file calls.

#pragma once

#include <string>

#include "base/status.h"

namespace muster::cli {

struct MergeRequest {
  std::string own_file;        // the cluster's own kubeconfig
  std::string into = {};       // "": where kubectl looks
  std::string name = {};       // of cluster, user and context; "": by the data directory's name
  bool switch_context = true;  // make it the current one
};

// What was done, as a sentence for the user. Invalid if a file is no kubeconfig or has somebody
// else's entry of that name: nothing is changed then.
Result<std::string> MergeCluster(const MergeRequest& request);
Result<std::string> UnmergeCluster(const MergeRequest& request);

// Whether there is something for UnmergeCluster() to take away.
bool IsMerged(const std::string& own_file);

}  // namespace muster::cli
