#include "agent/pod_workers/disk_guard.h"

#include <algorithm>

#include "agent/volumes/disk_usage.h"
#include "base/log.h"

namespace muster::agent {

struct DiskGuard::Look {
  struct Measured {
    json::Value pod;
    PodDisk disk;
  };
  std::vector<json::Value> limited, others;
  std::vector<Measured> measured;
  int64_t threshold = 0, available = 0;
  // `available` may be without what an evicted pod had, or an image that is being removed.
  bool room_is_coming = false;
  bool low() const { return available < threshold; }
};

DiskGuard::DiskGuard(PodWorkerContext& context, PodManager& manager,
                     std::function<void(bool)> on_pressure)
    : context_(context), manager_(manager), on_pressure_(std::move(on_pressure)) {}

DiskGuard::~DiskGuard() { context_.loop.Cancel(timer_); }

void DiskGuard::Start() { LookLater(); }

void DiskGuard::LookLater() {
  timer_ = context_.loop.After(kDiskPeriod, [this] { LookNow(); });
}

namespace {

void Measure(const std::string& data_dir, const std::vector<json::Value>& pods, auto& measured) {
  for (const json::Value& pod : pods) measured.push_back({pod, MeasureDisk(pod, data_dir)});
}

}  // namespace

void DiskGuard::LookNow() {
  auto look = std::make_shared<Look>();
  look->room_is_coming =
      WaitsForEviction() || (context_.images != nullptr && context_.images->MakesRoom());
  const bool measure = ++looks_ % kMeasurePeriods == 0;
  for (const json::Value& pod : manager_.Objects()) {
    const PodWorker* worker = manager_.FindByUid(pod["metadata"]["uid"].Str());
    if (worker == nullptr || worker->state().terminal) continue;
    if (LimitsDisk(pod)) {
      if (measure) look->limited.push_back(pod);
    } else {
      look->others.push_back(pod);
    }
  }
  context_.pool.Run(
      [look, data_dir = context_.data_dir] {
        const DiskRoom room = MeasureRoom(data_dir);
        look->available = room.available;
        look->threshold = room.reserve;
        Measure(data_dir, look->limited, look->measured);
        if (look->low()) Measure(data_dir, look->others, look->measured);
      },
      context_.loop, lifetime_.Guard([this, look] {
        OnLooked(*look);
        LookLater();
      }));
}

bool DiskGuard::WaitsForEviction() const {
  const PodWorker* worker = manager_.FindByUid(evicted_);
  return worker != nullptr && !worker->removed() && context_.loop.Now() < evicted_until_;
}

void DiskGuard::SetPressure(const Look& look) {
  const Time now = context_.loop.Now();
  if (look.low()) pressure_until_ = now + kPressureHold;
  const bool pressure = now < pressure_until_;
  if (pressure == context_.disk_pressure) return;
  context_.disk_pressure = pressure;
  LOG_WARN("agent: disk pressure {} available={} threshold={}", pressure ? "begins" : "ends",
           look.available, look.threshold);
  on_pressure_(pressure);
}

void DiskGuard::OnLooked(Look& look) {
  SetPressure(look);
  for (const Look::Measured& one : look.measured) {
    if (const std::string fault = DiskFault(one.pod, one.disk); !fault.empty())
      manager_.Evict(one.pod["metadata"]["uid"].Str(), fault);
  }
  if (!look.low() || look.room_is_coming) return;
  // What can be fetched again goes before what a pod has made.
  if (context_.images != nullptr && context_.images->MakeRoom()) return;
  if (look.measured.empty()) return;
  const auto largest = std::max_element(
      look.measured.begin(), look.measured.end(),
      [](const auto& a, const auto& b) { return a.disk.Total() < b.disk.Total(); });
  evicted_ = largest->pod["metadata"]["uid"].Str();
  evicted_until_ = context_.loop.Now() + kEvictionPatience;
  manager_.Evict(evicted_,
                 LowDiskMessage(largest->pod, largest->disk, look.threshold, look.available));
}

}  // namespace muster::agent
