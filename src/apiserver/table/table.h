// src/apiserver/table/table.h
//
// TablePrinter: the columns and cells of `kubectl get`. Built-in kinds print what upstream prints
// for them (k8s.io/kubernetes pkg/printers/internalversion); custom kinds print their
// additionalPrinterColumns.
//
// Life cycle: immutable, shared.
// Thread:     any.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "json/value.h"
#include "schema/kind.h"

namespace muster::apiserver {

struct TableColumn {
  std::string name;
  std::string type = "string";
  std::string format;
  std::string description;
  int priority = 0;  // > 0: only with -o wide
};

class TablePrinter {
 public:
  virtual ~TablePrinter() = default;
  virtual const std::vector<TableColumn>& columns() const = 0;
  // One cell per column.
  virtual json::Array Cells(const json::Value& object, Time now) const = 0;
};

std::shared_ptr<const TablePrinter> PrinterFor(const schema::KindPtr& kind);

// The AGE cell: "5m", "<unknown>" without a timestamp, "<invalid>" for one in the future.
std::string AgeCell(const json::Value& timestamp, Time now);

}  // namespace muster::apiserver
