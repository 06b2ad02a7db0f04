// src/app/simulate_command.h
//
// `muster simulate`: a workload on a cluster that exists on paper only (simulator/simulation.h), or
// on a copy of a live one.
//
// Thread: any (values); the loop thread with a session.

#pragma once

#include "cli/command.h"

namespace muster::app {

// Exit codes of --submit, besides 0 (it starts at a known time) and 1 (an error).
inline constexpr int kStartUnknown = 3;  // nobody can tell when: see Submission
inline constexpr int kStartsNever = 4;

cli::Command SimulateCommand();

// The command; `session` may be null where the line does not ask for the live cluster.
Result<int> RunSimulate(const cli::Arguments& arguments, cli::Console& console,
                        cli::Session* session);

}  // namespace muster::app
