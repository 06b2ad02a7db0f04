// src/serving/graph_pass.h
//
// One pass over one InferenceGraph: the Service by which it is reached, which leads to the gateway
// (there is no router pod), and whether the InferenceServices that it names are ready. Pure.
//
// Thread: any.

#pragma once

#include <set>
#include <string>
#include <vector>

#include "client/reconcile.h"
#include "serving/serving_pass.h"

namespace muster::serving {

struct GraphChildren {
  json::Value service, gateway_slice;
  bool named_as_a_service = false;     // an older InferenceService has its name, and the Service
  std::vector<std::string> missing;    // InferenceServices that it names and that do not exist
  std::vector<std::string> not_ready;  // ... and that are not ready
  std::string url_fault;               // of its first serviceUrl that is not reached (hosts.h)
  std::string host_owner;              // who has its NAME-NAMESPACE.example.com; "": it does
};

// The InferenceServices that the graph names.
std::set<std::string> ServicesOf(const json::Value& graph);
// The serviceUrls of its steps.
std::set<std::string> UrlsOf(const json::Value& graph);

client::Reconciled ReconcileGraph(const json::Value& graph, const GraphChildren& children,
                                  const GatewayAddress& gateway, Time now);

}  // namespace muster::serving
