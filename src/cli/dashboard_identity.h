// src/cli/dashboard_identity.h
//
// Whom the dashboard acts for: a service account of its own that may look at what the role `view`
// shows (no secrets), nodes, and measurements, and change nothing.
//
// Thread: the loop thread.

#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "cli/session.h"

namespace muster::cli {

inline constexpr std::string_view kDashboardAccount = "kube-system/muster-dashboard";
inline constexpr Duration kMinTokenLife = minutes(10);  // as TokenRequest has it
inline constexpr Duration kMaxTokenLife = hours(24 * 7);

struct DashboardToken {
  std::string token;
  std::string expires;  // RFC 3339, as the server says
};

// Makes the account, its role and its bindings where they are missing.
Status EnsureDashboardAccount(Session& session);

// A token of `account` ("NAMESPACE/NAME") that lives for `life`.
Result<DashboardToken> RequestDashboardToken(Session& session, std::string_view account,
                                             Duration life);

}  // namespace muster::cli
