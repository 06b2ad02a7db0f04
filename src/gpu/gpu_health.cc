#include "gpu/gpu_health.h"

#include <fmt/core.h>

#include <algorithm>

namespace muster::gpu {

namespace {

// What the node tells of a GPU; figures that change with every look are left out.
bool SamePlace(const Gpu& a, const Gpu& b) {
  return a.index == b.index && a.minor == b.minor && a.model == b.model && a.links == b.links &&
         a.memory_bytes == b.memory_bytes && a.pci_bus_id == b.pci_bus_id;
}

}  // namespace

std::string Describe(const Gpu& gpu) {
  return fmt::format("GPU {} ({}, {})", gpu.index, gpu.uuid, gpu.model);
}

void GpuHealth::Judge(Known& known, const std::string& fault, bool counts) {
  if (!fault.empty() || known.fatal_xid != 0) {
    known.healthy = false;
    known.why = fault;
    if (known.fatal_xid != 0)
      known.why += (fault.empty() ? "" : ", after ") + DescribeXid(known.fatal_xid);
    known.fine_looks = 0;
  } else if (!known.healthy && counts && ++known.fine_looks >= steady_looks_) {
    known.healthy = true;
    known.why.clear();
    known.fine_looks = 0;
  }
  if (!known.healthy && (!fault.empty() || known.fatal_xid == 0)) asks_anew_ = true;
}

void GpuHealth::TakeXids(Known& known) const {
  for (const int64_t xid : known.gpu.xids) {
    known.last_xid = xid;
    if (xids_.IsFatal(xid)) known.fatal_xid = xid;
  }
}

bool GpuHealth::Observe(const Result<Inventory>& look, bool counts) {
  const std::vector<Known> before = gpus_;
  if (look) inventory_ = *look;
  asks_anew_ = !look;
  for (Known& known : gpus_) {
    known.gpu.xids.clear();
    known.unknown = !look && known.fatal_xid == 0;
    if (!look) {
      Judge(known, look.error().message(), counts);
      known.gpu.sample = {};
      continue;
    }
    const auto seen = std::find_if(look->gpus.begin(), look->gpus.end(),
                                   [&](const Gpu& gpu) { return gpu.uuid == known.gpu.uuid; });
    if (seen == look->gpus.end()) {
      known.fatal_xid = 0;
      Judge(known, look->fault.empty() ? "the driver no longer lists it" : look->fault, counts);
      known.gpu.sample = {};
    } else {
      known.gpu = *seen;
      TakeXids(known);
      Judge(known, seen->fault, counts);
    }
  }
  for (const Gpu& gpu : look ? look->gpus : std::vector<Gpu>()) {
    const auto known = std::find_if(gpus_.begin(), gpus_.end(),
                                    [&](const Known& k) { return k.gpu.uuid == gpu.uuid; });
    if (known != gpus_.end() || gpus_.size() >= kMaxGpusPerNode) continue;
    Known& added = gpus_.emplace_back(Known{.gpu = gpu});
    TakeXids(added);
    Judge(added, gpu.fault, counts);
  }
  std::stable_sort(gpus_.begin(), gpus_.end(),
                   [](const Known& a, const Known& b) { return a.gpu.index < b.gpu.index; });
  Summarize(look);
  const bool told =
      std::ranges::any_of(gpus_, [](const Known& known) { return !known.gpu.xids.empty(); });
  return told || !std::equal(before.begin(), before.end(), gpus_.begin(), gpus_.end(),
                             [](const Known& a, const Known& b) {
                               return a.gpu.uuid == b.gpu.uuid && a.healthy == b.healthy &&
                                      a.unknown == b.unknown && SamePlace(a.gpu, b.gpu) &&
                                      a.why == b.why;
                             });
}

void GpuHealth::Summarize(const Result<Inventory>& look) {
  fault_reason_ = "";
  fault_message_.clear();
  if (!look) {
    fault_reason_ = look.error().reason() == Reason::kTimeout ? "NVMLHang" : "NVMLError";
    fault_message_ = look.error().message();
    return;
  }
  for (const Known& known : gpus_) {
    if (known.healthy) continue;
    fault_reason_ = "GPUUnhealthy";
    if (!fault_message_.empty()) fault_message_ += "; ";
    fault_message_ += Describe(known.gpu) + ": " + known.why;
    if (known.fine_looks > 0) fault_message_ += " (since then fine, waiting until it is steady)";
  }
}

}  // namespace muster::gpu
