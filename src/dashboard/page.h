// src/dashboard/page.h
//
// Page: answers GET /dashboard/... with the files of the dashboard. They hold no data: what the
// page shows it asks the Kubernetes API for, with the token that its user gives it, and RBAC
// decides as for anybody.
//
// Life cycle: a value over files that outlive it.
// Thread:     any.
// Invariants: every answer has the same headers of defence (Content-Security-Policy and others): no
//             script, style or connection from elsewhere, never inside a frame.

#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "dashboard/files.h"
#include "net/http.h"

namespace muster::dashboard {

inline constexpr std::string_view kPath = "/dashboard";

class Page {
 public:
  explicit Page(std::span<const File> files = BuiltInFiles()) : files_(files) {}

  // nullopt: the path (with its query, as received) is none of the dashboard's.
  std::optional<net::Response> Answer(const net::Request& request) const;

 private:
  net::Response AnswerFile(const net::Request& request, const File& file) const;

  std::span<const File> files_;
};

}  // namespace muster::dashboard
