#include "cost/price_book.h"

#include <gtest/gtest.h>

#include "cost/cost_test_support.h"

namespace muster::cost {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

Machine Plain(int64_t cores, int64_t gib) {
  Machine machine;
  machine.cpu_milli = cores * 1000;
  machine.memory_bytes = gib * kGiB;
  return machine;
}

PriceBook Book(std::string_view yaml) {
  auto book = PriceBook::ParseYaml(yaml);
  EXPECT_TRUE(book.has_value()) << (book ? "" : book.error().message());
  return book.value_or(PriceBook());
}

double SumOf(const Machine& machine, const UnitPrices& units) {
  double sum = units.cpu * static_cast<double>(machine.cpu_milli) / 1000 +
               units.memory * static_cast<double>(machine.memory_bytes) / kGiB;
  for (const auto& [model, count] : machine.gpus)
    sum += units.Gpu(model) * static_cast<double>(count);
  return sum;
}

TEST(PriceBook, AMachineOfWhichNothingIsKnownCostsWhatItsPartsDo) {
  const PriceBook book;
  EXPECT_DOUBLE_EQ(book.HourlyPrice(Plain(8, 64)), 8 * kCpuPrice + 64 * kMemoryPrice);
  Machine spot = Plain(8, 64);
  spot.spot = true;
  EXPECT_DOUBLE_EQ(book.HourlyPrice(spot), 8 * kSpotCpuPrice + 64 * kSpotMemoryPrice);
}

TEST(PriceBook, GpusByModelAsTheDriverOrALabelWritesIt) {
  const PriceBook book;
  const struct {
    const char* model;
    double price;
  } rows[] = {{"NVIDIA H100 80GB HBM3", 3.99}, {"NVIDIA-A100-SXM4-40GB", 1.99},
              {"NVIDIA A100-SXM4-80GB", 2.79}, {"NVIDIA L40S", 1.861},
              {"NVIDIA L4", 0.8048},           {"Tesla T4", 0.526},
              {"Something new", kGpuPrice}};
  for (const auto& row : rows) {
    Machine machine;
    machine.gpus[row.model] = 2;
    EXPECT_DOUBLE_EQ(book.HourlyPrice(machine), 2 * row.price) << row.model;
    machine.spot = true;
    EXPECT_DOUBLE_EQ(book.HourlyPrice(machine), 2 * row.price * kSpotGpuFactor) << row.model;
  }
}

TEST(PriceBook, TheTableOfInstanceTypesComesBeforeTheParts) {
  Machine machine = Plain(8, 32);
  machine.instance_type = "g5.2xlarge";
  machine.gpus["NVIDIA A10G"] = 1;
  EXPECT_DOUBLE_EQ(PriceBook().HourlyPrice(machine), 1.212);
  machine.spot = true;
  EXPECT_LT(PriceBook().HourlyPrice(machine), 1.212);
  machine.spot = false;
  EXPECT_DOUBLE_EQ(Book("machines: {g5.2xlarge: 0.5}").HourlyPrice(machine), 0.5);
  machine.hourly_price = "0.25";
  EXPECT_DOUBLE_EQ(Book("machines: {g5.2xlarge: 0.5}").HourlyPrice(machine), 0.25);
  machine.hourly_price = "much";
  EXPECT_DOUBLE_EQ(Book("machines: {g5.2xlarge: 0.5}").HourlyPrice(machine), 0.5);
}

// OpenCost: components are scaled by one ratio until they sum to the node's price.
TEST(PriceBook, PartsAddUpToTheMachine) {
  Machine machine = Plain(96, 1152);
  machine.gpus["NVIDIA H100 80GB HBM3"] = 8;
  machine.hourly_price = "55.04";
  const UnitPrices units = PriceBook().Units(machine);
  EXPECT_NEAR(SumOf(machine, units), 55.04, 1e-9);
  EXPECT_NEAR(units.Gpu("NVIDIA H100 80GB HBM3") / units.cpu, 3.99 / kCpuPrice, 1e-9);
}

TEST(PriceBook, AUsersPrices) {
  const PriceBook book = Book(
      "currency: EUR\ncpu: 0.1\nmemory: 0\n"
      "gpus: {H100: 2, H100 NVL: 1.5, default: 1}\nmachines: {big: {onDemand: 9, spot: 3}}\n");
  EXPECT_EQ(book.currency(), "EUR");
  Machine machine = Plain(10, 100);
  EXPECT_DOUBLE_EQ(book.HourlyPrice(machine), 1);
  machine.gpus = {{"NVIDIA H100 NVL", 1}, {"NVIDIA H100 PCIe", 1}, {"Tesla T4", 1}};
  EXPECT_DOUBLE_EQ(book.HourlyPrice(machine), 1 + 1.5 + 2 + 1);
  machine.instance_type = "big";
  EXPECT_DOUBLE_EQ(book.HourlyPrice(machine), 9);
  machine.spot = true;
  EXPECT_DOUBLE_EQ(book.HourlyPrice(machine), 3);
}

TEST(PriceBook, FaultsNameTheField) {
  const struct {
    const char* yaml;
    const char* words;
  } rows[] = {{"cpu: free", "cpu: expected a price"},
              {"cpu: -1", "cpu: expected a price"},
              {"memory: 1e300", "memory: expected a price"},
              {"gpus: {H100: '2'}", "gpus.H100: expected a price"},
              {"machines: {big: {spot: 3}}", "machines.big.onDemand: expected a price"},
              {"machines: {big: {onDemand: 1, spot: x}}", "machines.big.spot: expected a price"},
              {"gpu: 1", "gpu: unknown"},
              {"[1]", "expected prices as fields"},
              {"a: 1\n---\nb: 1\n", "one YAML document"}};
  for (const auto& row : rows) {
    const auto book = PriceBook::ParseYaml(row.yaml);
    ASSERT_FALSE(book.has_value()) << row.yaml;
    EXPECT_NE(book.error().message().find(row.words), std::string::npos) << book.error().message();
  }
  EXPECT_TRUE(PriceBook::ParseYaml("").has_value());
}

}  // namespace
}  // namespace muster::cost
