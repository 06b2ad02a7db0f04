#include "durability/churn.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include <fmt/core.h>

#include "base/rng.h"
#include "base/time.h"
#include "loop/sim_loop.h"
#include "store/compactor.h"
#include "store/sqlite_store.h"
#include "store/store_test_support.h"

namespace muster::durability {

namespace {

using store::Durability;

constexpr int kLeases = 1000;
constexpr int kPods = 500;
constexpr int64_t kEventsAlive = 2000;
constexpr double kMega = 1024 * 1024;

double ResidentMb() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE)) / kMega;
}

double SizeMb(const std::string& path) {
  std::error_code ignored;
  const uintmax_t bytes = std::filesystem::file_size(path, ignored);
  return ignored ? 0 : static_cast<double>(bytes) / kMega;
}

struct Sample {
  int64_t updates = 0;
  double database_mb = 0, log_mb = 0, resident_mb = 0;
};

class Churn {
 public:
  explicit Churn(const ChurnOptions& options) : options_(options) {}

  std::vector<std::string> Run() {
    store_ = *store::OpenSqliteStoreOnLoop(loop_, Path());
    const store::Compactor compactor(loop_, *store_);
    const Duration started = RealClock().Monotonic();
    const int64_t per_sample = std::max<int64_t>(1, options_.updates / options_.samples);
    for (int64_t i = 1; i <= options_.updates; ++i) {
      Update();
      // One commit takes what a busy moment queues.
      if (i % 64 == 0) Advance(64);
      if (i % per_sample == 0) Take(i, RealClock().Monotonic() - started);
    }
    Check();
    return std::move(violations_);
  }

 private:
  std::string Path() const { return folder_.File("store/muster.db"); }

  void Advance(int64_t updates) {
    if (options_.rate > 0) {
      loop_.RunFor(Duration(seconds(updates)) / options_.rate);
    } else {
      loop_.RunReady();
    }
  }

  void Put(std::string key, size_t bytes, Durability durability) {
    store::Put put = store::MakePut(std::move(key), std::string(bytes, 'v'));
    put.durability = durability;
    CHECK(store_->Write(std::move(put), {}).has_value());
  }

  void Update() {
    const uint64_t what = rng_.Below(100);
    if (what < 60) {
      Put(fmt::format("/leases/node-{}", next_lease_++ % kLeases), 420, Durability::kRelaxed);
    } else if (what < 75) {
      Put(fmt::format("/events/default/pod.{}", next_event_++), 650, Durability::kRelaxed);
    } else if (what < 90) {
      // Events end as fast as they come, oldest first.
      if (next_event_ - first_event_ > kEventsAlive) {
        const std::string key = fmt::format("/events/default/pod.{}", first_event_++);
        CHECK(store_->Delete(key, std::nullopt, Durability::kRelaxed, {}).has_value());
      } else {
        Put(fmt::format("/events/default/pod.{}", next_event_++), 650, Durability::kRelaxed);
      }
    } else {
      Put(fmt::format("/pods/default/pod-{}", rng_.Below(kPods)), 2000 + rng_.Below(3000),
          Durability::kDurable);
    }
  }

  void Take(int64_t updates, Duration elapsed) {
    const Sample sample{updates, SizeMb(Path()), SizeMb(Path() + "-wal"), ResidentMb()};
    fmt::print(
        "{:>9} updates  database {:7.1f} MB  log {:6.1f} MB  resident {:6.1f} MB  "
        "uncompacted {:>7}  {:6.1f} s\n",
        sample.updates, sample.database_mb, sample.log_mb, sample.resident_mb,
        store_->CommittedRevision() - store_->CompactedRevision(),
        std::chrono::duration<double>(elapsed).count());
    samples_.push_back(sample);
  }

  void Check() {
    Sample most = samples_.back();
    for (const Sample& sample : samples_) {
      most.database_mb = std::max(most.database_mb, sample.database_mb);
      most.log_mb = std::max(most.log_mb, sample.log_mb);
      most.resident_mb = std::max(most.resident_mb, sample.resident_mb);
    }
    const double growth = samples_.back().resident_mb - samples_[samples_.size() / 2].resident_mb;
    fmt::print(
        "result: {} updates: database at most {:.0f} MB, log {:.0f} MB, resident {:.0f} MB "
        "({:+.1f} MB in the second half)\n",
        samples_.back().updates, most.database_mb, most.log_mb, most.resident_mb, growth);
    if (options_.max_database_mb > 0 && most.database_mb + most.log_mb > options_.max_database_mb)
      violations_.push_back(fmt::format("the files grew to {:.0f} MB, {:.0f} MB are allowed",
                                        most.database_mb + most.log_mb, options_.max_database_mb));
    if (options_.max_growth_mb > 0 && growth > options_.max_growth_mb)
      violations_.push_back(fmt::format("memory grew by {:.1f} MB in the second half", growth));
  }

  const ChurnOptions options_;
  Rng rng_{1};
  store::TemporaryFolder folder_;
  SimLoop loop_;
  std::unique_ptr<store::Store> store_;
  int64_t next_lease_ = 0, next_event_ = 0, first_event_ = 0;
  std::vector<Sample> samples_;
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> RunChurn(const ChurnOptions& options) { return Churn(options).Run(); }

}  // namespace muster::durability
