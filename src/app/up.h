// src/app/up.h
//
// `muster up` and `muster down`: the processes around the control plane (background, pid file,
// signals, clean-up).
//
// Thread: called from main() before any other thread exists.

#pragma once

#include "cli/command.h"

namespace muster::app {

// Exit codes: 0 = started (or stopped) as asked, 1 = could not, 2 = bad arguments.
cli::Command UpCommand();
cli::Command DownCommand();

}  // namespace muster::app
