#include "cli/table_printer.h"

#include <algorithm>

#include "base/strings.h"
#include "cli/printable.h"

namespace muster::cli {
namespace {

constexpr size_t kGap = 3;

// Characters, not bytes: UTF-8 continuation bytes take no room.
size_t WidthOf(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string CellText(const json::Value& cell) {
  if (cell.IsString()) return Printable(cell.AsString());
  if (cell.IsNumber()) return std::string(cell.NumberToken());
  if (cell.IsBool()) return cell.AsBool() ? "true" : "false";
  return cell.IsNull() ? "<none>" : "";
}

Colour ColourOf(std::string_view column, std::string_view cell) {
  if (column != "STATUS" && column != "STATE" && column != "PHASE") return Colour::kPlain;
  for (std::string_view good : {"Running", "Ready", "Succeeded", "Completed", "Active", "Bound"}) {
    if (cell == good) return Colour::kGreen;
  }
  for (std::string_view waits :
       {"Pending", "ContainerCreating", "Created", "Restarting", "Terminating", "Suspended"}) {
    if (cell == waits) return Colour::kYellow;
  }
  return cell == "<none>" || cell.empty() ? Colour::kPlain : Colour::kRed;
}

std::string LabelsText(const json::Value& labels) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : labels.members()) parts.push_back(key + "=" + value.Str());
  return parts.empty() ? "<none>" : Join(parts, ",");
}

}  // namespace

void TablePrinter::SetColumns(const json::Value& definitions) {
  if (!columns_.empty() || definitions.empty()) return;
  if (options_.with_namespace) header_.emplace_back("NAMESPACE");
  for (size_t i = 0; i < definitions.size(); ++i) {
    const json::Value& definition = definitions.At(i);
    if (definition["priority"].AsInt() > 0 && !options_.wide) continue;
    columns_.push_back(i);
    std::string name = definition["name"].Str();
    if (ToLower(name) == "name" && name_column_ == SIZE_MAX) name_column_ = i;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return std::toupper(c); });
    header_.push_back(std::move(name));
  }
  if (options_.show_labels) header_.emplace_back("LABELS");
  widths_.assign(header_.size(), 0);
}

std::vector<std::string> TablePrinter::Cells(const json::Value& row) const {
  const json::Value& metadata = row["object"]["metadata"];
  std::vector<std::string> cells;
  if (options_.with_namespace) cells.push_back(metadata["namespace"].Str());
  for (size_t column : columns_) {
    std::string text = CellText(row["cells"].At(column));
    cells.push_back(column == name_column_ ? options_.name_prefix + text : std::move(text));
  }
  if (options_.show_labels) cells.push_back(LabelsText(metadata["labels"]));
  return cells;
}

std::string TablePrinter::Line(const std::vector<std::string>& cells) const {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    line += header_printed_ ? console_.Paint(ColourOf(header_[i], cells[i]), cells[i]) : cells[i];
    if (i + 1 < cells.size()) line.append(widths_[i] - WidthOf(cells[i]) + kGap, ' ');
  }
  return line + "\n";
}

size_t TablePrinter::Add(const json::Value& table) {
  SetColumns(table["columnDefinitions"]);
  std::vector<std::vector<std::string>> rows;
  for (const json::Value& row : table["rows"].items()) rows.push_back(Cells(row));
  if (rows.empty()) return 0;
  const bool print_header = options_.headers && !header_printed_;
  auto widen = [this](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) widths_[i] = std::max(widths_[i], WidthOf(cells[i]));
  };
  if (print_header) widen(header_);
  for (const auto& row : rows) widen(row);
  std::string text;
  if (print_header) text += Line(header_);
  header_printed_ = true;
  for (const auto& row : rows) text += Line(row);
  console_.Out(text);
  return rows.size();
}

std::string FormatColumns(const std::vector<std::vector<std::string>>& written) {
  std::vector<std::vector<std::string>> rows = written;
  for (std::vector<std::string>& row : rows)
    for (std::string& cell : row) cell = Printable(cell);
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], WidthOf(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - WidthOf(row[i]) + kGap, ' ');
    }
    out += line + "\n";
  }
  return out;
}

}  // namespace muster::cli
