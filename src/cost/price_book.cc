#include "cost/price_book.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/strings.h"
#include "cluster/instance_types.h"
#include "json/parse.h"

namespace muster::cost {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kMaxPrice = 1e6;

// USD for an hour of one GPU with its part of a machine, on demand; the first whose name stands in
// the model's. Sources: Lambda (2026-09-20) for those with NVLinks, Nebius (H200), AWS us-east-1
// (2026-07-20: g4dn.xlarge, g5.xlarge, g6.xlarge, g6e.xlarge).
struct GpuListEntry {
  std::string_view name;
  double price;
};
constexpr GpuListEntry kGpuList[] = {
    {"B200", 6.69},         {"H200", 3.50},         {"H100-PCIe", 3.29}, {"H100", 3.99},
    {"A100-SXM4-40", 1.99}, {"A100-PCIE-40", 1.99}, {"A100-40", 1.99},   {"A100", 2.79},
    {"L40S", 1.861},        {"A10G", 1.006},        {"A6000", 1.09},     {"V100", 0.79},
    {"T4", 0.526},          {"L4", 0.8048},
};

// Models are written with blanks by the driver and with dashes in labels.
bool Names(std::string_view model, std::string_view name) {
  const std::string flat = ToLower(ReplaceAll(std::string(model), " ", "-"));
  return flat.find(ToLower(ReplaceAll(std::string(name), " ", "-"))) != std::string::npos;
}

std::optional<double> ParsePrice(std::string_view text) {
  double price = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), price);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || !std::isfinite(price) || price < 0 || price > kMaxPrice) return std::nullopt;
  return price;
}

Result<double> PriceAt(const json::Value& value, const std::string& field) {
  const double price = value.AsDouble(-1);
  if (!value.IsNumber() || !std::isfinite(price) || price < 0 || price > kMaxPrice) {
    return Error(Reason::kInvalid, "{}: expected a price for an hour, such as 2.5", field);
  }
  return price;
}

}  // namespace

double UnitPrices::Gpu(const std::string& model) const {
  if (const auto found = gpus.find(model); found != gpus.end()) return found->second;
  double sum = 0;
  for (const auto& [name, price] : gpus) sum += price;
  return gpus.empty() ? 0 : sum / static_cast<double>(gpus.size());
}

Result<PriceBook> PriceBook::Parse(const json::Value& document) {
  PriceBook book;
  if (!document.IsObject() && !document.IsNull())
    return Error(Reason::kInvalid, "expected prices as fields: cpu, memory, gpus, machines");
  for (const auto& [field, value] : document.members()) {
    if (field == "currency" && value.IsString() && !value.AsString().empty()) {
      book.currency_ = value.Str();
    } else if (field == "cpu") {
      ASSIGN_OR_RETURN(book.cpu_, PriceAt(value, field));
    } else if (field == "memory") {
      ASSIGN_OR_RETURN(book.memory_, PriceAt(value, field));
    } else if (field == "gpus" && value.IsObject()) {
      for (const auto& [model, price] : value.members()) {
        ASSIGN_OR_RETURN(book.gpus_[model], PriceAt(price, "gpus." + model));
      }
    } else if (field == "machines" && value.IsObject()) {
      for (const auto& [type, price] : value.members()) {
        const std::string at = "machines." + type;
        MachinePrice& entry = book.machines_[type];
        const bool both = price.IsObject();
        ASSIGN_OR_RETURN(entry.on_demand,
                         PriceAt(both ? price["onDemand"] : price, both ? at + ".onDemand" : at));
        entry.spot = entry.on_demand;
        if (both && price.Has("spot")) {
          ASSIGN_OR_RETURN(entry.spot, PriceAt(price["spot"], at + ".spot"));
        }
      }
    } else {
      return Error(Reason::kInvalid,
                   "{}: unknown or no such value; fields are currency (a name), cpu and memory "
                   "(prices), gpus and machines (prices by name)",
                   field);
    }
  }
  return book;
}

Result<PriceBook> PriceBook::ParseYaml(std::string_view text) {
  ASSIGN_OR_RETURN(const std::vector<json::Value> documents, json::ParseYaml(text));
  if (documents.size() > 1) return Error(Reason::kInvalid, "expected one YAML document");
  return Parse(documents.empty() ? json::Value() : documents[0]);
}

double PriceBook::GpuListPrice(const std::string& model) const {
  // The longest of the user's names that fits.
  const std::pair<const std::string, double>* best = nullptr;
  for (const auto& entry : gpus_) {
    if (entry.first != "default" && Names(model, entry.first) &&
        (best == nullptr || entry.first.size() > best->first.size()))
      best = &entry;
  }
  if (best != nullptr) return best->second;
  if (const auto found = gpus_.find("default"); found != gpus_.end()) return found->second;
  for (const GpuListEntry& entry : kGpuList)
    if (Names(model, entry.name)) return entry.price;
  return kGpuPrice;
}

UnitPrices PriceBook::ListPrices(const Machine& machine) const {
  UnitPrices units;
  units.cpu = cpu_ >= 0 ? cpu_ : machine.spot ? kSpotCpuPrice : kCpuPrice;
  units.memory = memory_ >= 0 ? memory_ : machine.spot ? kSpotMemoryPrice : kMemoryPrice;
  for (const auto& [model, count] : machine.gpus)
    units.gpus[model] = GpuListPrice(model) * (machine.spot ? kSpotGpuFactor : 1);
  return units;
}

namespace {

double SumOf(const Machine& machine, const UnitPrices& units) {
  double sum = units.cpu * static_cast<double>(machine.cpu_milli) / 1000 +
               units.memory * static_cast<double>(machine.memory_bytes) / kGiB;
  for (const auto& [model, count] : machine.gpus)
    sum += units.Gpu(model) * static_cast<double>(count);
  return sum;
}

}  // namespace

double PriceBook::HourlyPrice(const Machine& machine) const {
  if (const std::optional<double> own = ParsePrice(machine.hourly_price)) return *own;
  if (const auto found = machines_.find(machine.instance_type); found != machines_.end())
    return machine.spot ? found->second.spot : found->second.on_demand;
  if (const auto* type = cluster::FindBuiltInInstanceType(machine.instance_type)) {
    const auto capacity =
        machine.spot ? cluster::CapacityType::kSpot : cluster::CapacityType::kOnDemand;
    if (const cluster::MicroUsd price = type->Price(capacity); price > 0)
      return static_cast<double>(price) / static_cast<double>(cluster::kMicroUsdPerUsd);
  }
  return SumOf(machine, ListPrices(machine));
}

UnitPrices PriceBook::Units(const Machine& machine) const {
  UnitPrices units = ListPrices(machine);
  const double sum = SumOf(machine, units);
  if (sum <= 0) return units;
  const double factor = HourlyPrice(machine) / sum;
  units.cpu *= factor;
  units.memory *= factor;
  for (auto& [model, price] : units.gpus) price *= factor;
  return units;
}

}  // namespace muster::cost
