#include "cluster/packing/fill_prices.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"

namespace muster::cluster {
namespace {

// Prices of cpu and memory as multiples of (all GPUs / all cpu) and (all GPUs / all memory): finer
// where prices usually are. A price of 1 sells a GPU's share of a core for a whole GPU.
constexpr std::array<double, kCpuPrices> kCpuGrid = {0,   0.15, 0.3, 0.45, 0.6, 0.8, 1.05, 1.35,
                                                     1.7, 2.2,  2.9, 3.8,  5,   7,   10,   17};
constexpr std::array<double, kMemoryPrices> kMemoryGrid = {0, 0.2, 0.5, 1, 2, 6};

constexpr int kIterations = 6;
constexpr double kRate = 0.05;
constexpr double kRateDecay = 0.05;   // by iteration
constexpr double kMaxExcess = 1.5;    // of one update
constexpr double kLeastValue = 1e-3;  // of a kind's size
// Uses are counted at the best points of the grid, weighted by exp(-distance / this): prices
// between two points would mix their fillings.
constexpr double kTemperature = 4;  // milli-GPU
constexpr int kBestPoints = 4;
constexpr double kLeastWeight = 0.02;

constexpr float kNothingFits = -1e30F;
constexpr float kEpsilon = 1e-4F;  // a better filling is better by more than rounding

// Of a GPU that the pod takes, rounded up.
int StepsOf(const GpuAsk& ask) { return (ask.gpu_milli + kStepMilli - 1) / kStepMilli; }

}  // namespace

FillPrices::FillPrices(double cores, double memory_gib, double gpus) {
  CHECK(cores > 0 && memory_gib > 0 && gpus > 0);
  for (int i = 0; i < kGridSize; ++i) {
    core_price_[i] = static_cast<float>(kCpuGrid[i / kMemoryPrices] * kWholeGpu * gpus / cores);
    gib_price_[i] =
        static_cast<float>(kMemoryGrid[i % kMemoryPrices] * kWholeGpu * gpus / memory_gib);
  }
}

PriceRow FillPrices::CostOf(const GpuAsk& ask) const {
  const float cores = static_cast<float>(ask.cpu_milli) / 1000;
  const float gib = static_cast<float>(ask.memory_mib) / 1024;
  PriceRow cost;
  for (int i = 0; i < kGridSize; ++i) cost[i] = core_price_[i] * cores + gib_price_[i] * gib;
  return cost;
}

// A kind keeps the value that it had; a new one begins with its size.
void FillPrices::TakeOver(const PodMix& mix) {
  std::map<GpuAsk, double> last;
  for (size_t k = 0; k < kinds_.size(); ++k) last[kinds_[k].ask] = values_[k];
  kinds_ = mix.kinds();
  values_.clear();
  for (const AskKind& kind : kinds_) {
    const auto known = last.find(kind.ask);
    values_.push_back(known == last.end() ? kind.ask.TotalMilli() : known->second);
  }
  net_.resize(kinds_.size());
}

// Models that the same kinds accept share their tables.
void FillPrices::AssignTables() {
  table_model_bit_.clear();
  for (int model = 0; model < kMaxGpuModels; ++model) {
    const uint32_t bit = uint32_t{1} << model;
    const auto same =
        std::find_if(table_model_bit_.begin(), table_model_bit_.end(), [&](uint32_t other) {
          return std::all_of(kinds_.begin(), kinds_.end(), [&](const AskKind& kind) {
            const uint32_t models = kind.ask.models;
            return models == 0 || ((models & bit) != 0) == ((models & other) != 0);
          });
        });
    table_of_model_[model] = static_cast<uint8_t>(same - table_model_bit_.begin());
    if (same == table_model_bit_.end()) table_model_bit_.push_back(bit);
  }
  tables_.resize(table_model_bit_.size());
}

std::vector<FillPrices::Size> FillPrices::SizesFor(uint32_t model_bit, bool several_gpus) const {
  std::map<int, Size> by_size;
  for (size_t k = 0; k < kinds_.size(); ++k) {
    const GpuAsk& ask = kinds_[k].ask;
    if ((ask.gpus > 1) != several_gpus) continue;
    if (ask.models != 0 && (ask.models & model_bit) == 0) continue;
    const int size = several_gpus ? ask.gpus : StepsOf(ask);
    const auto [at, is_new] = by_size.try_emplace(size);
    Size& best = at->second;
    if (is_new) {
      best.size = size;
      best.net.fill(kNothingFits);
    }
    const PriceRow& net = net_[k];
    for (int i = 0; i < kGridSize; ++i) {
      const bool better = net[i] > best.net[i];
      best.net[i] = better ? net[i] : best.net[i];
      best.choice.kind[i] = better ? static_cast<int32_t>(k) : best.choice.kind[i];
    }
  }
  std::vector<Size> sizes;
  for (auto& [size, best] : by_size) sizes.push_back(best);
  return sizes;
}

// Each row from the rows before it: one item of some size and the best filling of what is left, or
// (kLess) the row before, plus `one_more` if given.
void FillPrices::FillRows(const std::vector<Size>& sizes, const PriceRow* one_more,
                          std::span<PriceRow> rows, std::span<Choice> choices) {
  rows[0].fill(0);
  choices[0].kind.fill(kNothing);
  for (size_t row = 1; row < rows.size(); ++row) {
    PriceRow& best = rows[row];
    Choice& choice = choices[row];
    best = rows[row - 1];
    choice.kind.fill(kLess);
    for (int i = 0; one_more != nullptr && i < kGridSize; ++i) best[i] += (*one_more)[i];
    for (const Size& size : sizes) {
      if (static_cast<size_t>(size.size) > row) break;
      const PriceRow& rest = rows[row - static_cast<size_t>(size.size)];
      for (int i = 0; i < kGridSize; ++i) {
        const float value = size.net[i] + rest[i];
        const bool better = value > best[i] + kEpsilon;
        best[i] = better ? value : best[i];
        choice.kind[i] = better ? size.choice.kind[i] : choice.kind[i];
      }
    }
  }
}

void FillPrices::Rebuild() {
  for (size_t k = 0; k < kinds_.size(); ++k) {
    net_[k] = CostOf(kinds_[k].ask);
    const float value = static_cast<float>(values_[k]);
    for (float& x : net_[k]) x = value - x;
  }
  for (size_t i = 0; i < tables_.size(); ++i) {
    Tables& tables = tables_[i];
    FillRows(SizesFor(table_model_bit_[i], false), nullptr, tables.share, tables.share_choice);
    FillRows(SizesFor(table_model_bit_[i], true), &tables.share[kSteps], tables.whole,
             tables.whole_choice);
  }
}

PriceRow FillPrices::Terms(const GpuState& state) const {
  const Tables& tables = Of(state);
  const float cores = static_cast<float>(state.cpu_milli) / 1000;
  const float gib = static_cast<float>(state.memory_mib) / 1024;
  const int whole = state.WholeGpus();
  PriceRow terms = tables.whole[whole];
  for (int i = 0; i < kGridSize; ++i) terms[i] += core_price_[i] * cores + gib_price_[i] * gib;
  for (int gpu = whole; gpu < state.gpus && state.free_milli[gpu] > 0; ++gpu) {
    const PriceRow& share = tables.share[Step(state.free_milli[gpu])];
    for (int i = 0; i < kGridSize; ++i) terms[i] += share[i];
  }
  return terms;
}

double FillPrices::Value(const GpuState& state) const {
  const PriceRow terms = Terms(state);
  return *std::min_element(terms.begin(), terms.end());
}

double FillPrices::ValueAfter(const GpuState& state, const PriceRow& terms, const GpuAsk& ask,
                              const PriceRow& cost, int at) const {
  const Tables& tables = Of(state);
  float best = 1e30F;
  if (ask.gpus == 0) {
    for (int i = 0; i < kGridSize; ++i) best = std::min(best, terms[i] - cost[i]);
    return best;
  }
  const int whole = state.WholeGpus();
  const int free = ask.IsShare() ? state.free_milli[at] : kWholeGpu;
  if (free < kWholeGpu) {
    const PriceRow& before = tables.share[Step(free)];
    const PriceRow& after = tables.share[Step(free - ask.gpu_milli)];
    for (int i = 0; i < kGridSize; ++i)
      best = std::min(best, terms[i] - cost[i] - before[i] + after[i]);
    return best;
  }
  const PriceRow& before = tables.whole[whole];
  const PriceRow& after = tables.whole[whole - ask.gpus];
  const PriceRow& rest = tables.share[ask.IsShare() ? Step(kWholeGpu - ask.gpu_milli) : 0];
  for (int i = 0; i < kGridSize; ++i)
    best = std::min(best, terms[i] - cost[i] - before[i] + after[i] + rest[i]);
  return best;
}

void FillPrices::CountShareUses(const Tables& tables, int step, int point, double weight,
                                std::vector<double>& uses) const {
  while (step > 0) {
    const int32_t kind = tables.share_choice[step].kind[point];
    if (kind == kNothing) return;
    if (kind == kLess) {
      --step;
      continue;
    }
    uses[kind] += weight;
    step -= StepsOf(kinds_[kind].ask);
  }
}

void FillPrices::CountUses(const GpuState& state, int point, double weight,
                           std::vector<double>& uses) const {
  const Tables& tables = Of(state);
  const int whole = state.WholeGpus();
  for (int left = whole; left > 0;) {
    const int32_t kind = tables.whole_choice[left].kind[point];
    if (kind < 0) {
      CountShareUses(tables, kSteps, point, weight, uses);
      --left;
    } else {
      uses[kind] += weight;
      left -= kinds_[kind].ask.gpus;
    }
  }
  for (int gpu = whole; gpu < state.gpus && state.free_milli[gpu] > 0; ++gpu)
    CountShareUses(tables, Step(state.free_milli[gpu]), point, weight, uses);
}

void FillPrices::CountUses(const GpuState& state, double nodes, std::vector<double>& uses) const {
  PriceRow terms = Terms(state);
  std::array<std::pair<int, double>, kBestPoints> best;
  double total = 0;
  float least = 0;
  for (int k = 0; k < kBestPoints; ++k) {
    const auto at = std::min_element(terms.begin(), terms.end());
    if (k == 0) least = *at;
    const double weight = std::exp(-(*at - least) / kTemperature);
    best[k] = {static_cast<int>(at - terms.begin()), weight};
    total += weight;
    *at = 1e30F;
  }
  for (const auto& [point, weight] : best) {
    if (weight / total > kLeastWeight) CountUses(state, point, nodes * weight / total, uses);
  }
}

// What is used more than in proportion becomes cheaper.
void FillPrices::Update(const std::vector<double>& uses, double rate) {
  double used = 0, arrived = 0;
  for (size_t k = 0; k < kinds_.size(); ++k) {
    used += uses[k] * values_[k];
    arrived += kinds_[k].count * values_[k];
  }
  const double proportion = std::max(used / arrived, 1e-12);
  double total = 0, size = 0;
  for (size_t k = 0; k < kinds_.size(); ++k) {
    const double milli = kinds_[k].ask.TotalMilli();
    const double excess = uses[k] / (proportion * kinds_[k].count) - 1;
    values_[k] *= std::exp(-rate * std::clamp(excess, -1.0, kMaxExcess));
    values_[k] = std::max(values_[k], kLeastValue * milli);
    total += kinds_[k].count * values_[k];
    size += kinds_[k].count * milli;
  }
  for (double& value : values_) value *= size / total;
}

void FillPrices::Solve(const std::vector<std::pair<GpuState, double>>& states, const PodMix& mix) {
  if (mix.kinds().empty()) return;
  TakeOver(mix);
  AssignTables();
  std::vector<double> sum(kinds_.size(), 0);
  int summed = 0;
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    Rebuild();
    std::vector<double> uses(kinds_.size(), 0);
    for (const auto& [state, nodes] : states) {
      if (state.gpus > 0 && state.free_milli[0] > 0) CountUses(state, nodes, uses);
    }
    Update(uses, kRate / (1 + kRateDecay * iteration));
    if (iteration < kIterations / 2) continue;
    ++summed;
    for (size_t k = 0; k < kinds_.size(); ++k) sum[k] += values_[k];
  }
  for (size_t k = 0; k < kinds_.size(); ++k) values_[k] = sum[k] / summed;
  Rebuild();
  solved_ = true;
}

}  // namespace muster::cluster
