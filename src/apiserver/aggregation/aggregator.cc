#include "apiserver/aggregation/aggregator.h"

#include "apiserver/core.h"

namespace muster::apiserver {

Aggregator::Aggregator(Core& core)
    : index_(core.store,
             [this](const std::string& name, const ApiServicePtr& service) {
               service == nullptr ? checker_.Forget(name) : checker_.Check(name);
             },
             [this](const std::string& name) { local_.OnDeleted(name); }),
      checker_(core, index_),
      local_(core) {}

void Aggregator::Start() {
  checker_.Start();
  index_.Start();
  local_.SyncCustom();
}

}  // namespace muster::apiserver
