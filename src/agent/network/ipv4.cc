#include "agent/network/ipv4.h"

#include <fmt/core.h>

#include <array>

#include "base/strings.h"

namespace muster::agent {

namespace {

uint32_t Mask(int length) { return length == 0 ? 0 : ~uint32_t{0} << (32 - length); }

}  // namespace

std::optional<Ipv4> Ipv4::Parse(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, '.');
  if (parts.size() != 4) return std::nullopt;
  uint32_t value = 0;
  for (const std::string_view part : parts) {
    // A leading zero is octal to some readers: refused, as in Kubernetes.
    if (part.empty() || part.size() > 3 || (part.size() > 1 && part[0] == '0')) return std::nullopt;
    uint32_t octet = 0;
    for (const char c : part) {
      if (c < '0' || c > '9') return std::nullopt;
      octet = octet * 10 + static_cast<uint32_t>(c - '0');
    }
    if (octet > 255) return std::nullopt;
    value = value << 8 | octet;
  }
  return Ipv4{value};
}

std::string Ipv4::ToString() const {
  return fmt::format("{}.{}.{}.{}", value >> 24, value >> 16 & 0xFF, value >> 8 & 0xFF,
                     value & 0xFF);
}

std::optional<Ipv4Prefix> Ipv4Prefix::Parse(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::optional<Ipv4> address = Ipv4::Parse(text.substr(0, slash));
  const std::optional<int64_t> length = ParseInt(text.substr(slash + 1));
  if (!address || !length || *length < 0 || *length > 32) return std::nullopt;
  return Ipv4Prefix{*address, static_cast<int>(*length)};
}

std::string Ipv4Prefix::ToString() const {
  return fmt::format("{}/{}", address.ToString(), length);
}
Ipv4 Ipv4Prefix::Network() const { return Ipv4{address.value & Mask(length)}; }
Ipv4 Ipv4Prefix::Broadcast() const { return Ipv4{address.value | ~Mask(length)}; }
bool Ipv4Prefix::Contains(Ipv4 other) const {
  return ((other.value ^ address.value) & Mask(length)) == 0;
}

}  // namespace muster::agent
