#include "store/compactor.h"

#include "base/log.h"

namespace muster::store {

Compactor::Compactor(Loop& loop, Store& store, Duration period)
    : loop_(loop), store_(store), period_(period), one_period_ago_(store.CommittedRevision()) {
  Schedule();
}

void Compactor::Schedule() {
  timer_ = loop_.After(period_, [this] {
    if (one_period_ago_ > store_.CompactedRevision()) {
      const Status status = store_.Compact(one_period_ago_);
      if (!status.ok()) LOG_WARN("store: compaction failed error={:?}", status.message());
    }
    one_period_ago_ = store_.CommittedRevision();
    Schedule();
  });
}

}  // namespace muster::store
