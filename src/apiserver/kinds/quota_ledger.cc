#include "apiserver/kinds/quota_ledger.h"

#include <algorithm>

#include "apiserver/errors.h"
#include "apiserver/stored_object.h"
#include "base/check.h"
#include "base/strings.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

using schema::Amounts;
using schema::GroupResource;

const GroupResource kQuotas{"", "resourcequotas"};

bool IsSizedByItsFields(const GroupResource& resource) {
  return resource.group.empty() && (resource.plural == "pods" || resource.plural == "services" ||
                                    resource.plural == "persistentvolumeclaims");
}

// Updates that upstream checks. Those of a status are nobody's wish.
bool IsChecked(const GroupResource& resource, const json::Value& before, const json::Value& after) {
  if (before.IsNull()) return true;
  return IsSizedByItsFields(resource) && resource.plural != "pods" &&
         before["spec"] != after["spec"];
}

// What of `amounts` has the names of `names`.
Amounts Mask(const Amounts& amounts, const Amounts& names) {
  Amounts masked;
  for (const auto& [name, amount] : names) {
    const auto own = amounts.find(name);
    masked[name] = own == amounts.end() ? schema::Amount() : own->second;
  }
  return masked;
}

// The requests that do not fit, by name.
Amounts ExceedingOf(const Amounts& requested, const Amounts& used, const Amounts& hard) {
  Amounts exceeding;
  for (const auto& [name, amount] : requested) {
    const auto taken = used.find(name);
    const auto bound = hard.find(name);
    const __int128 already = taken == used.end() ? 0 : taken->second.nano;
    if (bound != hard.end() && already + amount.nano > bound->second.nano) exceeding[name] = amount;
  }
  return exceeding;
}

// nullptr: objects of the resource are counted and never looked into.
schema::KindPtr KindOf(const GroupResource& resource) {
  return schema::Registry::BuiltIn().Find(resource.group, "v1", resource.plural);
}

// Upstream's words for a quota of which nobody knows yet how much is used.
std::string UnknownStatusOf(const schema::Quota& quota, const std::string& name,
                            const GroupResource& resource, const json::Value& object) {
  std::vector<std::string> names;
  for (const auto& [what, amount] : quota.UsageOf(resource, object, false)) {
    if (quota.hard().contains(what)) names.push_back(what);
  }
  return fmt::format("status unknown for quota: {}, resources: {}", name, Join(names, ","));
}

}  // namespace

QuotaLedger::QuotaLedger(Loop& loop, const store::Store& store) : loop_(loop), store_(store) {
  const schema::KindPtr kind = schema::Registry::BuiltIn().Find("", "v1", kQuotas.plural);
  const Result<store::RangeResult> range = store_.Range(KeyPrefix(*kind), "", 0, 0);
  if (!range) return;
  for (const store::EntryPtr& entry : range->entries) Open(DecodeStored(*kind, *entry->value));
}

void QuotaLedger::Open(const json::Value& quota) {
  const json::Value& metadata = quota["metadata"];
  Account& account = namespaces_[metadata["namespace"].Str()].accounts[metadata["name"].Str()];
  account = {};
  account.id = ++last_id_;
  account.object = quota;
}

// A quota was made, changed or removed.
void QuotaLedger::OnQuota(const Write& write) {
  const json::Value& metadata = (write.after.IsNull() ? write.before : write.after)["metadata"];
  auto& accounts = namespaces_[metadata["namespace"].Str()].accounts;
  const auto known = accounts.find(metadata["name"].Str());
  if (write.after.IsNull()) {
    if (known != accounts.end()) accounts.erase(known);
  } else if (known == accounts.end() || known->second.object["spec"] != write.after["spec"]) {
    Open(write.after);
  }
}

// --- counting

void QuotaLedger::AddCharge(Account& account, Write& write) {
  Amounts growth = account.tally->Growth(write.resource, write.before, write.after);
  if (growth.empty()) return;
  schema::AddAmounts(account.pending, growth);
  write.charges.emplace_back(account.id, std::move(growth));
}

// Takes stock of what is committed now; a few objects are counted at once.
void QuotaLedger::BeginCount(Namespace& space, const std::string& name, std::string_view ns,
                             Time now) {
  Account& account = space.accounts.at(name);
  account.counting = std::make_unique<Counting>();
  Counting& counting = *account.counting;
  counting.tally.emplace(schema::Quota(account.object), now);
  account.counted_at = store_.CommittedRevision();
  const schema::Quota& quota = counting.tally->quota();
  for (const GroupResource& resource : quota.resources()) {
    schema::Kind kind;  // where the objects are does not depend on more
    kind.group = resource.group;
    kind.plural = resource.plural;
    kind.namespaced = true;
    const Result<store::RangeResult> range = store_.Range(CollectionPrefix(kind, ns), "", 0, 0);
    if (!range) continue;
    if (KindOf(resource) == nullptr || quota.OnlyCounts(resource)) {
      counting.tally->AddPresent(resource, range->entries.size());
      continue;
    }
    for (const store::EntryPtr& entry : range->entries) counting.left.emplace_back(resource, entry);
  }
  CountSome(space, account);
  if (account.counting != nullptr) CountLater(std::string(ns), name, account.id);
}

void QuotaLedger::CountLater(const std::string& ns, const std::string& quota, uint64_t id) {
  loop_.Post([this, weak = std::weak_ptr<int>(alive_), ns, quota, id] {
    if (weak.expired()) return;
    const auto space = namespaces_.find(ns);
    if (space == namespaces_.end()) return;
    const auto account = space->second.accounts.find(quota);
    // Another one by that name counts for itself.
    if (account == space->second.accounts.end() || account->second.id != id) return;
    CountSome(space->second, account->second);
    if (account->second.counting != nullptr) CountLater(ns, quota, id);
  });
}

void QuotaLedger::CountSome(Namespace& space, Account& account) {
  Counting& counting = *account.counting;
  for (size_t i = 0; i < count_step_ && !counting.left.empty(); ++i) {
    const auto& [resource, entry] = counting.left.back();
    counting.tally->Change(resource, {}, DecodeStored(*KindOf(resource), *entry->value));
    counting.left.pop_back();
  }
  if (!counting.left.empty()) return;
  for (const Write& write : counting.changes)
    counting.tally->Change(write.resource, write.before, write.after);
  account.tally = std::move(counting.tally);
  account.counting.reset();
  // Accepted before the quota counted anything.
  for (auto& [id, write] : space.writes) {
    if (write.revision == 0 || write.revision > account.counted_at) AddCharge(account, write);
  }
}

// Every quota of the namespace is counted, as of now, or is being counted.
void QuotaLedger::Bring(Namespace& space, std::string_view ns, Time now) {
  for (auto& [name, account] : space.accounts) {
    if (!account.tally && account.counting == nullptr) BeginCount(space, name, ns, now);
    if (account.tally) account.tally->Advance(now);
  }
}

bool QuotaLedger::AwaitsCount(const schema::Kind& kind, std::string_view ns, Time now) {
  const GroupResource resource{kind.group, kind.plural};
  const auto space = namespaces_.find(std::string(ns));
  if (space == namespaces_.end() || IsOutsideQuotas(resource)) return false;
  Bring(space->second, ns, now);
  return std::any_of(space->second.accounts.begin(), space->second.accounts.end(),
                     [&](const auto& entry) {
                       const Account& account = entry.second;
                       return account.counting != nullptr &&
                              account.counting->tally->quota().resources().contains(resource);
                     });
}

Status QuotaLedger::Check(const Namespace& space, const WriteContext& context,
                          const Write& write) const {
  if (!IsChecked(write.resource, write.before, write.after)) return Status::Ok();
  const auto refuse = [&](std::string why) {
    return ForbiddenError(context.kind, context.name, why);
  };
  for (const auto& [name, account] : space.accounts) {
    const schema::Quota& quota =
        account.tally ? account.tally->quota() : account.counting->tally->quota();
    if (!quota.Matches(write.resource, write.after)) continue;
    if (!account.tally) return refuse(UnknownStatusOf(quota, name, write.resource, write.after));
    const std::string missing = quota.MissingIn(write.resource, write.after);
    if (!missing.empty())
      return refuse(fmt::format("failed quota: {}: must specify {}", name, missing));
  }
  for (const auto& [name, account] : space.accounts) {
    if (!account.tally) continue;
    const Amounts growth = account.tally->Growth(write.resource, write.before, write.after);
    Amounts used = account.tally->used();
    schema::AddAmounts(used, account.pending);
    const Amounts& hard = account.tally->quota().hard();
    const Amounts exceeding = ExceedingOf(growth, used, hard);
    if (exceeding.empty()) continue;
    return refuse(fmt::format("exceeded quota: {}, requested: {}, used: {}, limited: {}", name,
                              schema::ToText(exceeding), schema::ToText(Mask(used, exceeding)),
                              schema::ToText(Mask(hard, exceeding))));
  }
  return Status::Ok();
}

// --- writes

QuotaTicket QuotaLedger::Enter(std::string_view ns, Write write) {
  Namespace& space = namespaces_[std::string(ns)];
  const uint64_t id = ++last_id_;
  Write& entered = space.writes.emplace(id, std::move(write)).first->second;
  for (auto& [name, account] : space.accounts) {
    if (account.tally) AddCharge(account, entered);
  }
  return {std::string(ns), id};
}

Result<QuotaTicket> QuotaLedger::Charge(const WriteContext& context, const json::Value& before,
                                        const json::Value& after) {
  const schema::Kind& kind = context.kind;
  Write write{{kind.group, kind.plural}, before, after, 0, {}};
  if (!kind.namespaced || IsOutsideQuotas(write.resource)) return QuotaTicket();
  // Whatever else is updated was counted and stays so.
  const bool counts = before.IsNull() || IsSizedByItsFields(write.resource);
  if (!counts && write.resource != kQuotas) return QuotaTicket();
  if (const auto known = namespaces_.find(context.ns); counts && known != namespaces_.end()) {
    Bring(known->second, context.ns, context.now);
    RETURN_IF_ERROR(Check(known->second, context, write));
  }
  if (context.dry_run) return QuotaTicket();
  return Enter(context.ns, std::move(write));
}

QuotaTicket QuotaLedger::ChargeRemoval(const schema::Kind& kind, std::string_view ns,
                                       const json::Value& before) {
  Write write{{kind.group, kind.plural}, before, {}, 0, {}};
  if (!kind.namespaced || IsOutsideQuotas(write.resource)) return {};
  return Enter(ns, std::move(write));
}

void QuotaLedger::Accepted(const QuotaTicket& ticket, store::Revision revision) {
  if (ticket.id == 0) return;
  namespaces_.at(ticket.ns).writes.at(ticket.id).revision = revision;
}

void QuotaLedger::Finish(const QuotaTicket& ticket, bool committed) {
  if (ticket.id == 0) return;
  const auto space = namespaces_.find(ticket.ns);
  CHECK_MSG(space != namespaces_.end() && space->second.writes.contains(ticket.id),
            "a write that was charged is finished once");
  const auto node = space->second.writes.extract(ticket.id);
  const Write& write = node.mapped();
  for (auto& [name, account] : space->second.accounts) {
    for (const auto& [id, amounts] : write.charges) {
      if (id == account.id) schema::TakeAmounts(account.pending, amounts);
    }
    // What had committed when the quota was counted is in it already.
    if (!committed || write.revision <= account.counted_at) continue;
    if (account.tally) {
      account.tally->Change(write.resource, write.before, write.after);
    } else if (account.counting != nullptr) {
      account.counting->changes.push_back(write);
    }
  }
  if (committed && write.resource == kQuotas) OnQuota(write);
  if (space->second.accounts.empty() && space->second.writes.empty()) namespaces_.erase(space);
}

// --- for tests

Amounts QuotaLedger::UsedForTest(const std::string& ns, const std::string& quota, Time now) {
  const auto space = namespaces_.find(ns);
  if (space == namespaces_.end() || !space->second.accounts.contains(quota)) return {};
  Bring(space->second, ns, now);
  const Account& account = space->second.accounts.find(quota)->second;
  if (!account.tally) return {};
  Amounts used = account.tally->used();
  schema::AddAmounts(used, account.pending);
  return used;
}

Amounts QuotaLedger::PendingForTest(const std::string& ns, const std::string& quota) const {
  Amounts left;
  const auto space = namespaces_.find(ns);
  if (space == namespaces_.end() || !space->second.accounts.contains(quota)) return left;
  for (const auto& [name, amount] : space->second.accounts.find(quota)->second.pending) {
    if (amount.nano != 0) left[name] = amount;
  }
  return left;
}

size_t QuotaLedger::pending_writes() const {
  size_t count = 0;
  for (const auto& [ns, space] : namespaces_) count += space.writes.size();
  return count;
}

}  // namespace muster::apiserver
