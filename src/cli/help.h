// src/cli/help.h
//
// --help, made from the declarations of the commands.
//
// Thread: any (pure functions).

#pragma once

#include <string>

#include "cli/command.h"

namespace muster::cli {

std::string HelpFor(const Command& command);
std::string GeneralHelp();
// The candidate that is closest to a mistyped word; "" if none is close.
std::string Nearest(const std::string& word, const std::vector<std::string>& candidates);
// The command whose name is closest to a mistyped one; "" if none is close.
std::string NearestCommand(const std::string& name);

}  // namespace muster::cli
