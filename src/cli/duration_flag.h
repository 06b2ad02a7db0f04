// src/cli/duration_flag.h
//
// Durations as kubectl's flags take them: "30s", "1m30s", "500ms", "0".
//
// Thread: any (pure function).

#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace muster::cli {

// Negative values mean "for ever" upstream: they give a week. Invalid names the flag.
Result<Duration> ParseDurationFlag(std::string_view flag, std::string_view text);
// Of what has an end: neither negative nor more than a week.
Result<Duration> ParseSpanFlag(std::string_view flag, std::string_view text);

}  // namespace muster::cli
