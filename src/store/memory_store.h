// src/store/memory_store.h
//
// A Store that lasts as long as the process: tests, simulation, trying things out. Commits happen
// in a later task of the loop, so everything is deterministic under SimLoop. What falls out of the
// history in memory is compacted.

#pragma once

#include <memory>

#include "loop/loop.h"
#include "store/store.h"

namespace muster::store {

// REQUIRES: the loop outlives the store.
std::unique_ptr<Store> OpenMemoryStore(Loop& loop, Store::Decorator decorator = {});

}  // namespace muster::store
