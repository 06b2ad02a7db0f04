// src/cli/cli.h
//
// The `muster` commands that talk to a cluster through its API: any cluster, the embedded one or
// another.
//
// Life cycle: one call from main().
// Thread:     the calling thread becomes the loop thread of the command.

#pragma once

namespace muster::cli {

// argv[0] is the program, argv[1] the command. Returns the exit code: 0 done, 1 failed, 2 the
// command line was wrong, 130 interrupted; exec and run return what the program returned.
int RunCli(int argc, char** argv);

}  // namespace muster::cli
