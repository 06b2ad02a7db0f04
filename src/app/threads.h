// src/app/threads.h
//
// What runs where in `muster up`:
//
//   main     the control-plane loop: API handlers, controllers, scheduler decisions, agent state
//   machines. No task may
//            hold it for more than 5 ms (`loop_lag_seconds` in /metrics).
//   io       kIoThreads threads: TLS, HTTP framing, LIST bodies, spliced streams.
//   writer   the store's: SQLite commits, one batch at a time.
//   pool     kPoolThreads threads: pure work on snapshots (scheduling), LISTs of revisions that
//            only the disk has, and blocking file work of the agent.
//   dns      the pods' DNS server.
//   spawner  not a thread but a single-threaded child process: clone, setns, links, mounts.
//   shims    one process per pod; they outlive this process.

#pragma once

namespace muster::app {

inline constexpr int kIoThreads = 2;
inline constexpr int kPoolThreads = 2;

}  // namespace muster::app
