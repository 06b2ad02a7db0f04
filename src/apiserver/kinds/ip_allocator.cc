#include "apiserver/kinds/ip_allocator.h"

#include <optional>
#include <vector>

#include "base/strings.h"

namespace muster::apiserver {
namespace {

std::optional<uint32_t> ParseIpv4(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, '.');
  if (parts.size() != 4) return std::nullopt;
  uint32_t address = 0;
  for (std::string_view part : parts) {
    const std::optional<int64_t> number = ParseInt(part);
    if (!number || *number < 0 || *number > 255) return std::nullopt;
    address = address << 8 | static_cast<uint32_t>(*number);
  }
  return address;
}

std::string FormatIpv4(uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255,
                     address & 255);
}

}  // namespace

Result<IpAllocator> IpAllocator::Make(std::string_view cidr) {
  const size_t slash = cidr.find('/');
  const std::optional<uint32_t> base = ParseIpv4(cidr.substr(0, slash));
  const std::optional<int64_t> bits =
      slash == std::string_view::npos ? std::nullopt : ParseInt(cidr.substr(slash + 1));
  if (!base || !bits || *bits < 8 || *bits > 30) {
    return Error(Reason::kBadRequest,
                 "service range {:?} must be an IPv4 range such as 10.43.0.0/16", cidr);
  }
  const uint32_t size = uint32_t{1} << (32 - *bits);
  return IpAllocator(*base & ~(size - 1), size);
}

Result<std::string> IpAllocator::AllocateNext() {
  for (uint32_t tries = 0; tries < size_; ++tries) {
    cursor_ = cursor_ + 1 < size_ - 1 ? cursor_ + 1 : 1;
    if (taken_.insert(cursor_).second) return FormatIpv4(base_ + cursor_);
  }
  return Error(Reason::kServiceUnavailable, "range is full: no address is left in {}/{}",
               FormatIpv4(base_), size_);
}

Status IpAllocator::Allocate(std::string_view address) {
  const std::optional<uint32_t> parsed = ParseIpv4(address);
  if (!parsed || *parsed - base_ == 0 || *parsed - base_ >= size_ - 1) {
    return Error(Reason::kBadRequest,
                 "the provided IP ({}) is not in the valid range. The range of valid IPs is {}/{}",
                 address, FormatIpv4(base_), 32 - __builtin_ctz(size_));
  }
  if (!taken_.insert(*parsed - base_).second) {
    return Error(Reason::kBadRequest, "provided IP is already allocated");
  }
  return Status::Ok();
}

void IpAllocator::Release(std::string_view address) {
  if (const std::optional<uint32_t> parsed = ParseIpv4(address)) taken_.erase(*parsed - base_);
}

std::string IpAllocator::First() const { return FormatIpv4(base_ + 1); }

}  // namespace muster::apiserver
