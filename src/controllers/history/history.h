// src/controllers/history/history.h
//
// ControllerRevisions: the former templates of a StatefulSet or a DaemonSet, numbered; what
// `kubectl rollout history` shows and `undo` goes back to. Source: k8s.io/kubernetes
// pkg/controller/history.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client/reconcile.h"
#include "json/value.h"

namespace muster::controllers {

// The label of revisions and of the pods that were made from them.
inline constexpr std::string_view kRevisionHashLabel = "controller-revision-hash";

// Call in Setup(). Wakes the owners of this kind for their revisions, and for those that nobody
// owns and that they select.
std::vector<client::Trigger> FollowRevisions(client::InformerSet& informers,
                                             const client::Informer& owners,
                                             const std::string& owner_kind);
// The revisions that the owner controls; orphans that it selects are adopted first. nullopt: the
// pass has to wait for an answer (see CarryOut).
std::optional<std::vector<json::Value>> ClaimRevisions(const client::View& view,
                                                       const client::Resource& owner_resource,
                                                       const json::Value& owner,
                                                       const client::Observations& observations,
                                                       client::Reconciled& out);

// Of one owner, in one pass.
class History {
 public:
  // `revisions`: those that the owner controls, in any order.
  // The hash of the template becomes this label of a revision; upstream's kinds differ in it.
  History(const json::Value& owner, std::vector<json::Value> revisions,
          std::string_view hash_label);

  // The revision of the owner's present template: found, found and made the newest again, or made;
  // the write for that is added to `out`, unless the owner goes. `taken_names`: of revisions that
  // are there; then the count of collisions goes up by one, which becomes part of the hash.
  const json::Value& Sync(const std::set<std::string>& taken_names, int64_t& collision_count,
                          client::Reconciled& out);

  // The one of that name; null if there is none.
  const json::Value& Find(std::string_view name) const;

  // Deletes the oldest beyond the limit, but none of `live`, which are names.
  void Truncate(int64_t limit, const std::set<std::string>& live, client::Reconciled& out) const;

 private:
  const json::Value owner_;
  const std::string hash_label_;
  std::vector<json::Value> revisions_;  // from old to new
};

// The template that a revision keeps.
json::Value TemplateOf(const json::Value& revision);
std::string NameOf(const json::Value& object);
// Names of the owner's namespace that begin with its own and a hyphen: those that a new revision
// could have.
std::set<std::string> NamesThatBeginWith(const client::Informer& revisions,
                                         const client::ObjectKey& owner);

}  // namespace muster::controllers
