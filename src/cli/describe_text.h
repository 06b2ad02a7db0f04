// src/cli/describe_text.h
//
// Objects as indented text for people: what `muster describe` prints before the events.
//
// Thread: any (pure functions).

#pragma once

#include <string>

#include "base/time.h"
#include "json/value.h"

namespace muster::cli {

// Pods, nodes and jobs have texts of their own; everything else is shown field by field.
std::string DescribeObject(const json::Value& object, Time now);
// The table below; "<none>" without events.
std::string DescribeEvents(const json::Value& events, Time now);

}  // namespace muster::cli
