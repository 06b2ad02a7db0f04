// src/apiserver/kinds/storage_strategies.h
//
// Claims, volumes and their classes: a claim that names no class gets the default one, only classes
// that allow it let their claims grow, and a volume's status says since when it is what it is.
//
// Thread: the loop thread.

#pragma once

#include <map>
#include <memory>
#include <string>

#include "apiserver/strategy.h"
#include "store/store.h"

namespace muster::apiserver {

// REQUIRES: `store` outlives them.
void AddStorageStrategies(store::Store& store,
                          std::map<std::string, std::unique_ptr<Strategy>>& strategies);

}  // namespace muster::apiserver
