// src/agent/probes/exec_run.h
//
// One command of a probe or a hook, in its container.
//
// Life cycle, thread: HandlerRun's. The runtime and the loop outlive it.
// Invariants: at most kMaxProbeOutputBytes are kept, the rest is read and dropped; a command that
//             is abandoned is killed.

#pragma once

#include <memory>
#include <optional>

#include "agent/probes/handler_runner.h"
#include "agent/runtime/pod_runtime.h"
#include "loop/asio_loop.h"

namespace muster::agent {

// After the command has ended its streams may be held open by its children; they are given so long.
inline constexpr Duration kProbeDrainTime = milliseconds(200);

std::unique_ptr<HandlerRun> RunExec(AsioLoop& loop, PodRuntime& runtime,
                                    const HandlerTarget& target, const HandlerAction& action,
                                    std::optional<Duration> timeout, HandlerRunner::Done done);

}  // namespace muster::agent
