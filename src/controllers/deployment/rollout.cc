#include "controllers/deployment/rollout.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "controllers/deployment/deployment_status.h"
#include "controllers/deployment/replica_sets.h"
#include "controllers/pods/template_hash.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

class Rollout {
 public:
  Rollout(const DeploymentInput& input, Time now, client::Reconciled& out)
      : input_(input),
        deployment_(input.deployment),
        spec_(input.deployment),
        now_(now),
        out_(out) {
    for (const json::Value& replica_set : input.replica_sets) {
      views_.push_back({replica_set});
      sizes_before_[views_.back().name()] = views_.back().replicas();
    }
    for (ReplicaSetView& view : views_) all_.push_back(&view);
    SortByCreation(all_);
    // The oldest of the present template, if there are several.
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const ReplicaSetView* view) {
      return HasTemplateOf(view->object, deployment_);
    });
    if (found != all_.end()) newest_ = *found;
    for (ReplicaSetView* view : all_) {
      if (view != newest_) old_.push_back(view);
    }
  }

  void Run() {
    if (deployment_["metadata"].Has("deletionTimestamp")) return CountOnly();
    deployment_ = deployment_.Set("status", JudgePause(spec_, deployment_["status"], now_));
    if (spec_.paused || IsScaled()) {
      SyncNewest(false);
      Scale();
      if (spec_.paused) CleanUp();
      CountOnly();
    } else {
      spec_.recreate ? Recreate() : Roll();
    }
    Emit();
  }

 private:
  // -- The ReplicaSet of the present template.

  int64_t MaxOldRevision() const {
    int64_t most = 0;
    for (const ReplicaSetView* view : old_) most = std::max(most, view->revision());
    return most;
  }

  // False if it cannot be made now: its name is taken, the next pass tries another one.
  bool SyncNewest(bool create) {
    const int64_t revision = MaxOldRevision() + 1;
    if (newest_ != nullptr) {
      SyncRevision(deployment_, revision, *newest_);
      SyncMinReady();
      revision_ = std::string(newest_->annotation(kRevisionAnnotation));
      NoteFirst("FoundNewReplicaSet", "Found new replica set");
      return true;
    }
    if (!create) return true;
    const int64_t collisions = deployment_["status"]["collisionCount"].AsInt();
    const std::string hash = TemplateHash(deployment_["spec"]["template"], collisions);
    views_.push_back({NewReplicaSet(deployment_, hash)});
    ReplicaSetView& made = views_.back();
    if (input_.is_taken(made.name())) {
      views_.pop_back();
      deployment_ = deployment_.SetPath({"status", "collisionCount"}, collisions + 1);
      return false;
    }
    made.created = true;
    SyncRevision(deployment_, revision, made);
    revision_ = fmt::format("{}", revision);
    newest_ = &made;
    all_.push_back(&made);
    made.SetReplicas(SizeOfNewest());
    made.SetSizeAnnotations(spec_);
    NoteFirst("NewReplicaSetCreated", "Created new replica set");
    return true;
  }

  void SyncMinReady() {
    if (newest_->object["spec"]["minReadySeconds"].AsInt() == spec_.min_ready_seconds) return;
    newest_->object = newest_->object.SetPath({"spec", "minReadySeconds"}, spec_.min_ready_seconds);
    newest_->changed = true;
  }

  void NoteFirst(const char* reason, const char* words) {
    const json::Value& conditions = deployment_["status"]["conditions"];
    const bool known = std::any_of(
        conditions.items().begin(), conditions.items().end(),
        [](const json::Value& condition) { return condition["type"].AsString() == "Progressing"; });
    if (spec_.progress_deadline_seconds < 0 || (known && !newest_->created)) return;
    deployment_ = deployment_.Set(
        "status", WithDeploymentCondition(deployment_["status"],
                                          {"Progressing", "True", reason,
                                           fmt::format("{} \"{}\"", words, newest_->name())},
                                          now_));
  }

  int64_t SizeOfNewest() const {
    const int64_t have = newest_->replicas();
    if (spec_.recreate) return spec_.replicas;
    const int64_t room = spec_.replicas + spec_.max_surge - SumOfReplicas(all_);
    if (room <= 0) return have;
    return have + std::min(room, spec_.replicas - have);
  }

  // -- Sizes.

  void SetSize(ReplicaSetView& view, int64_t replicas) {
    view.SetReplicas(replicas);
    view.SetSizeAnnotations(spec_);
  }

  // spec.replicas is not what it was when the sizes were last set.
  bool IsScaled() const {
    const std::string wanted = fmt::format("{}", spec_.replicas);
    return std::any_of(all_.begin(), all_.end(), [&](const ReplicaSetView* view) {
      const std::string_view desired = view->annotation(kDesiredReplicasAnnotation);
      return view->replicas() > 0 && !desired.empty() && desired != wanted;
    });
  }

  // The one that has all replicas, or should have.
  ReplicaSetView* OnlyOne() const {
    const std::vector<ReplicaSetView*> active = ActiveOf(all_);
    if (active.size() > 1) return nullptr;
    if (active.size() == 1) return active.front();
    if (newest_ != nullptr) return newest_;
    return old_.empty() ? nullptr : old_.back();
  }

  bool IsSaturated() const {
    return newest_ != nullptr && newest_->replicas() == spec_.replicas &&
           newest_->annotation(kDesiredReplicasAnnotation) == fmt::format("{}", spec_.replicas) &&
           newest_->available() == spec_.replicas;
  }

  void Scale() {
    if (ReplicaSetView* only = OnlyOne(); only != nullptr) {
      if (only->replicas() != spec_.replicas) SetSize(*only, spec_.replicas);
      return;
    }
    if (IsSaturated()) {
      for (ReplicaSetView* view : ActiveOf(old_)) SetSize(*view, 0);
    } else if (!spec_.recreate) {
      ScaleInProportion(spec_, deployment_["status"]["replicas"].AsInt(), ActiveOf(all_));
    }
  }

  // -- Rolling.

  void Roll() {
    if (!SyncNewest(true)) return CountOnly();
    const int64_t before = newest_->replicas();
    if (before > spec_.replicas) {
      SetSize(*newest_, spec_.replicas);
    } else if (before < spec_.replicas) {
      SetSize(*newest_, SizeOfNewest());
    }
    if (newest_->replicas() == before && !newest_->created) ShrinkOld();
    Finish();
  }

  // Pods that never became ready go first; then as many as are available beyond what must be.
  void ShrinkOld() {
    std::vector<ReplicaSetView*> active = ActiveOf(old_);
    const int64_t must = spec_.replicas - spec_.max_unavailable;
    const int64_t newest_unavailable = newest_->replicas() - newest_->available();
    int64_t may_go = SumOfReplicas(all_) - must - newest_unavailable;
    if (may_go <= 0) return;
    for (ReplicaSetView* view : active) {
      const int64_t unhealthy = std::min(may_go, view->replicas() - view->available());
      if (unhealthy <= 0) continue;
      SetSize(*view, view->replicas() - unhealthy);
      may_go -= unhealthy;
    }
    // A new one that had replicas before may still speak of them.
    if (!newest_->IsUpToDate()) return;
    int64_t surplus = SumOfLasting(all_) - must;
    for (ReplicaSetView* view : active) {
      const int64_t go = std::min(surplus, view->replicas());
      if (go <= 0) continue;
      SetSize(*view, view->replicas() - go);
      surplus -= go;
    }
  }

  void Recreate() {
    const std::vector<ReplicaSetView*> active = ActiveOf(old_);
    SyncNewest(false);
    for (ReplicaSetView* view : active) SetSize(*view, 0);
    const bool old_pods = std::any_of(old_.begin(), old_.end(), [&](const ReplicaSetView* view) {
      return input_.has_pods(view->object);
    });
    if (active.empty() && !old_pods) {
      if (!SyncNewest(true)) return CountOnly();
      SetSize(*newest_, spec_.replicas);
    }
    Finish();
  }

  void Finish() {
    const json::Value counted =
        CountReplicas(deployment_, spec_, deployment_["status"], all_, newest_, now_);
    const json::Value status = JudgeProgress(deployment_, spec_, counted, all_, newest_, now_);
    if (IsComplete(spec_, deployment_, status)) CleanUp();
    if (const std::optional<Time> due = ProgressDue(deployment_, spec_, status); due.has_value())
      out_.LookAgainAt(std::max(*due, now_ + seconds(1)));
    deployment_ = deployment_.Set("status", status);
  }

  void CountOnly() {
    deployment_ = deployment_.Set(
        "status", CountReplicas(deployment_, spec_, deployment_["status"], all_, newest_, now_));
  }

  // Old ones without pods, beyond what the history wants, from the lowest revision.
  void CleanUp() {
    if (spec_.revision_history_limit < 0) return;
    std::vector<ReplicaSetView*> old;
    for (ReplicaSetView* view : old_) {
      if (!view->object["metadata"].Has("deletionTimestamp")) old.push_back(view);
    }
    const int64_t surplus = static_cast<int64_t>(old.size()) - spec_.revision_history_limit;
    std::stable_sort(old.begin(), old.end(), [](const ReplicaSetView* a, const ReplicaSetView* b) {
      return a->revision() < b->revision();
    });
    for (int64_t i = 0; i < surplus; ++i) {
      const json::Value& object = old[static_cast<size_t>(i)]->object;
      if (!old[static_cast<size_t>(i)]->IsUpToDate() || object["status"]["replicas"].AsInt() != 0 ||
          object["spec"]["replicas"].AsInt() != 0)
        continue;
      to_delete_.push_back(client::KeyOf(object));
    }
  }

  // -- Writes.

  void Emit() {
    for (const ReplicaSetView* view : all_) {
      if (view->created) {
        out_.Create(TargetOf(*view), view->object);
      } else if (view->changed) {
        out_.PatchMerge(TargetOf(*view), PatchOf(*view));
      } else {
        continue;
      }
      TellOfScaling(*view);
    }
    const client::ObjectKey key = client::KeyOf(deployment_);
    const client::Target self{resources::kDeployments, key.ns, key.name, ""};
    const json::Value& stored = input_.deployment;
    if (!revision_.empty() &&
        stored["metadata"]["annotations"][kRevisionAnnotation].AsString() != revision_) {
      out_.PatchMerge(
          self,
          json::Obj({{"metadata",
                      json::Obj({{"annotations",
                                  json::Obj({{std::string(kRevisionAnnotation), revision_}})}})}}));
    }
    if (deployment_["status"] != stored["status"]) {
      // A merge patch: the object's revision may be that of the annotation above.
      client::Target target = self;
      target.subresource = "status";
      out_.PatchMerge(target, StatusPatch(stored["status"], deployment_["status"]));
    }
    for (const client::ObjectKey& old : to_delete_)
      out_.Delete({resources::kReplicaSets, old.ns, old.name, ""});
    out_.subject = stored;
  }

  static client::Target TargetOf(const ReplicaSetView& view) {
    const client::ObjectKey key = client::KeyOf(view.object);
    return {resources::kReplicaSets, key.ns, key.name, ""};
  }

  static json::Value PatchOf(const ReplicaSetView& view) {
    const json::Value& spec = view.object["spec"];
    json::Value changed = json::Obj({{"replicas", spec["replicas"]}});
    if (spec.Has("minReadySeconds"))
      changed = std::move(changed).Set("minReadySeconds", spec["minReadySeconds"]);
    return json::Obj(
        {{"metadata", json::Obj({{"uid", view.object["metadata"]["uid"]},
                                 {"annotations", view.object["metadata"]["annotations"]}})},
         {"spec", std::move(changed)}});
  }

  // What is no more becomes null.
  static json::Value StatusPatch(const json::Value& before, const json::Value& after) {
    json::Value status = after;
    for (const auto& [name, value] : before.members()) {
      if (!after.Has(name)) status = std::move(status).Set(name, nullptr);
    }
    return json::Obj({{"status", std::move(status)}});
  }

  void TellOfScaling(const ReplicaSetView& view) {
    const auto found = sizes_before_.find(view.name());
    const int64_t before = found == sizes_before_.end() ? 0 : found->second;
    if (before == view.replicas()) return;
    out_.Event(input_.deployment, client::EventType::kNormal, "ScalingReplicaSet",
               fmt::format("Scaled {} replica set {} from {} to {}",
                           view.replicas() > before ? "up" : "down", view.name(), before,
                           view.replicas()));
  }

  const DeploymentInput& input_;
  json::Value deployment_;  // with the status as it will be
  const DeploymentSpec spec_;
  const Time now_;
  client::Reconciled& out_;
  std::deque<ReplicaSetView> views_;
  std::vector<ReplicaSetView*> all_, old_;  // from old to new
  ReplicaSetView* newest_ = nullptr;        // of the present template
  std::map<std::string, int64_t> sizes_before_;
  std::string revision_;  // of the present template; "": not known yet
  std::vector<client::ObjectKey> to_delete_;
};

}  // namespace

void ReconcileDeployment(const DeploymentInput& input, Time now, client::Reconciled& out) {
  Rollout(input, now, out).Run();
}

}  // namespace muster::controllers
