// src/agent/probes/socket_run.h
//
// A probe that only looks whether a port accepts connections.
//
// Life cycle, thread: HandlerRun's. The client and the loop outlive it.

#pragma once

#include <memory>
#include <optional>

#include "agent/probes/handler_runner.h"
#include "loop/loop.h"
#include "net/client.h"

namespace muster::agent {

std::unique_ptr<HandlerRun> RunTcp(Loop& loop, net::HttpClient& client, const HandlerAction& action,
                                   std::optional<Duration> timeout, HandlerRunner::Done done);

}  // namespace muster::agent
