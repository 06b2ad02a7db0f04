// src/apiserver/kinds/core_strategies.h
//
// The strategies of the built-in kinds, and the small ones among them.
//
// Thread: the loop thread.

#pragma once

#include <map>
#include <memory>
#include <string>

#include "apiserver/kinds/ip_allocator.h"
#include "apiserver/strategy.h"
#include "store/store.h"

namespace muster::apiserver {

// By "plural.group", for the ResourceRegistry. REQUIRES: `store` outlives them.
std::map<std::string, std::unique_ptr<Strategy>> MakeStrategies(store::Store& store,
                                                                IpAllocator addresses,
                                                                std::unique_ptr<Strategy> crds);

}  // namespace muster::apiserver
