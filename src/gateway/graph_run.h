// src/gateway/graph_run.h
//
// One request through an InferenceGraph, as upstream's router does it (kserve cmd/router/main.go):
//
//   Sequence  step after step; each gets the request, or with data: $response what the step before
//             said. A step that fails (not 2xx) and is Hard ends it. A condition that does not hold
//             of what was said last ends it with that.
//   Splitter  one step, by weight
//   Ensemble  all steps at once; {"name or index": answer}
//   Switch    the first step whose condition holds of the request; 404 if none does
//
// Thread: the gateway's loop.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/task.h"
#include "json/value.h"
#include "net/http.h"

namespace muster::gateway {

// Steps that one request may take, all nodes together: each may lead to several others.
inline constexpr size_t kMaxGraphSteps = 500;

// Of a request: steps that are asked the same share it.
using Body = std::shared_ptr<const std::string>;

// Asks the service of one step (serviceName or serviceUrl).
using StepCaller =
    std::function<void(const json::Value& step, Body body, Function<void(net::Response)> done)>;

// `nodes` is spec.nodes of a graph that passed validation: it has a root and leads back nowhere.
// `seed` decides where Splitters go.
void RunGraphNodes(const json::Value& nodes, Body body, uint64_t seed, StepCaller call,
                   Function<void(net::Response)> done);

}  // namespace muster::gateway
