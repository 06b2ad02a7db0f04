#include "cost/ledger_controller.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace muster::cost {
namespace {

using client::ObjectKey;
using client::Reconciled;
using Level = LedgerName::Level;
namespace resources = client::resources;

std::string NameOfObject(const json::Value& object) { return object["metadata"]["name"].Str(); }

bool IsThere(const client::Informer& ledgers, const std::string& name) {
  return ledgers.Find({"", name}) != nullptr;
}

json::Value SeenUntil(Time now) {
  return json::Obj({{"spec", json::Obj({{"seenUntil", FormatTime(now)}})}});
}

bool Held(const json::Value& pod) {
  return !pod["spec"]["nodeName"].AsString().empty() && pod["status"].Has("startTime");
}

bool LooksAlike(const json::Value& before, const json::Value& after) {
  return before["metadata"]["labels"] == after["metadata"]["labels"] &&
         before["metadata"]["annotations"] == after["metadata"]["annotations"] &&
         before["status"]["capacity"] == after["status"]["capacity"];
}

}  // namespace

std::vector<client::Trigger> LedgerController::Setup(client::InformerSet& informers) {
  informers.Get(resources::kNodes, NodeFactsFields());
  informers.Get(resources::kPods, PodUseFields());
  informers.Get(resources::kNamespaces, NamespaceUseFields());
  informers.Get(kLedgers, {{"spec", "seenUntil"}});
  const auto of_node = [this](const ObjectKey&, const json::Value& before,
                              const json::Value& after) {
    std::vector<ObjectKey> keys;
    if (before.IsNull()) return std::vector<ObjectKey>{{}};  // begins to keep accounts
    const bool gone = before["metadata"]["uid"] != after["metadata"]["uid"];
    if (!gone && LooksAlike(before, after)) return keys;
    if (!gone && NodeFactsOf(before).machine == NodeFactsOf(after).machine) return keys;
    node_changes_.push_back({before, gone});
    return std::vector<ObjectKey>{{}};
  };
  const auto of_pod = [this](const ObjectKey&, const json::Value& before,
                             const json::Value& after) {
    std::vector<ObjectKey> keys;
    if (before.IsNull() || before["metadata"]["uid"] == after["metadata"]["uid"]) return keys;
    if (!Held(before)) return keys;
    pods_gone_.push_back(before);
    keys.emplace_back();
    return keys;
  };
  const auto nobody = [](const ObjectKey&, const json::Value&, const json::Value&) {
    return std::vector<ObjectKey>();
  };
  return {{resources::kNodes, of_node},
          {resources::kPods, of_pod},
          {resources::kNamespaces, nobody},
          {kLedgers, nobody}};
}

// Up to now, of a node that is there.
std::vector<NodeRow> LedgerController::RowsOf(const NodeFacts& node, Time now) const {
  std::vector<NodeRow> rows;
  if (const auto found = former_.find(node.uid); found != former_.end()) rows = found->second;
  const Time from = rows.empty() ? node.created : rows.back().time.to;
  rows.push_back({node.machine, node.name, node.uid, {std::min(from, now), now}});
  return rows;
}

void LedgerController::NoteNodes(Time now) {
  for (const NodeChange& change : std::exchange(node_changes_, {})) {
    const NodeFacts facts = NodeFactsOf(change.before);
    std::vector<NodeRow> rows = RowsOf(facts, now);
    pending_.nodes.push_back(rows.back());
    if (!change.gone) {
      former_[facts.uid] = std::move(rows);
      continue;
    }
    former_.erase(facts.uid);
    gone_.push_back({facts, std::move(rows)});
    if (gone_.size() > kMaxGoneNodes) gone_.pop_front();
  }
}

void LedgerController::NotePods(const client::View& view, Time now) {
  if (pods_gone_.empty()) return;
  const std::vector<std::string> keys = CostKeys();
  for (const json::Value& pod : std::exchange(pods_gone_, {})) {
    const std::string node_name = pod["spec"]["nodeName"].Str();
    const json::Value* name_space =
        view.Of(resources::kNamespaces).Find({"", pod["metadata"]["namespace"].Str()});
    const auto note = [&](const NodeFacts& facts, const std::vector<NodeRow>& rows) {
      const PodUse use =
          PodUseOf(pod, facts, name_space == nullptr ? json::Value() : *name_space, keys);
      // Older than its node: it was on a former one of that name.
      if (use.from >= facts.created) AddPod(use, rows, now, pending_);
    };
    if (const json::Value* node = view.Of(resources::kNodes).Find({"", node_name})) {
      const NodeFacts facts = NodeFactsOf(*node);
      note(facts, RowsOf(facts, now));
    }
    for (const GoneNode& gone : gone_)
      if (gone.facts.name == node_name) note(gone.facts, gone.rows);
  }
}

void LedgerController::KeepSeen(const client::Informer& ledgers, Time now, Reconciled& out) {
  const client::Target target{kLedgers, "", std::string(kSeen), ""};
  const json::Value* seen = ledgers.Find({"", std::string(kSeen)});
  out.LookAgainAt(now + kSeenPeriod);
  if (seen == nullptr) {
    json::Value object = json::Obj({{"apiVersion", kLedgers.group + "/" + kLedgers.version},
                                    {"kind", "CostLedger"},
                                    {"metadata", json::Obj({{"name", std::string(kSeen)}})}});
    object = std::move(object).Set("spec", SeenUntil(now)["spec"]);
    return out.Create({kLedgers, "", "", ""}, std::move(object));
  }
  const Time until = ParseTime((*seen)["spec"]["seenUntil"].AsString()).value_or(now);
  if (until <= now && now < until + kSeenPeriod) return out.LookAgainAt(until + kSeenPeriod);
  // Before `seen` tells of now, the gap must be in the history.
  if (now > until + kMaxUnseen) {
    Ledger gap;
    gap.gaps.push_back({until, now});
    const std::string rest = fmt::format("gap-{:x}", until.time_since_epoch().count());
    out.Create({kLedgers, "", "", ""}, LedgerObject(Level::kBatch, HourOf(now), rest, gap));
  }
  out.PatchMerge(target, SeenUntil(now));
}

Duration LedgerController::BatchDelay(const client::Informer& ledgers, Time now) const {
  const std::string prefix = NameOf(Level::kBatch, HourOf(now), "");
  size_t count = 0;
  for (auto it = ledgers.objects().lower_bound({"", prefix});
       it != ledgers.objects().end() && it->first.name.starts_with(prefix); ++it)
    ++count;
  return count < kBusyBatches ? kBatchDelay : kBusyBatchDelay;
}

void LedgerController::WriteBatch(const client::Informer& ledgers, Time now, Reconciled& out) {
  if (!writing_.IsNull()) {
    if (!IsThere(ledgers, NameOfObject(writing_)))
      return out.Create({kLedgers, "", "", ""}, writing_);
    writing_ = nullptr;
  }
  if (pending_.IsEmpty()) {
    pending_since_ = Time{};
    return;
  }
  if (pending_since_ == Time{} || pending_since_ > now) pending_since_ = now;
  const Duration delay = BatchDelay(ledgers, now);
  if (now < pending_since_ + delay) return out.LookAgainAt(pending_since_ + delay);
  const std::string rest = fmt::format("{:x}", now.time_since_epoch().count());
  writing_ = LedgerObject(Level::kBatch, HourOf(now), rest,
                          Compact(std::exchange(pending_, {}), hours(1)));
  pending_since_ = Time{};
  out.Create({kLedgers, "", "", ""}, writing_);
}

// `parts`: names of the objects that become one.
void LedgerController::PutTogether(Level level, const std::string& time,
                                   const std::vector<std::string>& parts,
                                   const client::Informer& ledgers,
                                   const client::Observations& observations, Reconciled& out) {
  const std::string name = NameOf(level, time);
  if (!IsThere(ledgers, name)) {
    const auto answer = observations.find(name);
    if (answer == observations.end()) {
      client::Probe probe;
      probe.name = name;
      probe.target = {kLedgers, "", "", ""};
      probe.list.limit = 0;
      probe.list.label_selector =
          fmt::format("{}={}", level == Level::kHour ? kHourLabel : kDayLabel, time);
      return out.Ask(std::move(probe));
    }
    json::Array found;
    for (const json::Value& item : answer->second["items"].items()) {
      if (std::find(parts.begin(), parts.end(), NameOfObject(item)) != parts.end())
        found.push_back(item);
    }
    const Duration slot = level == Level::kHour ? hours(1) : hours(24);
    out.Create({kLedgers, "", "", ""},
               LedgerObject(level, time, "", Compact(HistoryOf(found), slot)));
  }
  for (const std::string& part : parts) out.Delete({kLedgers, "", part, ""});
}

// One hour or one day in a pass.
void LedgerController::PutPartsTogether(const client::Informer& ledgers,
                                        const client::Observations& observations, Time now,
                                        Reconciled& out) {
  const bool looked = now >= parts_looked_at_ && now < parts_looked_at_ + kPartsPeriod;
  if (looked && observations.empty()) return;
  parts_looked_at_ = now;
  std::map<std::string, std::vector<std::string>> hours_done, days_done;
  const std::string hour = HourOf(now - kHourSettles), day = DayOf(now - kHoursKept);
  const std::string oldest_day = DayOf(now - hours(24) * kKeptDays);
  const std::string unsure = NameOfObject(writing_);
  for (const auto& [key, object] : ledgers.objects()) {
    const std::optional<LedgerName> name = ParseLedgerName(key.name);
    if (!name) continue;
    if (name->level == Level::kDay) {
      if (name->day < oldest_day) out.Delete({kLedgers, "", key.name, ""});
    } else if (name->level == Level::kBatch && name->hour < hour) {
      hours_done[name->hour].push_back(key.name);
    } else if (name->day < day) {
      days_done[name->day].push_back(key.name);
    }
  }
  if (const auto name = ParseLedgerName(unsure)) {
    hours_done.erase(name->hour);
    days_done.erase(name->day);
  }
  if (hours_done.empty() && days_done.empty()) return;
  const bool is_hour = !hours_done.empty();
  const auto& [time, parts] = is_hour ? *hours_done.begin() : *days_done.begin();
  PutTogether(is_hour ? Level::kHour : Level::kDay, time, parts, ledgers, observations, out);
  out.LookAgainAt(now + kPartsPeriod);
}

Reconciled LedgerController::Reconcile(const client::View& view,
                                       const client::Observations& observations, const ObjectKey&,
                                       Time now, uint64_t) {
  Reconciled out;
  NoteNodes(now);
  NotePods(view, now);
  const client::Informer& ledgers = view.Of(kLedgers);
  if (pending_.pods.size() > kMaxPendingRows) pending_ = Compact(std::move(pending_), hours(1));
  if (!ledgers.Served()) {
    pending_ = {};  // nowhere to keep it
    return out;
  }
  WriteBatch(ledgers, now, out);
  KeepSeen(ledgers, now, out);
  PutPartsTogether(ledgers, observations, now, out);
  return out;
}

}  // namespace muster::cost
