// src/app/simulate_command.h
//
// `muster simulate`: a workload on a cluster that exists on paper only (simulator/simulation.h).
//
// Thread: any (values).

#pragma once

#include "cli/command.h"

namespace muster::app {

cli::Command SimulateCommand();

}  // namespace muster::app
