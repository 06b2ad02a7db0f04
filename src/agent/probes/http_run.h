// src/agent/probes/http_run.h
//
// One GET of a probe or a hook, with the redirects that stay on its host.
//
// Life cycle, thread: HandlerRun's. The client and the loop outlive it.
// Source:     the kubelet's prober (pkg/probe/http) and Go's HTTP client, whose words the failures
//             have.

#pragma once

#include <memory>
#include <optional>

#include "agent/probes/handler_runner.h"
#include "loop/loop.h"
#include "net/client.h"

namespace muster::agent {

inline constexpr int kMaxProbeRedirects = 10;
inline constexpr std::string_view kProbeUserAgent = "kube-probe/1.32";

std::unique_ptr<HandlerRun> RunHttp(Loop& loop, net::HttpClient& client,
                                    const HandlerAction& action, std::optional<Duration> timeout,
                                    HandlerRunner::Done done);

// "dial tcp 10.42.0.2:80: connect: connection refused": what Go says of the failure `status` of
// net::HttpClient at an endpoint; of anything later than the connecting only the last part.
std::string DialFailure(const HandlerAction& action, const Status& status);

}  // namespace muster::agent
