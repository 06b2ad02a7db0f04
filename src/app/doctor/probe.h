// src/app/doctor/probe.h
//
// Collects the facts that `muster doctor` judges. Changes nothing: what must be tried (namespaces,
// an overlay) is tried in a child process that has its own.
//
// Thread: a process with one thread (it forks); blocking, some 20 ms without the GPU driver.

#pragma once

#include "app/doctor/host_facts.h"
#include "app/up_options.h"
#include "base/status.h"

namespace muster::app {

// How long the GPU driver may take to answer.
inline constexpr Duration kDriverPatience = seconds(10);

// `ask_driver`: also load the GPU driver's library, which may take seconds.
HostFacts ProbeHost(const UpOptions& options, bool ask_driver);

// Of the API server's, the kubelet API's and (for root) the DNS server's addresses.
std::vector<PortFacts> ProbePorts(const UpOptions& options, const agent::AddressRanges& ranges,
                                  bool with_dns);

}  // namespace muster::app
