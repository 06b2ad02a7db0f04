#include "controllers/daemonset/daemon_pass.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "base/strings.h"
#include "controllers/daemonset/daemon_pods.h"
#include "controllers/history/history.h"
#include "controllers/pods/int_or_percent.h"
#include "controllers/pods/pod_facts.h"
#include "controllers/pods/pod_template.h"
#include "schema/pod_phase.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

// Upstream's burst: more nodes take several passes.
constexpr size_t kMaxChangesPerPass = 250;

bool IsTerminating(const json::Value& pod) { return pod["metadata"].Has("deletionTimestamp"); }

class Pass {
 public:
  Pass(const DaemonSetInput& input, Time now, client::Reconciled& out)
      : input_(input),
        set_(input.daemon_set),
        now_(now),
        out_(out),
        history_(input.daemon_set, input.revisions, kRevisionHashLabel),
        min_ready_(seconds(set_["spec"]["minReadySeconds"].AsInt())) {}

  void Run() {
    int64_t collisions = set_["status"]["collisionCount"].AsInt();
    const json::Value revision = history_.Sync(input_.revision_names, collisions, out_);
    hash_ = revision["metadata"]["labels"][kRevisionHashLabel].Str();
    JudgeNodes();
    SortPods();
    if (!set_["metadata"].Has("deletionTimestamp")) {
      Manage();
      if (set_["spec"]["updateStrategy"]["type"].AsString() != "OnDelete") Update();
    }
    Emit();
    WriteStatus(collisions);
    std::set<std::string> live{NameOf(revision)};
    for (const json::Value& old : input_.revisions) {
      const json::Value& hash = old["metadata"]["labels"][kRevisionHashLabel];
      if (std::any_of(input_.pods.begin(), input_.pods.end(), [&](const json::Value& pod) {
            return pod["metadata"]["labels"][kRevisionHashLabel] == hash;
          }))
        live.insert(NameOf(old));
    }
    history_.Truncate(set_["spec"]["revisionHistoryLimit"].AsInt(10), live, out_);
    out_.subject = set_;
    out_.brief_refusals = true;
  }

 private:
  struct NodeState {
    NodeVerdict verdict;
    std::vector<json::Value> pods;  // from old to new
  };

  // The newest of the present template and the newest of another one, of those that are not over.
  struct Pair {
    const json::Value* present = nullptr;
    const json::Value* old = nullptr;
    bool too_many = false;
  };

  // -- What there is.

  void JudgeNodes() {
    const json::Value spec = MakeDaemonPod(set_, "", hash_, "")["spec"];
    // Without the name of a node, of which every node would be another one.
    const json::Value& affinity = set_["spec"]["template"]["spec"]["affinity"];
    const json::Value open =
        affinity.IsNull() ? spec.Remove("affinity") : spec.Set("affinity", affinity);
    for (const json::Value& node : input_.nodes)
      nodes_[NameOf(node)].verdict = JudgeNode(open, node);
  }

  void SortPods() {
    const auto rank = [](const json::Value& pod) {
      return std::tuple(pod["metadata"]["creationTimestamp"].AsString(), NameOf(pod));
    };
    std::vector<json::Value> pods = input_.pods;
    std::sort(pods.begin(), pods.end(),
              [&](const json::Value& a, const json::Value& b) { return rank(a) < rank(b); });
    for (const json::Value& pod : pods) {
      const auto node = nodes_.find(NodeOfDaemonPod(pod));
      if (node != nodes_.end()) {
        node->second.pods.push_back(pod);
      } else if (pod["spec"]["nodeName"].AsString().empty()) {
        Delete(pod);  // nobody else ends one that never came to its node
      }
    }
  }

  bool IsPresent(const json::Value& pod) const {
    return pod["metadata"]["labels"][kRevisionHashLabel].AsString() == hash_;
  }

  bool IsAvailable(const json::Value& pod) {
    const std::optional<Time> from = AvailableFrom(pod, min_ready_, now_);
    if (from.has_value() && *from > now_) out_.LookAgainAt(*from);
    return from.has_value() && *from <= now_;
  }

  Pair PairOf(const NodeState& node) const {
    Pair pair;
    for (const json::Value& pod : node.pods) {
      if (!IsActive(pod)) continue;
      const json::Value*& slot = IsPresent(pod) ? pair.present : pair.old;
      pair.too_many |= slot != nullptr;
      slot = &pod;
    }
    return pair;
  }

  int64_t Bound(const char* field, bool otherwise_one) const {
    const json::Value& value = set_["spec"]["updateStrategy"]["rollingUpdate"][field];
    const int64_t desired = std::count_if(nodes_.begin(), nodes_.end(), [](const auto& entry) {
      return entry.second.verdict.should_run;
    });
    return value.IsNull() && otherwise_one ? 1 : ScaledValue(value, desired, true);
  }

  // -- One on each node.

  void Manage() {
    for (auto& [name, node] : nodes_) {
      if (node.verdict.should_run && node.pods.empty()) {
        Create(name);
        continue;
      }
      const bool stays = node.verdict.may_go_on;
      std::vector<json::Value> running;
      for (const json::Value& pod : node.pods) {
        if (IsTerminating(pod)) continue;
        if (!stays) {
          Delete(pod);
        } else if (!EndIfOver(pod, name)) {
          running.push_back(pod);
        }
      }
      EndSurplus(running);
    }
  }

  bool EndIfOver(const json::Value& pod, const std::string& node) {
    const std::string_view phase = pod["status"]["phase"].AsString();
    if (!schema::IsFinalPhase(phase)) return false;
    const bool failed = phase == "Failed";
    out_.Event(set_, failed ? client::EventType::kWarning : client::EventType::kNormal,
               failed ? "FailedDaemonPod" : "SucceededDaemonPod",
               fmt::format("Found {} daemon pod {} on node {}, will try to {} it",
                           failed ? "failed" : "succeeded", client::KeyOf(pod).ToString(), node,
                           failed ? "kill" : "delete"));
    Delete(pod);
    return true;
  }

  // The oldest stays; while pods are replaced one beside the other, the oldest of each template.
  void EndSurplus(const std::vector<json::Value>& running) {
    const bool surges = Bound("maxSurge", false) > 0;
    bool has_present = false, has_old = false;
    for (const json::Value& pod : running) {
      bool& has_one = surges && IsPresent(pod) ? has_present : has_old;
      if (has_one) Delete(pod);
      has_one = true;
    }
  }

  // -- Replacement.

  void Update() {
    const int64_t surge = Bound("maxSurge", false);
    int64_t unavailable = Bound("maxUnavailable", true);
    if (surge == 0 && unavailable == 0) unavailable = 1;
    surge == 0 ? Replace(unavailable) : ReplaceBeside(surge);
  }

  // Old pods that are not available go at once, the others as the bound allows.
  void Replace(int64_t max_unavailable) {
    int64_t missing = 0;
    std::vector<const json::Value*> candidates;
    for (const auto& [name, node] : nodes_) {
      if (!node.verdict.should_run && node.pods.empty()) continue;
      const Pair pair = PairOf(node);
      if (pair.too_many || (pair.present == nullptr) == (pair.old == nullptr)) {
        ++missing;
      } else if (pair.present != nullptr) {
        if (!IsAvailable(*pair.present)) ++missing;
      } else if (!IsAvailable(*pair.old)) {
        ++missing;
        Delete(*pair.old);
      } else {
        candidates.push_back(pair.old);
      }
    }
    for (const json::Value* pod : candidates) {
      if (missing++ >= max_unavailable) return;
      Delete(*pod);
    }
  }

  // The new pod comes first; the old one goes when it is available.
  void ReplaceBeside(int64_t max_surge) {
    int64_t beside = 0;
    std::vector<std::string> candidates;
    for (const auto& [name, node] : nodes_) {
      const Pair pair = PairOf(node);
      if (pair.too_many) {
        ++beside;
      } else if (pair.old == nullptr || !node.verdict.should_run) {
        continue;
      } else if (pair.present == nullptr) {
        if (IsAvailable(*pair.old)) {
          candidates.push_back(name);
        } else {
          Create(name);
        }
      } else if (IsAvailable(*pair.present)) {
        Delete(*pair.old);
      } else {
        ++beside;
      }
    }
    for (const std::string& node : candidates) {
      if (beside++ >= max_surge) return;
      Create(node);
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
    int64_t desired = 0, current = 0, misscheduled = 0, ready = 0, available = 0, updated = 0;
    for (const auto& [name, node] : nodes_) {
      if (!node.verdict.should_run) {
        if (!node.pods.empty()) ++misscheduled;
        continue;
      }
      ++desired;
      if (node.pods.empty()) continue;
      ++current;
      // The oldest counts.
      const json::Value& pod = node.pods.front();
      if (IsReady(pod)) ++ready;
      if (IsReady(pod) && IsAvailable(pod)) ++available;
      if (std::any_of(node.pods.begin(), node.pods.end(),
                      [&](const json::Value& one) { return IsPresent(one); }))
        ++updated;
    }
    json::Value status = set_["status"]
                             .Set("currentNumberScheduled", current)
                             .Set("numberMisscheduled", misscheduled)
                             .Set("desiredNumberScheduled", desired)
                             .Set("numberReady", ready);
    const auto count = [&](const char* name, int64_t number) {
      status = number == 0 ? status.Remove(name) : std::move(status).Set(name, number);
    };
    count("observedGeneration", set_["metadata"]["generation"].AsInt());
    count("updatedNumberScheduled", updated);
    count("numberAvailable", available);
    count("numberUnavailable", desired - available);
    count("collisionCount", collisions);
    if (status == set_["status"]) return;
    const client::ObjectKey key = client::KeyOf(set_);
    out_.UpdateStatus({resources::kDaemonSets, key.ns, key.name, ""},
                      set_.Set("status", std::move(status)));
  }

  const DaemonSetInput& input_;
  const json::Value& set_;
  const Time now_;
  client::Reconciled& out_;
  History history_;
  const Duration min_ready_;
  std::string hash_;
  std::map<std::string, NodeState> nodes_;
  std::set<std::string> to_create_;               // nodes
  std::map<std::string, std::string> to_delete_;  // name -> uid
};

}  // namespace

void ReconcileDaemonSet(const DaemonSetInput& input, Time now, client::Reconciled& out) {
  Pass(input, now, out).Run();
}

}  // namespace muster::controllers
