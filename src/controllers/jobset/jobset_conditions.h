// src/controllers/jobset/jobset_conditions.h
//
// The conditions of a JobSet while a pass works on them.
//
// Thread: any (a value).

#pragma once

#include <string_view>
#include <utility>

#include "base/time.h"
#include "json/value.h"

namespace muster::controllers {

class JobSetConditions {
 public:
  JobSetConditions(json::Value conditions, Time now) : list_(std::move(conditions)), now_(now) {}

  bool Holds(std::string_view type) const;
  // Since when; now if it does not hold.
  Time Since(std::string_view type) const;
  // True if the status is another one than before; a condition that is not there is False. Of
  // StartupPolicyInProgress and StartupPolicyCompleted one at most holds.
  bool Ensure(std::string_view type, bool holds, std::string_view reason, std::string_view message);
  json::Value PutInto(json::Value status) const;

 private:
  json::Value list_;
  Time now_;
};

}  // namespace muster::controllers
