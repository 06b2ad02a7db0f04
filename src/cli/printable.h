// src/cli/printable.h
//
// What others wrote into an object, for a terminal: its control characters would move the cursor,
// or make a line look like one of ours.
//
// Thread: any (pure function).

#pragma once

#include <string>
#include <string_view>

namespace muster::cli {

// With its control characters written out: "a\nb", "\x1b[2J".
std::string Printable(std::string_view text);
// A text of several lines, which stay.
std::string PrintableLines(std::string_view text);

}  // namespace muster::cli
