#include "cost/cost.h"

#include <memory>

#include "cost/ledger_controller.h"

namespace muster::cost {

void AddAll(client::Runtime& runtime) { runtime.Add(std::make_unique<LedgerController>()); }

}  // namespace muster::cost
