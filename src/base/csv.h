// src/base/csv.h
//
// CsvRows: the rows of a CSV text with a header line, columns by name. No quoting: the traces that
// we read have none.
//
// Life cycle: reads `text`, which must outlive it.
// Thread:     not shared.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster {

class CsvRows {
 public:
  CsvRows(std::string_view file, std::string_view text);

  bool HasColumn(std::string_view name) const;
  // Invalid names the first one that is missing.
  Status Require(const std::vector<std::string_view>& columns) const;

  // To the next line that is not empty. False at the end; Invalid if it has another number of
  // fields than the header.
  Result<bool> Next();
  size_t line() const { return line_; }

  // Of the current row. "" if there is no such column.
  std::string_view Text(std::string_view column) const;
  // Whole numbers, and decimal ones, within [0, most].
  Result<int64_t> Int(std::string_view column, int64_t most) const;
  Result<double> Number(std::string_view column, int64_t most) const;
  // About a field of the current row: "FILE:7: gpu: expected ..., got \"x\"".
  Status Fault(std::string_view column, std::string_view expected) const;

 private:
  std::string_view NextLine();

  std::string file_;
  std::string_view rest_;
  size_t line_ = 0;
  std::vector<std::string_view> header_, fields_;
};

}  // namespace muster
