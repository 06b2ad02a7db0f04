// src/simulator/html_report.h
//
// The outcome of a simulation as one HTML page: charts as SVG, tables, nothing from elsewhere and
// no scripts. The same outcome gives the same bytes.
//
// Thread: any (pure function).

#pragma once

#include <string>
#include <string_view>

#include "simulator/simulation.h"
#include "simulator/summary.h"

namespace muster::simulator {

// Rows of the table of jobs: those that waited longest.
inline constexpr size_t kMaxJobsInReport = 200;

// `title` says what was simulated.
std::string ToHtml(const Workload& workload, const Outcome& outcome, const Summary& summary,
                   std::string_view title);

}  // namespace muster::simulator
