// src/cli/terminal.h
//
// The terminal as a program in a pod sees it: raw mode, size, and questions to the user.
//
// Thread: the main thread. RawTerminal restores the terminal when it is destroyed.

#pragma once

#include <memory>
#include <string>

namespace muster::cli {

class RawTerminal {
 public:
  virtual ~RawTerminal() = default;
};
// Standard input passes every key on; null if it is no terminal.
std::unique_ptr<RawTerminal> MakeRawTerminal();

struct TerminalSize {
  int columns = 80;
  int rows = 24;
};
TerminalSize GetTerminalSize();

// Asks on standard error and reads a line. Enter alone, and end of input, give `otherwise`.
bool AskYesNo(const std::string& question, bool otherwise);

}  // namespace muster::cli
