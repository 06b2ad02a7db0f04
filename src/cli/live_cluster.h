// src/cli/live_cluster.h
//
// Reads from the API server what a plan needs.
//
// Thread: the loop thread.

#pragma once

#include "base/status.h"
#include "cli/session.h"
#include "scheduler/cluster_copy.h"

namespace muster::cli {

// All nodes and pods, and what else there is for a plan; a kind that the server does not serve, or
// that the user may not read, counts as empty, but nodes and pods must be there.
Result<scheduler::ClusterLists> ReadCluster(Session& session);

}  // namespace muster::cli
