#include "simulator/html_report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace muster::simulator {
namespace {

constexpr std::string_view kStyle = R"(
:root { --ink: #1c2330; --soft: #667085; --line: #e4e7ec; --paper: #fff; --page: #f6f7f9;
  --used: #2f6fed; --stranded: #f2a33a; --unusable: #d1495b; --queue: #7a5af5; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ef; --soft: #98a2b3; --line: #2b3240; --paper: #171b23; --page: #0f1218;
    --used: #5b8ff9; --stranded: #f5b759; --unusable: #ef6f80; --queue: #9e88ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1040px; padding: 32px 20px 64px; background: var(--page);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; font-variant-numeric: tabular-nums; }
h1 { margin: 0; font-size: 26px; } h2 { margin: 0 0 4px; font-size: 17px; }
p { margin: 2px 0 14px; color: var(--soft); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px;
  margin: 22px 0; }
.tile, section { background: var(--paper); border: 1px solid var(--line); border-radius: 10px; }
.tile { padding: 12px 16px; } .tile b { display: block; font-size: 22px; line-height: 1.3; }
.tile span { color: var(--soft); font-size: 13px; }
section { padding: 18px 20px; margin: 14px 0; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font-size: 12px; } .grid { stroke: var(--line); }
table { width: 100%; border-collapse: collapse; font-size: 14px; }
th, td { padding: 5px 8px; text-align: right; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 500; }
th:first-child, td:first-child, .left { text-align: left; }
tr:last-child td { border-bottom: 0; } .wide { overflow-x: auto; }
.key { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin: 0 5px 0 12px; }
)";

// The plane of a chart, in units of the SVG.
constexpr double kWidth = 960, kHeight = 220, kLeft = 56, kRight = 12, kTop = 10, kBottom = 26;
constexpr double kPlaneWidth = kWidth - kLeft - kRight, kPlaneHeight = kHeight - kTop - kBottom;
constexpr int kGridLines = 4;

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// "0 s", "42 s", "3.5 min", "2.1 h", "4 d": as far as people care.
std::string TimeText(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  if (seconds < 6'000) return fmt::format("{:.1f} min", seconds / 60);
  if (seconds < 48 * 3'600) return fmt::format("{:.1f} h", seconds / 3'600);
  return fmt::format("{:.1f} d", seconds / 86'400);
}

std::string PercentText(double share) { return fmt::format("{:.1f} %", 100 * share); }

// The next of 1, 2, 5, 10, 20, ... that is not below.
double RoundUp(double value) {
  if (value <= 1) return 1;
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 5.0, 10.0}) {
    if (step * power >= value) return step * power;
  }
  return 10 * power;
}

double X(double share) { return kLeft + share * kPlaneWidth; }
double Y(double share) { return kTop + (1 - share) * kPlaneHeight; }

// Lines and labels; `label` says what a share of the height is.
std::string Grid(const std::function<std::string(double)>& label, double makespan) {
  std::string out;
  for (int i = 0; i <= kGridLines; ++i) {
    const double share = static_cast<double>(i) / kGridLines;
    out += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>",
        kLeft, kWidth - kRight, Y(share), Y(share), kLeft - 8, Y(share) + 4, label(share));
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", X(share),
                       kHeight - 6,
                       i == 0            ? "start"
                       : i == kGridLines ? "end"
                                         : "middle",
                       TimeText(share * makespan));
  }
  return out;
}

// The area between two heights of each point, as steps: a point is an average over its width.
std::string Area(const std::vector<Point>& points, const std::function<double(const Point&)>& low,
                 const std::function<double(const Point&)>& high, std::string_view colour) {
  std::string path;
  const auto count = static_cast<double>(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const auto at = static_cast<double>(i);
    path += fmt::format("{}{:.1f},{:.2f} L{:.1f},{:.2f} ", i == 0 ? "M" : "L", X(at / count),
                        Y(high(points[i])), X((at + 1) / count), Y(high(points[i])));
  }
  for (size_t i = points.size(); i-- > 0;) {
    const auto at = static_cast<double>(i);
    path += fmt::format("L{:.1f},{:.2f} L{:.1f},{:.2f} ", X((at + 1) / count), Y(low(points[i])),
                        X(at / count), Y(low(points[i])));
  }
  return fmt::format("<path d=\"{}Z\" fill=\"var(--{})\"/>", path, colour);
}

std::string Chart(std::string_view name, const std::string& content) {
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"><title>{}</title>{}</svg>", kWidth,
      kHeight, name, name, content);
}

std::string Key(std::string_view colour, std::string_view text) {
  return fmt::format("<span class=\"key\" style=\"background: var(--{})\"></span>{}", colour, text);
}

std::string UseChart(const Summary& summary) {
  const auto& points = summary.over_time;
  const auto used = [](const Point& p) { return p.utilisation; };
  const auto with_stranded = [](const Point& p) { return p.utilisation + p.fragmentation; };
  const auto nothing = [](const Point&) { return 0.0; };
  std::string lines;
  for (size_t i = 0; i < points.size(); ++i) {
    const auto at = static_cast<double>(i), count = static_cast<double>(points.size());
    const double y = Y(1 - points[i].unusable);
    lines += fmt::format("{}{:.1f},{:.2f} L{:.1f},{:.2f} ", i == 0 ? "M" : "L", X(at / count), y,
                         X((at + 1) / count), y);
  }
  const std::string content =
      Area(points, nothing, used, "used") + Area(points, used, with_stranded, "stranded") +
      fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"var(--unusable)\" stroke-width=\"1.5\"/>",
                  lines);
  const auto label = [](double share) { return fmt::format("{:.0f} %", 100 * share); };
  return fmt::format(
      "<section><h2>GPUs over time</h2><p>{}{}{}</p>{}</section>", Key("used", "used"),
      Key("stranded", "free beside used ones"),
      Key("unusable", "above this line: free, and of no use to the pods of this workload"),
      Chart("GPUs over time", Grid(label, summary.makespan) + content));
}

std::string QueueChart(const Summary& summary) {
  double most = 0;
  for (const Point& point : summary.over_time) most = std::max(most, point.jobs_waiting);
  most = RoundUp(most);
  const auto label = [&](double share) { return fmt::format("{:g}", share * most); };
  const auto waiting = [&](const Point& p) { return p.jobs_waiting / most; };
  const auto nothing = [](const Point&) { return 0.0; };
  return fmt::format(
      "<section><h2>Jobs waiting</h2><p>average over each hundredth of the time</p>"
      "{}</section>",
      Chart("Jobs waiting",
            Grid(label, summary.makespan) + Area(summary.over_time, nothing, waiting, "queue")));
}

std::string SizeText(const SizeClass& of) {
  return of.least == of.most ? fmt::format("{}", of.most)
                             : fmt::format("{}\u2013{}", of.least, of.most);
}

// Mean and 95th percentile of each size, side by side.
std::string WaitsChart(const Summary& summary) {
  double most = 1;
  for (const SizeClass& of : summary.by_size) most = std::max(most, of.wait.p95);
  std::string bars;
  const double slot =
      kPlaneWidth / static_cast<double>(std::max<size_t>(summary.by_size.size(), 1));
  for (size_t i = 0; i < summary.by_size.size(); ++i) {
    const SizeClass& of = summary.by_size[i];
    const double left = kLeft + static_cast<double>(i) * slot, width = std::min(slot / 3, 40.0);
    const double middle = left + slot / 2;
    const auto bar = [&](double x, double value, const char* colour, const char* what) {
      const double height = value / most * kPlaneHeight;
      return fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.2f}\" width=\"{:.1f}\" height=\"{:.2f}\" rx=\"2\" "
          "fill=\"var(--{})\"><title>{} GPUs, {}: {}</title></rect>",
          x, kTop + kPlaneHeight - height, width, height, colour, SizeText(of), what,
          TimeText(value));
    };
    bars += bar(middle - width - 1, of.wait.mean, "used", "mean") +
            bar(middle + 1, of.wait.p95, "stranded", "95th percentile");
    bars += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>", middle,
                        kHeight - 6, SizeText(of));
  }
  for (int i = 0; i <= kGridLines; ++i) {
    const double share = static_cast<double>(i) / kGridLines;
    bars = fmt::format(
               "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
               "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>",
               kLeft, kWidth - kRight, Y(share), Y(share), kLeft - 8, Y(share) + 4,
               TimeText(share * most)) +
           bars;
  }
  return fmt::format("<section><h2>Waits by size</h2><p>GPUs of a job{}{}</p>{}{}</section>",
                     Key("used", "mean"), Key("stranded", "95th percentile"),
                     Chart("Waits by size", bars), [&] {
                       std::string rows;
                       for (const SizeClass& of : summary.by_size) {
                         rows += fmt::format(
                             "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}"
                             "</td><td>{}</td></tr>",
                             SizeText(of), of.jobs, of.placed, TimeText(of.wait.mean),
                             TimeText(of.wait.p50), TimeText(of.wait.p95), TimeText(of.jct.mean));
                       }
                       return "<table><tr><th>GPUs</th><th>jobs</th><th>placed</th><th>mean "
                              "wait</th><th>median</th><th>95th percentile</th><th>mean "
                              "completion</th></tr>" +
                              rows + "</table>";
                     }());
}

std::string Tiles(const Workload& workload, const Outcome& outcome, const Summary& summary) {
  std::string out;
  const auto tile = [&](const std::string& value, std::string_view what) {
    out += fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>", value, what);
  };
  tile(fmt::format("{} of {}", summary.placed, summary.jobs), "jobs placed");
  tile(fmt::format("{} on {}", summary.gpus, workload.nodes.size()), "GPUs on nodes");
  tile(PercentText(summary.utilisation), "of the GPUs used");
  tile(PercentText(summary.fragmentation), "free beside used ones");
  tile(PercentText(summary.unusable), "free, of no use to the mix");
  tile(TimeText(summary.wait.mean), "mean wait");
  tile(TimeText(summary.wait.p95), "95th percentile of waits");
  tile(TimeText(summary.jct.mean), "mean completion (JCT)");
  tile(TimeText(summary.makespan), "from first arrival to last end");
  if (outcome.unknown_ends > 0)
    tile(fmt::format("{}", outcome.unknown_ends), "run without a known end");
  return "<div class=\"tiles\">" + out + "</div>";
}

std::string NeverTable(const Workload& workload, const Outcome& outcome) {
  if (outcome.never_placed.empty()) return "";
  std::string rows;
  const size_t shown = std::min(outcome.never_placed.size(), kMaxJobsInReport);
  for (size_t i = 0; i < shown; ++i) {
    const NeverPlaced& never = outcome.never_placed[i];
    rows += fmt::format("<tr><td>{}</td><td class=\"left\">{}</td></tr>",
                        Escaped(workload.jobs[never.job].name), Escaped(never.why));
  }
  return fmt::format(
      "<section><h2>Never placed</h2><p>{} of {}</p><div class=\"wide\"><table><tr><th>job</th><th "
      "class=\"left\">why</th></tr>{}</table></div></section>",
      shown, outcome.never_placed.size(), rows);
}

// Nodes of a job, each once, the first few.
std::string PlacesText(const std::vector<std::string>& nodes) {
  constexpr size_t kShown = 3;
  std::vector<std::string> distinct;
  for (const std::string& node : nodes) {
    if (std::find(distinct.begin(), distinct.end(), node) == distinct.end())
      distinct.push_back(node);
  }
  std::string out;
  for (size_t i = 0; i < std::min(distinct.size(), kShown); ++i)
    out += (i == 0 ? "" : ", ") + distinct[i];
  if (distinct.size() > kShown) out += fmt::format(" and {} more", distinct.size() - kShown);
  return out;
}

std::string JobsTable(const Workload& workload, const Outcome& outcome) {
  std::vector<size_t> order;
  for (size_t i = 0; i < outcome.jobs.size(); ++i) {
    if (outcome.jobs[i].placed) order.push_back(i);
  }
  const auto wait = [&](size_t i) { return outcome.jobs[i].start - workload.jobs[i].arrival; };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return wait(a) > wait(b); });
  const size_t shown = std::min(order.size(), kMaxJobsInReport);
  const auto text = [](Duration time) {
    return TimeText(std::chrono::duration<double>(time).count());
  };
  std::string rows;
  for (size_t i = 0; i < shown; ++i) {
    const Job& job = workload.jobs[order[i]];
    const JobOutcome& done = outcome.jobs[order[i]];
    rows += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td "
        "class=\"left\">{}</td></tr>",
        Escaped(job.name), job.PodCount(), job.Gpus(), text(job.arrival), text(wait(order[i])),
        job.run_time == kNoKnownEnd ? "not known" : text(job.run_time),
        Escaped(PlacesText(done.nodes)));
  }
  return fmt::format(
      "<section><h2>Jobs</h2><p>the {} of {} that waited longest</p><div class=\"wide\"><table><tr>"
      "<th>job</th><th>pods</th><th>GPUs</th><th>arrived at</th><th>waited</th><th>ran</th><th "
      "class=\"left\">on</th></tr>{}</table></div></section>",
      shown, order.size(), rows);
}

}  // namespace

std::string ToHtml(const Workload& workload, const Outcome& outcome, const Summary& summary,
                   std::string_view title) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"
      "<title>muster simulate: {}</title><style>{}</style></head>\n<body><h1>What if</h1><p>{}</p>"
      "\n{}\n{}\n{}\n{}\n{}\n{}\n</body></html>\n",
      Escaped(title), kStyle, Escaped(title), Tiles(workload, outcome, summary), UseChart(summary),
      QueueChart(summary), WaitsChart(summary), NeverTable(workload, outcome),
      JobsTable(workload, outcome));
}

}  // namespace muster::simulator
