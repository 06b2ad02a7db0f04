#include "cluster/device_picker.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/check.h"

namespace muster::cluster {
namespace {

// Sets of `count` out of `all`; more than kMaxDeviceChoices count as one more.
int64_t Choices(int64_t all, int64_t count) {
  int64_t choices = 1;
  for (int64_t i = 1; i <= std::min(count, all - count); ++i) {
    choices = choices * (all - std::min(count, all - count) + i) / i;
    if (choices > kMaxDeviceChoices) return kMaxDeviceChoices + 1;
  }
  return choices;
}

}  // namespace

DeviceLinks::DeviceLinks(const std::vector<Device>& devices) : size_(devices.size()) {
  std::map<std::string_view, size_t> positions;
  for (size_t i = 0; i < size_; ++i) {
    if (!devices[i].links.empty()) positions.emplace(devices[i].id, i);
  }
  if (positions.empty()) return;
  links_.resize(size_ * size_, 0);
  for (size_t i = 0; i < size_; ++i) {
    for (const auto& [peer, count] : devices[i].links) {
      const auto found = positions.find(peer);
      if (found == positions.end() || found->second == i) continue;
      const auto links = static_cast<uint16_t>(std::clamp<int64_t>(count, 0, UINT16_MAX));
      for (const size_t cell : {i * size_ + found->second, found->second * size_ + i})
        links_[cell] = std::max(links_[cell], links);
    }
  }
}

int64_t DeviceLinks::To(size_t position, const std::vector<size_t>& others) const {
  int64_t sum = 0;
  for (const size_t other : others) sum += Between(position, other);
  return sum;
}

std::vector<size_t> DeviceLinks::Grow(size_t seed, const std::vector<size_t>& free,
                                      size_t count) const {
  std::vector<size_t> chosen = {seed};
  std::vector<size_t> rest;
  for (const size_t position : free) {
    if (position != seed) rest.push_back(position);
  }
  while (chosen.size() < count) {
    // Most links to the chosen, fewest to the rest, lowest position.
    const auto order = [&](size_t position) {
      return std::tuple(-To(position, chosen), To(position, rest), position);
    };
    const auto next = std::min_element(rest.begin(), rest.end(),
                                       [&](size_t a, size_t b) { return order(a) < order(b); });
    chosen.push_back(*next);
    rest.erase(next);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

DeviceLinks::Score DeviceLinks::ScoreOf(std::vector<size_t> chosen,
                                        const std::vector<size_t>& free) const {
  int64_t inside = 0, all = 0;
  for (const size_t position : chosen) {
    inside += To(position, chosen);
    all += To(position, free);
  }
  return Score(-inside, all - inside, std::move(chosen));
}

std::vector<size_t> DeviceLinks::BestOfAll(const std::vector<size_t>& free, size_t count) const {
  std::vector<bool> in(free.size(), false);
  std::fill_n(in.begin(), count, true);
  std::optional<Score> best;
  do {
    std::vector<size_t> chosen;
    for (size_t i = 0; i < free.size(); ++i) {
      if (in[i]) chosen.push_back(free[i]);
    }
    Score score = ScoreOf(std::move(chosen), free);
    if (!best || score < *best) best = std::move(score);
  } while (std::prev_permutation(in.begin(), in.end()));
  return std::get<2>(*best);
}

std::vector<size_t> DeviceLinks::Grown(const std::vector<size_t>& free, size_t count) const {
  std::optional<Score> best;
  for (const size_t seed : free) {
    Score score = ScoreOf(Grow(seed, free, count), free);
    if (!best || score < *best) best = std::move(score);
  }
  return std::get<2>(*best);
}

int64_t DeviceLinks::MostJoined(const DeviceSet& free) const {
  if (empty()) return free.IsEmpty() ? 0 : 1;
  int64_t most = 0;
  std::vector<size_t> left = free.Positions();
  std::vector<size_t> joined;
  while (!left.empty()) {
    joined.assign(1, left.back());
    left.pop_back();
    for (size_t i = 0; i < joined.size(); ++i) {
      const auto unlinked = std::partition(
          left.begin(), left.end(), [&](size_t other) { return Between(joined[i], other) == 0; });
      joined.insert(joined.end(), unlinked, left.end());
      left.erase(unlinked, left.end());
    }
    most = std::max(most, static_cast<int64_t>(joined.size()));
  }
  return most;
}

DeviceSet DeviceLinks::Pick(const DeviceSet& free, int64_t count) const {
  CHECK(count <= free.Count());
  if (empty() || count <= 0 || count == free.Count()) return free.Lowest(count);
  const std::vector<size_t> positions = free.Positions();
  const auto wanted = static_cast<size_t>(count);
  const bool few = Choices(free.Count(), count) <= kMaxDeviceChoices;
  DeviceSet out;
  for (const size_t position : few ? BestOfAll(positions, wanted) : Grown(positions, wanted))
    out.Add(position);
  return out;
}

}  // namespace muster::cluster
