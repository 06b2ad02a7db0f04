// src/apiserver/kinds/quota_ledger.h
//
// QuotaLedger: what upstream's admission plugin ResourceQuota does, without its race: a write is
// charged when it is accepted, not when it is seen. The used amounts of a quota are
//
//   what the committed objects take (counted once, then kept by what commits)
//   + by how much pending writes raise that
//
// so no burst of creates gets past a quota, and ResourceQuota.status, which a controller writes,
// has no part in it. What pending writes lower counts when they commit. A quota counts from its
// own commit on.
//
// A quota that comes to many objects is counted in steps, each a task of the loop. Meanwhile what
// it limits is refused, in upstream's words for a quota whose status nobody has written yet; who
// can wait asks AwaitsCount first.
//
// Life cycle: made with the Core, which shares it with the writes that are under way.
// Thread:     the loop thread.
// Invariants: a write that was charged is finished exactly once, and a quota without pending writes
//             has no pending amounts; committed amounts are those of the objects in the store.
// Cost:       of a write: its own usage, for each quota of its namespace. Of a quota that came or
//             changed: the namespace's objects of the kinds that it limits are decoded, up to
//             kMaxCountedAtOnce of them in one task.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/strategy.h"
#include "base/status.h"
#include "json/value.h"
#include "loop/loop.h"
#include "schema/quota.h"
#include "store/store.h"

namespace muster::apiserver {

inline constexpr size_t kMaxCountedAtOnce = 100;  // objects that one task decodes

// A write that quotas have accepted.
struct QuotaTicket {
  std::string ns;
  uint64_t id = 0;  // 0: no quota can ever ask about it
};

class QuotaLedger {
 public:
  // Knows the quotas that are in the store. REQUIRES: `loop` and `store` outlive it.
  QuotaLedger(Loop& loop, const store::Store& store);

  // A quota of the namespace limits this kind and is still being counted: a creation would be
  // refused now.
  bool AwaitsCount(const schema::Kind& kind, std::string_view ns, Time now);

  // Forbidden, in upstream's words, if `after` takes more than is left. `before` is null for a
  // creation. A dry run is checked and not charged.
  Result<QuotaTicket> Charge(const WriteContext& context, const json::Value& before,
                             const json::Value& after);
  QuotaTicket ChargeRemoval(const schema::Kind& kind, std::string_view ns,
                            const json::Value& before);
  // The store took the write and will say how it ends.
  void Accepted(const QuotaTicket& ticket, store::Revision revision);
  void Finish(const QuotaTicket& ticket, bool committed);

  // What a quota counts now, pending writes included, and these alone; empty if it is not known or
  // still being counted.
  schema::Amounts UsedForTest(const std::string& ns, const std::string& quota, Time now);
  schema::Amounts PendingForTest(const std::string& ns, const std::string& quota) const;
  size_t pending_writes() const;
  void CountInStepsOfForTest(size_t objects) { count_step_ = objects; }

 private:
  struct Write {
    schema::GroupResource resource;
    json::Value before, after;
    store::Revision revision = 0;                               // 0: not given yet
    std::vector<std::pair<uint64_t, schema::Amounts>> charges;  // by Account::id
  };
  // A count that is under way.
  struct Counting {
    std::optional<schema::QuotaTally> tally;
    std::vector<std::pair<schema::GroupResource, store::EntryPtr>> left;
    // What commits meanwhile, from old to new.
    std::vector<Write> changes;
  };
  struct Account {
    uint64_t id = 0;
    json::Value object;  // the ResourceQuota
    // Of what is committed; nullopt: not counted yet.
    std::optional<schema::QuotaTally> tally;
    std::unique_ptr<Counting> counting;
    store::Revision counted_at = 0;
    schema::Amounts pending;
  };
  struct Namespace {
    std::map<std::string, Account> accounts;  // by name of the quota
    std::map<uint64_t, Write> writes;         // by ticket
  };

  void Open(const json::Value& quota);
  void OnQuota(const Write& write);
  void Bring(Namespace& space, std::string_view ns, Time now);
  void BeginCount(Namespace& space, const std::string& quota, std::string_view ns, Time now);
  void CountLater(const std::string& ns, const std::string& quota, uint64_t id);
  void CountSome(Namespace& space, Account& account);
  static void AddCharge(Account& account, Write& write);
  Status Check(const Namespace& space, const WriteContext& context, const Write& write) const;
  QuotaTicket Enter(std::string_view ns, Write write);

  Loop& loop_;
  const store::Store& store_;
  std::map<std::string, Namespace> namespaces_;
  uint64_t last_id_ = 0;
  size_t count_step_ = kMaxCountedAtOnce;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // tasks hold it weakly
};

}  // namespace muster::apiserver
