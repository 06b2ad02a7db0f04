#include "cost/ledger.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace muster::cost {
namespace {

int64_t SecondsOf(Duration duration) {
  return std::chrono::duration_cast<seconds>(duration).count();
}

// Far enough from overflow for sums over a year of a large cluster.
int64_t Times(int64_t amount, int64_t seconds) {
  int64_t product = 0;
  constexpr int64_t kMost = int64_t{1} << 52;
  return __builtin_mul_overflow(amount, seconds, &product) ? kMost : std::min(product, kMost);
}

auto KeyOf(const PodRow& row) { return std::tie(row.machine, row.ns, row.workload, row.labels); }

void MergeInto(PodRow& row, const PodRow& other) {
  row.time.from = std::min(row.time.from, other.time.from);
  row.time.to = std::max(row.time.to, other.time.to);
  row.pods += other.pods;
  row.cpu_milli_seconds += other.cpu_milli_seconds;
  row.memory_mib_seconds += other.memory_mib_seconds;
  for (const auto& [model, amount] : other.gpu_milli_seconds)
    row.gpu_milli_seconds[model] += amount;
}

int64_t SlotOf(Time time, Duration slot) { return time.time_since_epoch() / slot; }

// Nothing: the row lasts over more than one slot and stays by itself.
std::optional<int64_t> SlotOf(const Interval& time, Duration slot) {
  const int64_t first = SlotOf(time.from, slot);
  return SlotOf(time.to, slot) == first ? std::optional(first) : std::nullopt;
}

std::vector<PodRow> MergeEqual(std::vector<PodRow> rows, Duration slot, bool across_slots) {
  const auto order = [&](const PodRow& row) {
    return std::tuple(KeyOf(row),
                      across_slots ? std::optional<int64_t>(0) : SlotOf(row.time, slot));
  };
  std::sort(rows.begin(), rows.end(),
            [&](const PodRow& a, const PodRow& b) { return order(a) < order(b); });
  std::vector<PodRow> out;
  for (PodRow& row : rows) {
    const bool joins = !out.empty() && (across_slots || SlotOf(row.time, slot).has_value()) &&
                       order(out.back()) == order(row);
    if (joins) {
      MergeInto(out.back(), row);
    } else {
      out.push_back(std::move(row));
    }
  }
  return out;
}

int64_t GpuSum(const PodRow& row) {
  int64_t sum = 0;
  for (const auto& [model, amount] : row.gpu_milli_seconds) sum += amount;
  return sum;
}

// The largest rows stay as they are; what the others say less of is said by `forget`.
void ForgetOfSmallest(std::vector<PodRow>& rows, Duration slot, void (*forget)(PodRow&)) {
  if (rows.size() <= kMaxLedgerRows) return;
  std::sort(rows.begin(), rows.end(), [](const PodRow& a, const PodRow& b) {
    return std::tuple(GpuSum(b), b.cpu_milli_seconds, KeyOf(a)) <
           std::tuple(GpuSum(a), a.cpu_milli_seconds, KeyOf(b));
  });
  for (size_t i = kMaxLedgerRows / 2; i < rows.size(); ++i) forget(rows[i]);
  rows = MergeEqual(std::move(rows), slot, true);
}

// Machines are told apart to the end: without them nothing has a price. Beyond the limit even then,
// which takes as many kinds of machines, the last rows are dropped.
void BoundPods(std::vector<PodRow>& rows, Duration slot) {
  ForgetOfSmallest(rows, slot, [](PodRow& row) { row.workload = kOthers; });
  ForgetOfSmallest(rows, slot, [](PodRow& row) { row.labels.clear(); });
  ForgetOfSmallest(rows, slot, [](PodRow& row) {
    row.ns = kOthers;
    row.workload = kOthers;
    row.labels.clear();
  });
  if (rows.size() > kMaxLedgerRows) rows.resize(kMaxLedgerRows);
}

class Machines {
 public:
  int64_t IndexOf(const Machine& machine) {
    const auto [found, is_new] = index_.try_emplace(machine, static_cast<int64_t>(list_.size()));
    if (is_new) list_.push_back(ToJson(machine));
    return found->second;
  }
  json::Array Take() { return std::move(list_); }

 private:
  std::map<Machine, int64_t> index_;
  json::Array list_;
};

json::Value ToJson(const PodRow& row, Machines& machines) {
  json::Value out = json::Obj({{"machine", machines.IndexOf(row.machine)},
                               {"namespace", row.ns},
                               {"workload", row.workload},
                               {"from", FormatTime(row.time.from)},
                               {"to", FormatTime(row.time.to)},
                               {"pods", row.pods},
                               {"cpuMilliSeconds", row.cpu_milli_seconds},
                               {"memoryMiBSeconds", row.memory_mib_seconds}});
  json::Object labels, gpus;
  for (const auto& [key, value] : row.labels) labels.emplace_back(key, value);
  for (const auto& [model, amount] : row.gpu_milli_seconds) gpus.emplace_back(model, amount);
  if (!labels.empty()) out = std::move(out).Set("labels", std::move(labels));
  if (!gpus.empty()) out = std::move(out).Set("gpuMilliSeconds", std::move(gpus));
  return out;
}

std::optional<Interval> IntervalOf(const json::Value& value) {
  const std::optional<Time> from = ParseTime(value["from"].AsString());
  const std::optional<Time> to = ParseTime(value["to"].AsString());
  if (!from || !to || *to < *from) return std::nullopt;
  return Interval{*from, *to};
}

int64_t AmountOf(const json::Value& value) { return std::max<int64_t>(value.AsInt(), 0); }

}  // namespace

void Ledger::Add(Ledger other) {
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(pods, other.pods);
  append(nodes, other.nodes);
  append(gaps, other.gaps);
}

void AddPod(const PodUse& use, std::span<const NodeRow> node, Time until, Ledger& out) {
  if (!use.from) return;
  const Time end = std::min(use.to.value_or(until), until);
  bool counted = false;
  for (const NodeRow& part : node) {
    const Interval time{std::max(*use.from, part.time.from), std::min(end, part.time.to)};
    if (time.to <= time.from) continue;
    const int64_t seconds = SecondsOf(time.to - time.from);
    PodRow& row = out.pods.emplace_back();
    row.machine = part.machine;
    row.ns = use.ns;
    row.workload = use.workload;
    row.labels = use.labels;
    row.time = time;
    row.pods = std::exchange(counted, true) ? 0 : 1;
    row.cpu_milli_seconds = Times(use.cpu_milli, seconds);
    row.memory_mib_seconds = Times(use.memory_bytes >> 20, seconds);
    for (const auto& [model, milli] : use.gpu_milli)
      row.gpu_milli_seconds[model] = Times(milli, seconds);
  }
}

Ledger Compact(Ledger ledger, Duration slot) {
  ledger.pods = MergeEqual(std::move(ledger.pods), slot, false);
  BoundPods(ledger.pods, slot);
  // The longest stay; with them the sum of what was paid for is as right as it can be.
  if (ledger.nodes.size() > kMaxLedgerNodes) {
    std::sort(ledger.nodes.begin(), ledger.nodes.end(), [](const NodeRow& a, const NodeRow& b) {
      return a.time.to - a.time.from > b.time.to - b.time.from;
    });
    ledger.nodes.resize(kMaxLedgerNodes);
  }
  std::sort(ledger.gaps.begin(), ledger.gaps.end());
  if (ledger.gaps.size() > kMaxLedgerRows) ledger.gaps.resize(kMaxLedgerRows);
  return ledger;
}

json::Value SpecOf(const Ledger& ledger) {
  Machines machines;
  json::Array pods, nodes, gaps;
  for (const PodRow& row : ledger.pods) pods.push_back(ToJson(row, machines));
  for (const NodeRow& row : ledger.nodes) {
    nodes.push_back(json::Obj({{"machine", machines.IndexOf(row.machine)},
                               {"name", row.name},
                               {"uid", row.uid},
                               {"from", FormatTime(row.time.from)},
                               {"to", FormatTime(row.time.to)}}));
  }
  for (const Interval& gap : ledger.gaps)
    gaps.push_back(json::Obj({{"from", FormatTime(gap.from)}, {"to", FormatTime(gap.to)}}));
  json::Object out;
  const auto put = [&](const char* name, json::Array list) {
    if (!list.empty()) out.emplace_back(name, std::move(list));
  };
  put("machines", machines.Take());
  put("pods", std::move(pods));
  put("nodes", std::move(nodes));
  put("gaps", std::move(gaps));
  return json::Value(std::move(out));
}

Ledger LedgerOf(const json::Value& spec) {
  std::vector<Machine> machines;
  for (const json::Value& machine : spec["machines"].items())
    machines.push_back(MachineFromJson(machine));
  const auto machine_of = [&](const json::Value& row) {
    const size_t index = static_cast<size_t>(AmountOf(row["machine"]));
    return index < machines.size() ? machines[index] : Machine();
  };
  Ledger ledger;
  for (const json::Value& value : spec["pods"].items()) {
    const std::optional<Interval> time = IntervalOf(value);
    if (!time) continue;
    PodRow& row = ledger.pods.emplace_back();
    row.machine = machine_of(value);
    row.ns = value["namespace"].Str();
    row.workload = value["workload"].Str();
    row.time = *time;
    row.pods = AmountOf(value["pods"]);
    row.cpu_milli_seconds = AmountOf(value["cpuMilliSeconds"]);
    row.memory_mib_seconds = AmountOf(value["memoryMiBSeconds"]);
    for (const auto& [key, label] : value["labels"].members()) row.labels[key] = label.Str();
    for (const auto& [model, amount] : value["gpuMilliSeconds"].members())
      row.gpu_milli_seconds[model] = AmountOf(amount);
  }
  for (const json::Value& value : spec["nodes"].items()) {
    if (const std::optional<Interval> time = IntervalOf(value))
      ledger.nodes.push_back({machine_of(value), value["name"].Str(), value["uid"].Str(), *time});
  }
  for (const json::Value& value : spec["gaps"].items())
    if (const std::optional<Interval> time = IntervalOf(value)) ledger.gaps.push_back(*time);
  return ledger;
}

}  // namespace muster::cost
