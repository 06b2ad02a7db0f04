// src/cli/explanation.h
//
// What `muster explain` has to say about one object: a sentence, lines below it, and the same as
// JSON (fields: docs/explain.md). What waits for the scheduler is planned again on a copy of the
// cluster, so that the detail does not depend on where the scheduler runs.
//
// Thread: the loop thread.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cli/resource_finder.h"
#include "cli/session.h"
#include "json/value.h"
#include "scheduler/cluster_copy.h"

namespace muster::cli {

struct Explanation {
  std::string sentence;
  std::vector<std::string> lines;
  json::Value json;
};

Result<Explanation> ExplainPod(Session& session, const json::Value& pod);
// Of a PodGroup of either API.
Result<Explanation> ExplainGang(Session& session, const json::Value& group);
// `silence`: for how long the ranks of a training must have said nothing to be suspected to hang.
Result<Explanation> ExplainJob(Session& session, const ApiResource& resource,
                               const json::Value& job, Duration silence);
Result<Explanation> ExplainNode(Session& session, const json::Value& node);
// Of whatever else: its phase, its conditions and its events.
Result<Explanation> ExplainOther(Session& session, const ApiResource& resource,
                                 const json::Value& object);

// -- What these share.

// "waits: ..." , "runs on node n0", "failed: ...".
std::string SentenceForPod(const json::Value& pod);
// Pods with the same answer together: "a, b: waits: ...". What `said` has already is not repeated.
void AddPods(const json::Value& pods, const std::string& said, Explanation& out);
// The newest warning events of an object, without what was said.
Status AddWarnings(Session& session, const json::Value& object, std::string said, Explanation& out);
// All events of an object, the latest first. `kind` may be "": of any object of that name.
Result<json::Array> EventsOf(Session& session, const std::string& kind, const std::string& ns,
                             const std::string& name);
// What a plan on a copy of the cluster says of the unit: lines, and "scheduling" in the JSON. Where
// all that lacks are volumes which somebody has to make for its claims, what is known of these.
void AddScheduling(Session& session, const scheduler::UnitKey& unit, Explanation& out);
// What NodePools, if there are any, add for the unit, or why they add nothing: a line, and
// "nodePools" in the JSON.
void AddNodePools(Session& session, const scheduler::ClusterLists& lists,
                  const scheduler::UnitKey& unit, Explanation& out);

// Memory that ran out, of the node or of a GPU.
void AddPodFaults(Session& session, const json::Value& pod, Explanation& out);
// That, and of a job that runs what may be wrong with it: training_faults.h.
void AddTrainingFaults(Session& session, const json::Value& job, const json::Value& pods,
                       Duration silence, Explanation& out);
// Of a job or a pod that a queue of Kueue's holds: the sentence is then its place in it, and lines
// say what would admit it.
void AddQueue(Session& session, const json::Value& job, Explanation& out);

}  // namespace muster::cli
