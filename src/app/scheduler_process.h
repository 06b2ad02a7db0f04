// src/app/scheduler_process.h
//
// `muster scheduler`: the scheduler as a process of its own, on any cluster that a kubeconfig leads
// to; and `muster rbac`: what it may do there.
//
// Life cycle: commands; the first runs until a signal, or until it lost its Lease.
// Thread:     starts on the main thread, which becomes the loop.

#pragma once

#include "cli/command.h"

namespace muster::app {

cli::Command SchedulerCommand();
cli::Command RbacCommand();

}  // namespace muster::app
