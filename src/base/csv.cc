#include "base/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/strings.h"

namespace muster {

CsvRows::CsvRows(std::string_view file, std::string_view text) : file_(file), rest_(text) {
  header_ = Split(NextLine(), ',');
}

std::string_view CsvRows::NextLine() {
  const size_t end = rest_.find('\n');
  const std::string_view line = Trim(rest_.substr(0, end));
  rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
  ++line_;
  return line;
}

bool CsvRows::HasColumn(std::string_view name) const {
  return std::find(header_.begin(), header_.end(), name) != header_.end();
}

Status CsvRows::Require(const std::vector<std::string_view>& columns) const {
  for (const std::string_view column : columns) {
    if (!HasColumn(column))
      return Error(Reason::kInvalid, "{}:1: the header has no column {:?}", file_, column);
  }
  return Status::Ok();
}

Result<bool> CsvRows::Next() {
  while (!rest_.empty()) {
    const std::string_view line = NextLine();
    if (line.empty()) continue;
    fields_ = Split(line, ',');
    if (fields_.size() != header_.size())
      return Error(Reason::kInvalid, "{}:{}: expected {} fields as in the header, got {}", file_,
                   line_, header_.size(), fields_.size());
    return true;
  }
  return false;
}

std::string_view CsvRows::Text(std::string_view column) const {
  const auto found = std::find(header_.begin(), header_.end(), column);
  return found == header_.end() ? "" : Trim(fields_[static_cast<size_t>(found - header_.begin())]);
}

Result<int64_t> CsvRows::Int(std::string_view column, int64_t most) const {
  const auto value = ParseInt(Text(column));
  if (value && *value >= 0 && *value <= most) return *value;
  return Error(Fault(column, fmt::format("a whole number from 0 to {}", most)));
}

Result<double> CsvRows::Number(std::string_view column, int64_t most) const {
  const std::string_view text = Text(column);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value) &&
      value >= 0 && value <= static_cast<double>(most)) {
    return value;
  }
  return Error(Fault(column, fmt::format("a number from 0 to {}", most)));
}

Status CsvRows::Fault(std::string_view column, std::string_view expected) const {
  return Error(Reason::kInvalid, "{}:{}: {}: expected {}, got {:?}", file_, line_, column, expected,
               Text(column).substr(0, 100));
}

}  // namespace muster
