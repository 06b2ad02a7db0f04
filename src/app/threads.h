// src/app/threads.h
//
// What runs where in `muster up`:
//
//   main     the control-plane loop: API handlers, controllers, scheduler decisions, agent state
//            machines. No task may hold it for more than 5 ms (`loop_lag_seconds` in /metrics).
//            It goes before the other threads, and before the pods, where that is allowed.
//   io       kIoThreads threads: TLS, HTTP framing, LIST bodies, spliced streams.
//   writer   the store's: SQLite commits, one batch at a time.
//   pool     kPoolThreads threads: pure work on snapshots (scheduling), LISTs of revisions that
//            only the disk has, and blocking file work of the agent.
//   gateway  from the first InferenceService on: a loop of its own and an I/O thread
//            (gateway/gateway.h), so that requests go on while the control plane is busy.
//   dns      the pods' DNS server.
//   spawner  not a thread but a single-threaded child process: clone, setns, links, mounts.
//   shims    one process per pod; they outlive this process.
//   holder   of an ordinary user: a process that keeps the node's namespaces; it outlives this one.

#pragma once

namespace muster::app {

inline constexpr int kIoThreads = 2;
inline constexpr int kPoolThreads = 2;
// Added to the niceness of the loop's thread (sched(7)): on a machine whose pods take every core,
// and under a flood of requests, everybody waits for this thread.
inline constexpr int kLoopNiceness = -10;

// The calling thread goes before others by kLoopNiceness; what it starts does not. False, and
// nothing changes, where that takes a privilege (CAP_SYS_NICE) that this process lacks.
bool PreferThisThread();

}  // namespace muster::app
