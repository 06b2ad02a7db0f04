#include "cost/report.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace muster::cost {
namespace {

constexpr double kSecondsPerHour = 3600;
constexpr double kGiB = 1024.0 * 1024 * 1024;

double SecondsOf(Duration duration) {
  return std::chrono::duration_cast<std::chrono::duration<double>>(duration).count();
}

// The window without the gaps, which are in order and do not touch.
class Visible {
 public:
  Visible(const Interval& window, std::vector<Interval> gaps) : window_(window) {
    std::sort(gaps.begin(), gaps.end());
    for (const Interval& gap : gaps) {
      const Interval inside{std::max(gap.from, window.from), std::min(gap.to, window.to)};
      if (inside.to <= inside.from) continue;
      if (!gaps_.empty() && inside.from <= gaps_.back().to) {
        gaps_.back().to = std::max(gaps_.back().to, inside.to);
      } else {
        gaps_.push_back(inside);
      }
    }
  }
  Duration Of(const Interval& time) const {
    const Duration inside = Overlap(time, window_);
    return inside - Hidden(time);
  }
  Duration Hidden(const Interval& time) const {
    Duration hidden{};
    for (const Interval& gap : gaps_) hidden += Overlap(time, gap);
    return hidden;
  }

 private:
  static Duration Overlap(const Interval& a, const Interval& b) {
    return std::max<Duration>(std::min(a.to, b.to) - std::max(a.from, b.from), Duration(0));
  }

  Interval window_;
  std::vector<Interval> gaps_;
};

// Units() of each kind of machine once.
class Units {
 public:
  explicit Units(const PriceBook& prices) : prices_(prices) {}
  const UnitPrices& Of(const Machine& machine) {
    const auto found = known_.find(machine);
    if (found != known_.end()) return found->second;
    return known_.emplace(machine, prices_.Units(machine)).first->second;
  }

 private:
  const PriceBook& prices_;
  std::map<Machine, UnitPrices> known_;
};

Amounts Priced(const PodRow& row, const UnitPrices& units, double part) {
  Amounts out;
  out.cpu_hours = part * static_cast<double>(row.cpu_milli_seconds) / 1000 / kSecondsPerHour;
  out.memory_gib_hours =
      part * static_cast<double>(row.memory_mib_seconds) / 1024 / kSecondsPerHour;
  out.cpu_cost = out.cpu_hours * units.cpu;
  out.memory_cost = out.memory_gib_hours * units.memory;
  for (const auto& [model, amount] : row.gpu_milli_seconds) {
    const double hours = part * static_cast<double>(amount) / 1000 / kSecondsPerHour;
    out.gpu_hours += hours;
    out.gpu_cost += hours * units.Gpu(model);
  }
  return out;
}

Amounts Priced(const Machine& machine, const UnitPrices& units, double hours) {
  Amounts out;
  out.cpu_hours = hours * static_cast<double>(machine.cpu_milli) / 1000;
  out.memory_gib_hours = hours * static_cast<double>(machine.memory_bytes) / kGiB;
  out.cpu_cost = out.cpu_hours * units.cpu;
  out.memory_cost = out.memory_gib_hours * units.memory;
  for (const auto& [model, count] : machine.gpus) {
    out.gpu_hours += hours * static_cast<double>(count);
    out.gpu_cost += hours * static_cast<double>(count) * units.Gpu(model);
  }
  return out;
}

double Rest(double all, double used) { return std::max(all - used, 0.0); }

Amounts IdleOf(const Amounts& total, const Amounts& used) {
  Amounts idle;
  idle.cpu_hours = Rest(total.cpu_hours, used.cpu_hours);
  idle.memory_gib_hours = Rest(total.memory_gib_hours, used.memory_gib_hours);
  idle.gpu_hours = Rest(total.gpu_hours, used.gpu_hours);
  idle.cpu_cost = Rest(total.cpu_cost, used.cpu_cost);
  idle.memory_cost = Rest(total.memory_cost, used.memory_cost);
  idle.gpu_cost = Rest(total.gpu_cost, used.gpu_cost);
  return idle;
}

// 1, or less where more was held than there was.
double Scale(double all, double used) { return used > all && used > 0 ? all / used : 1; }

}  // namespace

Amounts& Amounts::operator+=(const Amounts& other) {
  cpu_hours += other.cpu_hours;
  memory_gib_hours += other.memory_gib_hours;
  gpu_hours += other.gpu_hours;
  cpu_cost += other.cpu_cost;
  memory_cost += other.memory_cost;
  gpu_cost += other.gpu_cost;
  return *this;
}

Report MakeReport(const Ledger& ledger, const PriceBook& prices, const Interval& window,
                  const std::function<std::string(const PodRow&)>& group_of) {
  const Visible visible(window, ledger.gaps);
  Units units(prices);
  Report report;
  report.window = window;
  report.not_counted = visible.Hidden(window);
  for (const NodeRow& row : ledger.nodes) {
    const double hours = SecondsOf(visible.Of(row.time)) / kSecondsPerHour;
    report.total += Priced(row.machine, units.Of(row.machine), hours);
  }
  std::map<std::string, Allocation> groups;
  Amounts used;
  for (const PodRow& row : ledger.pods) {
    const Duration length = row.time.to - row.time.from;
    const Duration seen = visible.Of(row.time);
    if (seen <= Duration(0)) continue;
    const Amounts amounts = Priced(row, units.Of(row.machine), SecondsOf(seen) / SecondsOf(length));
    Allocation& group = groups[group_of(row)];
    group.amounts += amounts;
    group.pods += row.pods;
    used += amounts;
  }
  const double cpu = Scale(report.total.cpu_cost, used.cpu_cost);
  const double memory = Scale(report.total.memory_cost, used.memory_cost);
  const double gpu = Scale(report.total.gpu_cost, used.gpu_cost);
  for (auto& [name, group] : groups) {
    group.name = name;
    group.amounts.cpu_cost *= cpu;
    group.amounts.memory_cost *= memory;
    group.amounts.gpu_cost *= gpu;
    report.allocations.push_back(std::move(group));
  }
  report.idle = IdleOf(report.total, used);
  std::sort(report.allocations.begin(), report.allocations.end(),
            [](const Allocation& a, const Allocation& b) {
              return std::tuple(b.amounts.Cost(), a.name) < std::tuple(a.amounts.Cost(), b.name);
            });
  return report;
}

}  // namespace muster::cost
