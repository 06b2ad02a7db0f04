// src/cli/run_program.h
//
// Runs another program to its end, for commands that have nothing else to do meanwhile.
//
// Thread: blocks the calling one.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace muster::cli {

inline constexpr size_t kMaxProgramOutput = 1024 * 1024;  // what it says beyond is dropped
inline constexpr Duration kProgramTimeout = minutes(5);   // then it is killed

struct ProgramEnd {
  int code = 0;        // 128 + the number of the signal that ended it
  std::string output;  // standard output and error, as they came
};

// `words`: the program, found by PATH, and its arguments. `environment`: "NAME=value" in place of
// what this process has under NAME; "NAME" without a value takes it away. An error if it cannot be
// started or does not end in time.
Result<ProgramEnd> RunProgram(const std::vector<std::string>& words,
                              const std::vector<std::string>& environment = {},
                              Duration timeout = kProgramTimeout);

}  // namespace muster::cli
