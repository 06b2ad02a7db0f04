#include "agent/network/ip_allocator.h"

#include "base/check.h"

namespace muster::agent {

IpAllocator::IpAllocator(Ipv4Prefix range) : range_(range) {
  CHECK(range.length >= 16 && range.length <= 30);
  taken_.assign(size_t{1} << (32 - range.length), false);
  free_ = Capacity();
}

size_t IpAllocator::Capacity() const { return taken_.size() - 3; }

std::optional<size_t> IpAllocator::Index(Ipv4 address) const {
  if (!range_.Contains(address)) return std::nullopt;
  const size_t index = address.value - range_.Network().value;
  if (index < 2 || index + 1 == taken_.size()) return std::nullopt;
  return index;
}

Result<Ipv4> IpAllocator::Allocate() {
  for (size_t index = 2; free_ > 0 && index + 1 < taken_.size(); ++index) {
    if (taken_[index]) continue;
    taken_[index] = true;
    --free_;
    return Ipv4{range_.Network().value + static_cast<uint32_t>(index)};
  }
  return Error(Reason::kTooManyRequests,
               "all {} pod addresses of {} are taken: wait for a pod to end, or give the node a "
               "larger range",
               Capacity(), range_.ToString());
}

Status IpAllocator::Take(Ipv4 address) {
  const std::optional<size_t> index = Index(address);
  if (!index) {
    return Error(Reason::kInvalid, "{} is not a pod address of {}", address.ToString(),
                 range_.ToString());
  }
  if (taken_[*index]) return Error(Reason::kConflict, "{} is taken already", address.ToString());
  taken_[*index] = true;
  --free_;
  return Status::Ok();
}

void IpAllocator::Release(Ipv4 address) {
  const std::optional<size_t> index = Index(address);
  if (!index || !taken_[*index]) return;
  taken_[*index] = false;
  ++free_;
}

bool IpAllocator::IsTaken(Ipv4 address) const {
  const std::optional<size_t> index = Index(address);
  return index && taken_[*index];
}

}  // namespace muster::agent
