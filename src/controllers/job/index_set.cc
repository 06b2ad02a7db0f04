#include "controllers/job/index_set.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::controllers {

IndexSet IndexSet::Parse(std::string_view text, int64_t completions) {
  IndexSet out;
  for (const std::string_view part : SplitNonEmpty(text, ',')) {
    const std::vector<std::string_view> ends = Split(part, '-');
    const std::optional<int64_t> first = ParseInt(ends.front());
    const std::optional<int64_t> last = ends.size() == 1 ? first : ParseInt(ends[1]);
    if (!first || !last || *first < 0) continue;
    if (*first >= completions) break;
    out.AddRange(*first, std::min(*last, completions - 1));
  }
  return out;
}

void IndexSet::AddRange(int64_t first, int64_t last) {
  if (first > last) return;
  auto it = last_of_first_.upper_bound(first);
  if (it != last_of_first_.begin() && std::prev(it)->second >= first - 1) --it;
  while (it != last_of_first_.end() && it->first <= last + 1) {
    first = std::min(first, it->first);
    last = std::max(last, it->second);
    it = last_of_first_.erase(it);
  }
  last_of_first_[first] = last;
}

void IndexSet::Add(const IndexSet& other) {
  for (const auto& [first, last] : other.last_of_first_) AddRange(first, last);
}

bool IndexSet::Has(int64_t index) const {
  const auto it = last_of_first_.upper_bound(index);
  return it != last_of_first_.begin() && std::prev(it)->second >= index;
}

int64_t IndexSet::size() const {
  int64_t count = 0;
  for (const auto& [first, last] : last_of_first_) count += last - first + 1;
  return count;
}

int64_t IndexSet::CountIn(const IndexSet& other) const {
  int64_t count = 0;
  for (const auto& [first, last] : last_of_first_) {
    auto it = other.last_of_first_.upper_bound(first);
    if (it != other.last_of_first_.begin()) --it;
    for (; it != other.last_of_first_.end() && it->first <= last; ++it) {
      count += std::max<int64_t>(std::min(last, it->second) - std::max(first, it->first) + 1, 0);
    }
  }
  return count;
}

std::vector<int64_t> IndexSet::Missing(int64_t completions, size_t count) const {
  std::vector<int64_t> out;
  int64_t candidate = 0;
  const auto take_until = [&](int64_t end) {
    for (; candidate < std::min(end, completions) && out.size() < count; ++candidate)
      out.push_back(candidate);
  };
  for (const auto& [first, last] : last_of_first_) {
    take_until(first);
    candidate = std::max(candidate, last + 1);
  }
  take_until(completions);
  return out;
}

std::string IndexSet::ToString() const {
  std::vector<std::string> parts;
  for (const auto& [first, last] : last_of_first_) {
    if (last - first < 2) {
      for (int64_t index = first; index <= last; ++index) parts.push_back(fmt::format("{}", index));
    } else {
      parts.push_back(fmt::format("{}-{}", first, last));
    }
  }
  return Join(parts, ",");
}

}  // namespace muster::controllers
