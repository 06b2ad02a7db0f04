// src/agent/runtime/program.h
//
// Runs another program and reads what it prints. Blocks; for a pool and the spawner.
//
// Thread:     any.
// Invariants: nothing of it is left when RunProgram() returns, nor when this process dies; it
//             inherits no descriptors and not this process' safety from the OOM killer.

#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace muster::agent {

inline constexpr size_t kMaxProgramOutputBytes = 8 * 1024 * 1024;  // of each stream that is kept

// The path of `name` beside muster itself or in PATH; "" if it is nowhere.
std::string FindProgram(std::string_view name);

struct ProgramCall {
  std::vector<std::string> arguments;  // arguments[0] is the program's path
  Duration time_limit{};
  std::string input;  // its standard input
  // Asked a few times a second; an error ends the program and is the result.
  std::function<Status()> watch = [] { return Status::Ok(); };
  const std::atomic<bool>* cancelled = nullptr;  // set by another thread: end soon
};

struct ProgramResult {
  int exit_code = 0;  // 128 and the signal's number when one ended it
  std::string out, err;
};

// Timeout when it took longer than its limit; ServiceUnavailable when cancelled.
Result<ProgramResult> RunProgram(const ProgramCall& call);

}  // namespace muster::agent
