#include "schema/index_intervals.h"

#include <optional>

#include "base/strings.h"

namespace muster::schema {
namespace {

Result<int64_t> ParseIndex(std::string_view text, int64_t completions) {
  const std::optional<int64_t> index = ParseInt(text);
  if (!index) {
    return Error(Reason::kBadRequest, "cannot convert string to integer for index: \"{}\"", text);
  }
  if (*index >= completions) return Error(Reason::kBadRequest, "too large index: \"{}\"", text);
  return *index;
}

Result<IndexInterval> ParseInterval(std::string_view text, int64_t completions) {
  const std::vector<std::string_view> ends = Split(text, '-');
  if (ends.size() > 2) {
    return Error(Reason::kBadRequest,
                 "the fragment \"{}\" violates the requirement that an index interval can have at "
                 "most two parts separated by '-'",
                 text);
  }
  IndexInterval interval;
  ASSIGN_OR_RETURN(interval.first, ParseIndex(ends[0], completions));
  interval.last = interval.first;
  if (ends.size() == 1) return interval;
  ASSIGN_OR_RETURN(interval.last, ParseIndex(ends[1], completions));
  if (interval.first >= interval.last) {
    return Error(Reason::kBadRequest, "non-increasing order, previous: {}, current: {}",
                 interval.first, interval.last);
  }
  return interval;
}

}  // namespace

Result<std::vector<IndexInterval>> ParseIndexIntervals(std::string_view text, int64_t completions) {
  std::vector<IndexInterval> intervals;
  if (text.empty()) return intervals;
  for (const std::string_view part : Split(text, ',')) {
    ASSIGN_OR_RETURN(const IndexInterval interval, ParseInterval(part, completions));
    if (!intervals.empty() && intervals.back().last >= interval.first) {
      return Error(Reason::kBadRequest, "non-increasing order, previous: {}, current: {}",
                   intervals.back().last, interval.first);
    }
    intervals.push_back(interval);
  }
  return intervals;
}

int64_t CountIndexes(const std::vector<IndexInterval>& intervals) {
  int64_t count = 0;
  for (const IndexInterval& interval : intervals) count += interval.last - interval.first + 1;
  return count;
}

}  // namespace muster::schema
