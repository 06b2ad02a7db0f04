// src/cli/arguments.h
//
// Command line -> Arguments, as a Command declares them.
//
// Thread: any (pure functions).

#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command.h"

namespace muster::cli {

// `words` is what follows the command's name. Invalid with a sentence for the user. "--help" is in
// Arguments::values as "help" and then nothing else is checked.
Result<Arguments> ParseArguments(const Command& command, const std::vector<std::string>& words);

// " (did you mean --data-dir?)" for the first of `words` that looks like a flag and is none of
// `flags`; "" where nothing is close.
std::string UnknownFlagHint(const std::vector<std::string>& words,
                            const std::vector<std::string>& flags);

}  // namespace muster::cli
