// src/cli/object_printer.h
//
// Whole objects as JSON, YAML or names, as `-o` asks.
//
// Thread: any (pure functions).

#pragma once

#include <string>
#include <vector>

#include "cli/resource_finder.h"
#include "json/value.h"

namespace muster::cli {

// One object as it is, several as a v1 List.
std::string PrintObjects(const std::vector<json::Value>& objects, bool always_list,
                         std::string_view format);

}  // namespace muster::cli
