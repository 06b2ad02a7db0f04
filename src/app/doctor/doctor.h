// src/app/doctor/doctor.h
//
// `muster doctor`, and the same checks before `muster up` changes anything.
//
// Thread: a process with one thread; blocking.

#pragma once

#include "app/up_options.h"
#include "base/status.h"
#include "cli/command.h"

namespace muster::app {

cli::Command DoctorCommand();

// What cannot work is the error, with the remedy; what is only not well is said on standard error.
// Sets options.ranges.
Status CheckHost(UpOptions& options);

}  // namespace muster::app
