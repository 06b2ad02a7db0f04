// src/agent/probes/grpc_run.h
//
// One call of grpc.health.v1.Health/Check: HTTP/2 without TLS, one request on a connection of its
// own.
//
// Life cycle, thread: HandlerRun's. The client and the loop outlive it.
// Invariants: at most kMaxHealthAnswerBytes of an answer are kept; more is no answer.
// Source:     the kubelet's prober (pkg/probe/grpc), https://github.com/grpc/grpc-proto
//             grpc/health/v1/health.proto.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/probes/handler_runner.h"
#include "loop/loop.h"
#include "net/client.h"

namespace muster::agent {

inline constexpr size_t kMaxHealthAnswerBytes = 4096;

std::unique_ptr<HandlerRun> RunGrpc(Loop& loop, net::HttpClient& client,
                                    const HandlerAction& action, std::optional<Duration> timeout,
                                    HandlerRunner::Done done);

// A HealthCheckRequest and what a HealthCheckResponse says ("SERVING", ...; nothing if it is not
// one), each as a length-prefixed message.
std::string HealthRequest(std::string_view service);
std::optional<std::string> HealthStatus(std::string_view message);

}  // namespace muster::agent
