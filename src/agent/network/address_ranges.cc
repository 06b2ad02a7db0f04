#include "agent/network/address_ranges.h"

#include <fmt/core.h>

#include "base/files.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

constexpr std::string_view kPodsKey = "pods=";
constexpr std::string_view kServicesKey = "services=";
constexpr int kRangeLength = 16;

std::string PathOf(const std::string& data_dir) {
  return fmt::format("{}/{}", data_dir, kAddressRangesFile);
}

// Every range that may be taken, the usual ones first: 10/8, 172.16/12, 100.64/10, 198.18/15.
std::vector<Ipv4Prefix> Candidates() {
  std::vector<Ipv4Prefix> out;
  const auto add = [&out](uint32_t first, uint32_t from, uint32_t to) {
    for (uint32_t second = from; second <= to; ++second)
      out.push_back({{first << 24 | second << 16}, kRangeLength});
  };
  add(10, 42, 255);
  add(10, 0, 41);
  add(172, 16, 31);
  add(100, 64, 127);
  add(198, 18, 19);
  return out;
}

std::optional<Ipv4Prefix> ParseRange(std::string_view text) {
  const auto range = Ipv4Prefix::Parse(text);
  // A node's part is a /24 of it.
  if (!range || range->length < 8 || range->length > 24) return std::nullopt;
  return range;
}

}  // namespace

std::optional<AddressRanges> ChooseAddressRanges(const std::vector<Ipv4Prefix>& taken) {
  std::vector<Ipv4Prefix> free;
  for (const Ipv4Prefix& candidate : Candidates()) {
    bool fits = true;
    for (const Ipv4Prefix& other : taken) fits = fits && !candidate.Overlaps(other);
    if (fits) free.push_back(candidate);
    if (free.size() == 2) return AddressRanges{free[0], free[1]};
  }
  return std::nullopt;
}

Result<std::optional<AddressRanges>> LoadAddressRanges(const std::string& data_dir) {
  const std::string path = PathOf(data_dir);
  const Result<std::string> text = ReadSmallFile(path);
  if (!text && text.error().reason() == Reason::kNotFound) return std::optional<AddressRanges>();
  if (!text) return Error(text.error());
  std::optional<Ipv4Prefix> pods, services;
  for (const std::string_view line : SplitNonEmpty(*text, '\n')) {
    if (line.starts_with(kPodsKey)) pods = ParseRange(line.substr(kPodsKey.size()));
    if (line.starts_with(kServicesKey)) services = ParseRange(line.substr(kServicesKey.size()));
  }
  if (!pods || !services || pods->Overlaps(*services)) {
    return Error(Reason::kInvalid,
                 "{} is damaged: expected the lines \"pods=RANGE\" and \"services=RANGE\", such as "
                 "10.42.0.0/16 and 10.43.0.0/16",
                 path);
  }
  return std::optional<AddressRanges>({*pods, *services});
}

Status SaveAddressRanges(const std::string& data_dir, const AddressRanges& ranges) {
  return WriteFileAtomic(PathOf(data_dir),
                         fmt::format("{}{}\n{}{}\n", kPodsKey, ranges.pods.ToString(), kServicesKey,
                                     ranges.services.ToString()),
                         0600, true);
}

}  // namespace muster::agent
