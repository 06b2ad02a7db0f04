// src/cost/price_book.h
//
// PriceBook: what machines cost for an hour, and what a core, a GiB and a GPU of them do.
//
// A machine's price is the first of these: its own annotation (Machine::hourly_price), the user's
// price for its instance type, the built-in table (cluster/instance_types.h), the sum of its parts.
// The prices of its parts are then scaled by one factor, so that they add up to it (as OpenCost
// does: spec/opencost-specv01.md, "missing component prices").
//
// Thread: any (values and pure functions).

#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "cost/machine.h"
#include "json/value.h"

namespace muster::cost {

// USD for an hour of a core, a GiB of memory, and a GPU of which nothing is known, on demand.
// Source: OpenCost, configs/default.json.
inline constexpr double kCpuPrice = 0.031611;
inline constexpr double kMemoryPrice = 0.004237;
inline constexpr double kGpuPrice = 0.95;
// The same of spot machines; of GPUs they are said to be 60 to 70 % cheaper (seed article
// practical-guide).
inline constexpr double kSpotCpuPrice = 0.006655;
inline constexpr double kSpotMemoryPrice = 0.000892;
inline constexpr double kSpotGpuFactor = 0.35;

struct UnitPrices {
  double cpu = 0;                      // a core for an hour
  double memory = 0;                   // a GiB for an hour
  std::map<std::string, double> gpus;  // one of the model for an hour

  // Of a model that the machine does not have, as after a change: the mean of those that it has.
  double Gpu(const std::string& model) const;
};

class PriceBook {
 public:
  PriceBook() = default;
  // A user's prices over the built-in ones (docs/cost.md):
  //   currency: EUR
  //   cpu: 0.03
  //   memory: 0.004
  //   gpus: {H100: 2.5, default: 1}      # a GPU whose model has that in its name
  //   machines: {dgx-1: 12.5, p5.48xlarge: {onDemand: 40, spot: 15}}
  // Invalid names the field.
  static Result<PriceBook> Parse(const json::Value& document);
  static Result<PriceBook> ParseYaml(std::string_view text);

  const std::string& currency() const { return currency_; }
  double HourlyPrice(const Machine& machine) const;
  UnitPrices Units(const Machine& machine) const;

 private:
  struct MachinePrice {
    double on_demand = 0, spot = 0;
  };
  UnitPrices ListPrices(const Machine& machine) const;
  double GpuListPrice(const std::string& model) const;

  std::string currency_ = "USD";
  double cpu_ = -1, memory_ = -1;  // negative: the built-in one
  std::map<std::string, double> gpus_;
  std::map<std::string, MachinePrice> machines_;
};

}  // namespace muster::cost
