// src/base/go_duration.h
//
// Durations as Go writes them: "30s", "1h30m", "250ms".
//
// Thread: any (pure).

#pragma once

#include <optional>
#include <string_view>

#include "base/time.h"

namespace muster {

// nullopt for anything else, the empty text and negative ones included.
std::optional<Duration> ParseGoDuration(std::string_view text);

}  // namespace muster
