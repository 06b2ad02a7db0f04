// src/cost/ledger_controller.h
//
// Writes down what pods and nodes held when they go (history.h), puts old entries together, and
// drops those of more than kKeptDays. Pods that are there need no entry: `muster cost` reads them.
//
// Nothing is written while nothing goes, but for `seen`, every kSeenPeriod. What goes within
// kBatchDelay is one object (kBusyBatchDelay in an hour that has kBusyBatches of them already): at
// most that much is lost with this process, and then counts as idle.
//
// Key: the empty one.
//
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: one writer; a batch is written again under its name until the server has it, so it is
//             there once, and its hour is not put together before that.

#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/reconcile.h"
#include "cost/history.h"
#include "cost/ledger.h"

namespace muster::cost {

inline constexpr Duration kSeenPeriod = minutes(10);
// Nobody kept accounts for longer than this: it is a gap, of which nothing is counted.
inline constexpr Duration kMaxUnseen = minutes(15);
inline constexpr Duration kBatchDelay = seconds(2);
inline constexpr Duration kBusyBatchDelay = seconds(60);
inline constexpr size_t kBusyBatches = 60;
// An hour is put together so long after its end.
inline constexpr Duration kHourSettles = minutes(5);
// Hours are kept one by one for so long.
inline constexpr Duration kHoursKept = hours(48);
inline constexpr int kKeptDays = 400;
// Rows that wait to be written; beyond them they are put together at once.
inline constexpr size_t kMaxPendingRows = 10'000;
// How often it looks for parts of the history that can be put together.
inline constexpr Duration kPartsPeriod = minutes(1);
// Nodes that are gone, remembered for pods that go after them.
inline constexpr size_t kMaxGoneNodes = 1000;

class LedgerController final : public client::Controller {
 public:
  std::string_view name() const override { return "cost-ledger-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  struct NodeChange {
    json::Value before;
    bool gone = false;
  };
  struct GoneNode {
    NodeFacts facts;
    std::vector<NodeRow> rows;
  };

  void NoteNodes(Time now);
  void NotePods(const client::View& view, Time now);
  std::vector<NodeRow> RowsOf(const NodeFacts& node, Time now) const;
  void KeepSeen(const client::Informer& ledgers, Time now, client::Reconciled& out);
  void WriteBatch(const client::Informer& ledgers, Time now, client::Reconciled& out);
  void PutPartsTogether(const client::Informer& ledgers, const client::Observations& observations,
                        Time now, client::Reconciled& out);
  void PutTogether(LedgerName::Level level, const std::string& time,
                   const std::vector<std::string>& parts, const client::Informer& ledgers,
                   const client::Observations& observations, client::Reconciled& out);
  Duration BatchDelay(const client::Informer& ledgers, Time now) const;

  std::vector<NodeChange> node_changes_;                // since the last pass
  std::vector<json::Value> pods_gone_;                  // likewise
  std::map<std::string, std::vector<NodeRow>> former_;  // what nodes were before, by UID
  std::deque<GoneNode> gone_;
  Ledger pending_;
  Time pending_since_{};
  Time parts_looked_at_{};
  json::Value writing_;  // the batch of which we do not know yet that it is there
};

}  // namespace muster::cost
