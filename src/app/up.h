// src/app/up.h
//
// `muster up` and `muster down`: the processes around the control plane (background, pid file,
// signals, clean-up).
//
// Thread: called from main() before any other thread exists.

#pragma once

namespace muster::app {

// Exit codes: 0 = started (or stopped) as asked, 1 = could not, 2 = bad arguments.
int RunUp(int argc, char** argv);
int RunDown(int argc, char** argv);

}  // namespace muster::app
