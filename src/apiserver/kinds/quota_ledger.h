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
// Life cycle: made with the Core, which shares it with the writes that are under way.
// Thread:     the loop thread.
// Invariants: a write that was charged is finished exactly once, and a quota without pending writes
//             has no pending amounts; committed amounts are those of the objects in the store.
// Cost:       of a write: its own usage, for each quota of its namespace. The first write after a
//             quota came or changed counts the namespace's objects of the kinds that it limits.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/strategy.h"
#include "base/status.h"
#include "json/value.h"
#include "schema/quota.h"
#include "store/store.h"

namespace muster::apiserver {

// A write that quotas have accepted.
struct QuotaTicket {
  std::string ns;
  uint64_t id = 0;  // 0: no quota can ever ask about it
};

class QuotaLedger {
 public:
  // Knows the quotas that are in the store. REQUIRES: `store` outlives it.
  explicit QuotaLedger(const store::Store& store);

  // Forbidden, in upstream's words, if `after` takes more than is left. `before` is null for a
  // creation. A dry run is checked and not charged.
  Result<QuotaTicket> Charge(const WriteContext& context, const json::Value& before,
                             const json::Value& after);
  QuotaTicket ChargeRemoval(const schema::Kind& kind, std::string_view ns,
                            const json::Value& before);
  // The store took the write and will say how it ends.
  void Accepted(const QuotaTicket& ticket, store::Revision revision);
  void Finish(const QuotaTicket& ticket, bool committed);

  // What a quota counts now, pending writes included, and these alone; empty if it is not known.
  schema::Amounts UsedForTest(const std::string& ns, const std::string& quota, Time now);
  schema::Amounts PendingForTest(const std::string& ns, const std::string& quota) const;
  size_t pending_writes() const;

 private:
  struct Write {
    schema::GroupResource resource;
    json::Value before, after;
    store::Revision revision = 0;                               // 0: not given yet
    std::vector<std::pair<uint64_t, schema::Amounts>> charges;  // by Account::id
  };
  struct Account {
    uint64_t id = 0;
    json::Value object;  // the ResourceQuota
    // Of what is committed; nullopt: not counted yet.
    std::optional<schema::QuotaTally> tally;
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
  void Count(Namespace& space, Account& account, std::string_view ns, Time now);
  static void AddCharge(Account& account, Write& write);
  Status Check(const Namespace& space, const WriteContext& context, const Write& write) const;
  QuotaTicket Enter(std::string_view ns, Write write);

  const store::Store& store_;
  std::map<std::string, Namespace> namespaces_;
  uint64_t last_id_ = 0;
};

}  // namespace muster::apiserver
