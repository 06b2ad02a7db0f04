// tests/durability/io_errors.h
//
// One fixed piece of work on a store over a FaultDisk, once for each of the disk's calls and each
// kind of failure: that call fails once, or the disk is broken or full from there on. Whatever
// fails:
//   - the process lives; who asked gets a message that names the file;
//   - after a failed write every later one is refused with the reason, and reads go on;
//   - once the disk works again (and even when the power failed meanwhile) everything acknowledged
//     is there.
//
// Thread: one.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/counts.h"

namespace muster::durability {

std::vector<std::string_view> IoErrorCounts();
// Every `stride`-th call. Returns the violations.
std::vector<std::string> RunIoErrors(uint64_t seed, uint64_t stride, simulation::Counts& counts);

}  // namespace muster::durability
