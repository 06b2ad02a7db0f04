#include "controllers/history/history.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "controllers/pods/ownership.h"
#include "controllers/pods/selected_objects.h"
#include "controllers/pods/template_hash.h"

namespace muster::controllers {
namespace {

// A strategic merge patch of the owner: what `kubectl rollout undo` applies.
json::Value DataOf(const json::Value& owner) {
  return json::Obj(
      {{"spec", json::Obj({{"template", owner["spec"]["template"].Set("$patch", "replace")}})}});
}

client::Target TargetOf(const json::Value& revision) {
  const client::ObjectKey key = client::KeyOf(revision);
  return {client::resources::kControllerRevisions, key.ns, key.name, ""};
}

json::Value NewRevision(const json::Value& owner, json::Value data, int64_t number,
                        const std::string& hash, std::string_view hash_label) {
  const json::Value& metadata = owner["metadata"];
  return json::Obj(
      {{"apiVersion", "apps/v1"},
       {"kind", "ControllerRevision"},
       {"metadata", json::Obj({{"name", fmt::format("{}-{}", metadata["name"].AsString(), hash)},
                               {"namespace", metadata["namespace"]},
                               {"labels", owner["spec"]["template"]["metadata"]["labels"].Set(
                                              hash_label, hash)},
                               {"ownerReferences", ControlledByOnly(owner)}})},
       {"data", std::move(data)},
       {"revision", number}});
}

}  // namespace

std::vector<client::Trigger> FollowRevisions(client::InformerSet& informers,
                                             const client::Informer& owners,
                                             const std::string& owner_kind) {
  client::Informer& revisions =
      informers.Get(client::resources::kControllerRevisions, json::Fields::Whole());
  client::IndexByController(revisions);
  IndexByLabels(revisions);
  return {client::OnControlledBy(client::resources::kControllerRevisions, owner_kind, "apps"),
          OnOrphan(client::resources::kControllerRevisions, owners)};
}

std::optional<std::vector<json::Value>> ClaimRevisions(const client::View& view,
                                                       const client::Resource& owner_resource,
                                                       const json::Value& owner,
                                                       const client::Observations& observations,
                                                       client::Reconciled& out) {
  const client::Resource& resource = client::resources::kControllerRevisions;
  const schema::LabelSelector selector = SelectorOfSpec(owner);
  Claims claims = Claim(owner, selector, Candidates(view.Of(resource), owner, selector));
  if (CarryOut(owner_resource, owner, resource, observations, claims, out)) return std::nullopt;
  return std::move(claims.owned);
}

History::History(const json::Value& owner, std::vector<json::Value> revisions,
                 std::string_view hash_label)
    : owner_(owner), hash_label_(hash_label), revisions_(std::move(revisions)) {
  const auto rank = [](const json::Value& revision) {
    const json::Value& metadata = revision["metadata"];
    return std::tuple(revision["revision"].AsInt(), metadata["creationTimestamp"].AsString(),
                      metadata["name"].AsString());
  };
  std::sort(revisions_.begin(), revisions_.end(),
            [&](const json::Value& a, const json::Value& b) { return rank(a) < rank(b); });
}

const json::Value& History::Sync(const std::set<std::string>& taken_names, int64_t& collision_count,
                                 client::Reconciled& out) {
  json::Value data = DataOf(owner_);
  // The collector removes what belongs to an owner that goes: nothing is made for it.
  const bool goes = owner_["metadata"].Has("deletionTimestamp");
  const int64_t next = revisions_.empty() ? 1 : revisions_.back()["revision"].AsInt() + 1;
  const auto same =
      std::find_if(revisions_.rbegin(), revisions_.rend(),
                   [&](const json::Value& revision) { return revision["data"] == data; });
  if (same != revisions_.rend()) {
    if (same != revisions_.rbegin()) {
      if (!goes) out.PatchMerge(TargetOf(*same), json::Obj({{"revision", next}}));
      json::Value moved = same->Set("revision", next);
      revisions_.erase(std::next(same).base());
      revisions_.push_back(std::move(moved));
    }
    return revisions_.back();
  }
  json::Value made;
  while (true) {
    made = NewRevision(owner_, data, next, TemplateHash(data, collision_count), hash_label_);
    if (!taken_names.contains(NameOf(made))) break;
    ++collision_count;
  }
  if (!goes) out.Create(TargetOf(made), made);
  revisions_.push_back(std::move(made));
  return revisions_.back();
}

const json::Value& History::Find(std::string_view name) const {
  static const json::Value kNone;
  const auto found =
      std::find_if(revisions_.begin(), revisions_.end(),
                   [&](const json::Value& revision) { return NameOf(revision) == name; });
  return found == revisions_.end() ? kNone : *found;
}

void History::Truncate(int64_t limit, const std::set<std::string>& live,
                       client::Reconciled& out) const {
  std::vector<const json::Value*> idle;
  for (const json::Value& revision : revisions_) {
    if (!live.contains(NameOf(revision))) idle.push_back(&revision);
  }
  for (size_t i = 0; static_cast<int64_t>(idle.size() - i) > std::max<int64_t>(limit, 0); ++i)
    out.Delete(TargetOf(*idle[i]));
}

json::Value TemplateOf(const json::Value& revision) {
  return revision["data"]["spec"]["template"].Remove("$patch");
}

std::set<std::string> NamesThatBeginWith(const client::Informer& revisions,
                                         const client::ObjectKey& owner) {
  std::set<std::string> names;
  const std::string prefix = owner.name + "-";
  for (auto it = revisions.objects().lower_bound({owner.ns, prefix});
       it != revisions.objects().end() && it->first.ns == owner.ns &&
       it->first.name.starts_with(prefix);
       ++it) {
    names.insert(it->first.name);
  }
  return names;
}

std::string NameOf(const json::Value& object) { return object["metadata"]["name"].Str(); }

}  // namespace muster::controllers
