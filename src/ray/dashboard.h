// src/ray/dashboard.h
//
// A cluster's dashboard, asked through the API server (services/proxy), so that it does not matter
// where this runs: probes (GET) and writes (POST, PUT) of client/reconcile.h. API: Ray's
// dashboard/modules/job/job_head.py and dashboard/modules/serve.
//
// Thread:     any (pure functions).

#pragma once

#include <string>
#include <string_view>

#include "client/reconcile.h"
#include "json/value.h"

namespace muster::ray {

// "/api/v1/namespaces/ns/services/c-head-svc:8265/proxy/api/jobs/x": failures are answers, too.
client::Probe AskDashboard(std::string name, const std::string& ns, std::string_view cluster,
                           std::string_view path);
// What a write goes to. `path`: "api/jobs/".
client::Target DashboardTarget(const std::string& ns, std::string_view cluster,
                               std::string_view path);
// The dashboard itself says that there is no such thing: not that it could not be reached.
bool IsUnknownToRay(const json::Value& answer);

}  // namespace muster::ray
