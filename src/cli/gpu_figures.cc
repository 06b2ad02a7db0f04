#include "cli/gpu_figures.h"

#include <optional>

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::cli {
namespace {

// The value of `label` in a sample of Prometheus' text format. Values with escapes do not occur in
// the labels that are looked for.
std::optional<std::string> LabelOf(std::string_view line, std::string_view label) {
  for (const char before : {'{', ','}) {
    const std::string start = fmt::format("{}{}=\"", before, label);
    const size_t at = line.find(start);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = line.substr(at + start.size());
    return std::string(rest.substr(0, rest.find('"')));
  }
  return std::nullopt;
}

}  // namespace

GpuFigures ParseGpuFigures(std::string_view metrics) {
  GpuFigures out;
  for (const std::string_view line : SplitNonEmpty(metrics, '\n')) {
    if (!line.starts_with("DCGM_FI_DEV_")) continue;
    const std::optional<std::string> uuid = LabelOf(line, "UUID");
    const size_t space = line.rfind(' ');
    if (uuid && space != std::string_view::npos)
      out[*uuid][std::string(line.substr(0, line.find('{')))] = line.substr(space + 1);
  }
  return out;
}

Result<GpuFigures> ReadGpuFigures(Session& session) {
  net::Request request;
  request.method = "GET";
  request.target = "/metrics";
  ASSIGN_OR_RETURN(const net::Response metrics, session.Raw(std::move(request)));
  return ParseGpuFigures(metrics.body);
}

}  // namespace muster::cli
