// src/cli/arguments.h
//
// Command line -> Arguments, as a Command declares them.
//
// Thread: any (pure function).

#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command.h"

namespace muster::cli {

// `words` is what follows the command's name. Invalid with a sentence for the user. "--help" is in
// Arguments::values as "help" and then nothing else is checked.
Result<Arguments> ParseArguments(const Command& command, const std::vector<std::string>& words);

}  // namespace muster::cli
