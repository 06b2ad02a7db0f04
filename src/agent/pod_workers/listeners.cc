#include "agent/pod_workers/listeners.h"

#include <fmt/core.h>
#include <netinet/in.h>

#include <charconv>
#include <optional>
#include <utility>

#include "agent/network/ipv4.h"
#include "base/files.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

constexpr std::string_view kListens = "0A";  // TCP_LISTEN
constexpr size_t kDigits = 8;                // of four bytes
constexpr std::string_view kUnset = "00000000";

std::optional<uint32_t> Hex(std::string_view digits) {
  uint32_t value = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (end.ec != std::errc() || end.ptr != digits.data() + digits.size()) return std::nullopt;
  return value;
}

bool IsAll(std::string_view digits) {
  return digits.find_first_not_of('0') == std::string_view::npos;
}

// Four bytes at a time, as the machine has them in memory. "" if it is none of IPv4's.
std::string AddressOf(std::string_view digits) {
  if (IsAll(digits)) return "0.0.0.0";
  if (digits.size() == 4 * kDigits) {  // ::ffff:a.b.c.d
    const auto mark = Hex(digits.substr(2 * kDigits, kDigits));
    const bool mapped = digits.starts_with(std::string(kUnset) + std::string(kUnset)) && mark &&
                        ntohl(*mark) == 0xffff;
    if (!mapped) return "";
    digits.remove_prefix(3 * kDigits);
  }
  const auto value = Hex(digits);
  return digits.size() == kDigits && value ? Ipv4{ntohl(*value)}.ToString() : "";
}

}  // namespace

std::vector<cluster::HostPort> ParseListeners(std::string_view proc_net,
                                              std::string_view protocol) {
  std::vector<cluster::HostPort> out;
  for (std::string_view line : SplitNonEmpty(proc_net, '\n')) {
    // "0: 0100007F:1F90 00000000:0000 0A ..."
    const auto fields = SplitNonEmpty(line, ' ');
    if (fields.size() < 4 || (protocol == "TCP" && fields[3] != kListens)) continue;
    const size_t colon = fields[1].rfind(':');
    if (colon == std::string_view::npos) continue;
    const std::string address = AddressOf(fields[1].substr(0, colon));
    const auto port = Hex(fields[1].substr(colon + 1));
    if (!address.empty() && port) out.push_back({address, std::string(protocol), *port});
  }
  return out;
}

std::vector<cluster::HostPort> MachineListeners(const std::string& protocol) {
  std::vector<cluster::HostPort> out;
  if (protocol != "TCP" && protocol != "UDP") return out;
  for (const char* version : {"", "6"}) {
    const auto text = ReadSmallFile(fmt::format("/proc/net/{}{}", ToLower(protocol), version));
    if (!text) continue;
    for (cluster::HostPort& each : ParseListeners(*text, protocol)) out.push_back(std::move(each));
  }
  return out;
}

}  // namespace muster::agent
