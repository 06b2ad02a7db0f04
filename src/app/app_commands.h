// src/app/app_commands.h
//
// The commands that work on this machine and its files, beside those of a client (cli/command.h).
//
// Thread: any (values).

#pragma once

#include <vector>

#include "cli/command.h"

namespace muster::app {

std::vector<cli::Command> AppCommands();

}  // namespace muster::app
