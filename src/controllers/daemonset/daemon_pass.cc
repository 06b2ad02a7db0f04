#include "controllers/daemonset/daemon_pass.h"

#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "base/strings.h"
#include "controllers/daemonset/daemon_pods.h"
#include "controllers/history/history.h"
#include "controllers/pods/pod_template.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

// Upstream's burst: more nodes take several passes.
constexpr size_t kMaxChangesPerPass = 250;

bool IsTerminating(const json::Value& pod) { return pod["metadata"].Has("deletionTimestamp"); }

class Pass {
 public:
  Pass(const DaemonSetInput& input, DaemonLedger& ledger, Time now, client::Reconciled& out)
      : input_(input),
        set_(input.daemon_set),
        ledger_(ledger),
        now_(now),
        out_(out),
        history_(input.daemon_set, input.revisions, kRevisionHashLabel) {}

  void Run() {
    int64_t collisions = set_["status"]["collisionCount"].AsInt();
    const json::Value revision = history_.Sync(input_.revision_names, collisions, out_);
    hash_ = revision["metadata"]["labels"][kRevisionHashLabel].Str();
    ledger_.Update(input_.nodes, hash_, now_);
    if (const std::optional<Time> at = ledger_.look_again_at()) out_.LookAgainAt(*at);
    Manage();
    Replace();
    Emit();
    WriteStatus(collisions);
    std::set<std::string> live{NameOf(revision)};
    for (const json::Value& old : input_.revisions) {
      if (ledger_.HasPodOf(old["metadata"]["labels"][kRevisionHashLabel].AsString()))
        live.insert(NameOf(old));
    }
    history_.Truncate(set_["spec"]["revisionHistoryLimit"].AsInt(10), live, out_);
    out_.subject = set_;
    out_.brief_refusals = true;
  }

 private:
  // -- One on each node.

  void Manage() {
    for (const std::string& name : ledger_.acting()) {
      const DaemonNodePlan& plan = ledger_.PlanOf(name);
      if (plan.create) Create(name);
      for (const json::Value& pod : plan.over) TellOfEnd(pod, name);
      for (const json::Value& pod : plan.ends) Delete(pod);
    }
  }

  void TellOfEnd(const json::Value& pod, const std::string& node) {
    const bool failed = pod["status"]["phase"].AsString() == "Failed";
    out_.Event(set_, failed ? client::EventType::kWarning : client::EventType::kNormal,
               failed ? "FailedDaemonPod" : "SucceededDaemonPod",
               fmt::format("Found {} daemon pod {} on node {}, will try to {} it",
                           failed ? "failed" : "succeeded", client::KeyOf(pod).ToString(), node,
                           failed ? "kill" : "delete"));
  }

  // As many of those that may be replaced as the bound allows.
  void Replace() {
    const int64_t surge = ledger_.Bound("maxSurge", false);
    int64_t bound = surge > 0 ? surge : ledger_.Bound("maxUnavailable", true);
    if (surge == 0 && bound == 0) bound = 1;
    int64_t taken = ledger_.counts().unavailable;
    for (const std::string& name : ledger_.replaceable()) {
      if (taken++ >= bound) return;
      surge > 0 ? Create(name) : Delete(*ledger_.PlanOf(name).replaceable);
    }
  }

  // -- Writes.

  void Create(const std::string& node) { to_create_.insert(node); }
  void Delete(const json::Value& pod) {
    if (!IsTerminating(pod)) to_delete_.emplace(NameOf(pod), pod["metadata"]["uid"].Str());
  }

  void Emit() {
    size_t left = kMaxChangesPerPass;
    const std::string ns = set_["metadata"]["namespace"].Str();
    for (const std::string& node : to_create_) {
      if (left-- == 0) return;
      PodNames names(NameOf(set_), Hash64(node, input_.seed));
      const std::string name = names.Next(input_.is_taken);
      out_.Create({resources::kPods, ns, name, ""}, MakeDaemonPod(set_, node, hash_, name));
      out_.Event(set_, client::EventType::kNormal, "SuccessfulCreate",
                 fmt::format("Created pod: {}", name));
    }
    for (const auto& [name, uid] : to_delete_) {
      if (left-- == 0) return;
      client::DeleteOptions options;
      options.precondition_uid = uid;
      out_.Delete({resources::kPods, ns, name, ""}, std::move(options));
      out_.Event(set_, client::EventType::kNormal, "SuccessfulDelete",
                 fmt::format("Deleted pod: {}", name));
    }
  }

  void WriteStatus(int64_t collisions) {
    const DaemonCounts& counts = ledger_.counts();
    json::Value status = set_["status"]
                             .Set("currentNumberScheduled", counts.current)
                             .Set("numberMisscheduled", counts.misscheduled)
                             .Set("desiredNumberScheduled", counts.desired)
                             .Set("numberReady", counts.ready);
    const auto count = [&](const char* name, int64_t number) {
      status = number == 0 ? status.Remove(name) : std::move(status).Set(name, number);
    };
    count("observedGeneration", set_["metadata"]["generation"].AsInt());
    count("updatedNumberScheduled", counts.updated);
    count("numberAvailable", counts.available);
    count("numberUnavailable", counts.desired - counts.available);
    count("collisionCount", collisions);
    if (status == set_["status"]) return;
    const client::ObjectKey key = client::KeyOf(set_);
    out_.UpdateStatus({resources::kDaemonSets, key.ns, key.name, ""},
                      set_.Set("status", std::move(status)));
  }

  const DaemonSetInput& input_;
  const json::Value& set_;
  DaemonLedger& ledger_;
  const Time now_;
  client::Reconciled& out_;
  History history_;
  std::string hash_;
  std::set<std::string> to_create_;               // nodes
  std::map<std::string, std::string> to_delete_;  // name -> uid
};

}  // namespace

void ReconcileDaemonSet(const DaemonSetInput& input, DaemonLedger& ledger, Time now,
                        client::Reconciled& out) {
  Pass(input, ledger, now, out).Run();
}

}  // namespace muster::controllers
