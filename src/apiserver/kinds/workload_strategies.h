// src/apiserver/kinds/workload_strategies.h
//
// The strategies of apps/v1 and batch/v1.
//
// Thread: the loop thread.

#pragma once

#include <map>
#include <memory>
#include <string>

#include "apiserver/strategy.h"

namespace muster::apiserver {

// By "plural.group".
void AddWorkloadStrategies(std::map<std::string, std::unique_ptr<Strategy>>& strategies);

}  // namespace muster::apiserver
