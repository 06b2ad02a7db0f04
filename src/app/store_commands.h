// src/app/store_commands.h
//
// `muster backup`, `muster restore` and `muster check-store`: the state of a cluster as a file.
// They work on a data directory, not through the API.
//
// Thread: the main thread; blocking.

#pragma once

#include <vector>

#include "cli/command.h"

namespace muster::app {

std::vector<cli::Command> StoreCommands();

}  // namespace muster::app
