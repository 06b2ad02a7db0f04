#include "gpu/gpu_monitor.h"

#include <utility>

#include "base/log.h"

namespace muster::gpu {

GpuMonitor::GpuMonitor(Loop& loop, Prober& prober, Duration steady, std::function<void()> on_change)
    : loop_(loop),
      prober_(prober),
      health_(static_cast<int>(steady / kGpuLookPeriod), XidPolicy::FromEnvironment()),
      on_change_(std::move(on_change)) {}

GpuMonitor::~GpuMonitor() {
  *alive_ = false;
  loop_.Cancel(timer_);
}

void GpuMonitor::Start() { Look(true); }

void GpuMonitor::LookLater() {
  loop_.Cancel(timer_);
  timer_ = loop_.After(kGpuLookPeriod, [this] {
    timer_ = 0;
    if (!looking_) return Look(true);
    LookLater();
  });
}

void GpuMonitor::Refresh(Task done) {
  const Duration age = loop_.Now() - looked_at_;
  if (absent_ || (!looking_ && age >= Duration() && age < kFreshSample)) {
    return loop_.Post(std::move(done));
  }
  waiting_.push_back(std::move(done));
  if (!looking_) Look(false);
}

void GpuMonitor::Look(bool counts) {
  looking_ = true;
  if (counts) LookLater();
  prober_.Read(std::exchange(anew_, false),
               [this, alive = alive_, counts](const Result<Inventory>& look) {
                 if (*alive) OnLook(look, counts);
               });
}

void GpuMonitor::OnLook(const Result<Inventory>& look, bool counts) {
  looking_ = false;
  looked_at_ = loop_.Now();
  const bool no_driver = !look && look.error().reason() == Reason::kNotFound;
  if (no_driver && health_.gpus().empty()) {
    LOG_INFO("gpu: no NVIDIA GPUs on this node: {}", look.error().message());
    absent_ = true;
    loop_.Cancel(timer_);
    prober_.Rest();
  }
  const std::string before = health_.fault_message();
  const bool changed = health_.Observe(look, counts) || before != health_.fault_message();
  if (!absent_ && before != health_.fault_message() && !health_.fault_message().empty())
    LOG_WARN("gpu: {}: {}", health_.fault_reason(), health_.fault_message());
  anew_ = health_.asks_anew();
  const bool first = !std::exchange(known_, true);
  if (changed || first) on_change_();
  if (on_look_ && counts && look) on_look_();
  for (Task& done : std::exchange(waiting_, {})) done();
}

}  // namespace muster::gpu
