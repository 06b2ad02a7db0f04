// src/cli/table_printer.h
//
// Prints meta.k8s.io Tables as kubectl does: columns three blanks apart, as wide as their widest
// cell so far.
//
// Life cycle: one per table; Add() may be called again while watching, with the header printed
//             once.
// Thread:     the loop thread.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "json/value.h"

namespace muster::cli {

inline constexpr const char* kTableAccept =
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

struct TableOptions {
  bool wide = false;            // columns with a priority, too
  bool with_namespace = false;  // as the first column
  bool show_labels = false;     // as the last
  bool headers = true;
  std::string name_prefix;  // "pod/" before each name, when several types are listed
};

class TablePrinter {
 public:
  TablePrinter(Console& console, TableOptions options)
      : console_(console), options_(std::move(options)) {}
  // `table` may lack columnDefinitions after the first (as in a watch). Returns the number of rows.
  size_t Add(const json::Value& table);

 private:
  void SetColumns(const json::Value& definitions);
  std::vector<std::string> Cells(const json::Value& row) const;
  std::string Line(const std::vector<std::string>& cells) const;

  Console& console_;
  const TableOptions options_;
  std::vector<size_t> columns_;  // those shown, by their place in the server's table
  std::vector<std::string> header_;
  size_t name_column_ = SIZE_MAX;  // in the server's table
  std::vector<size_t> widths_;
  bool header_printed_ = false;
};

// Simple tables of our own: header and rows, without control characters.
std::string FormatColumns(const std::vector<std::vector<std::string>>& rows);

}  // namespace muster::cli
