// src/cli/console.h
//
// Console: where a command's words go. Colour and the live status line appear only on a terminal.
//
// Life cycle: one per run. Tests use the capturing one.
// Thread:     the loop thread.

#pragma once

#include <string>
#include <string_view>

#include <fmt/core.h>

namespace muster::cli {

enum class Colour { kPlain, kBold, kDim, kRed, kGreen, kYellow, kBlue, kMagenta, kCyan };

class Console {
 public:
  // Standard output and standard error; terminals are recognized, NO_COLOR is respected.
  Console();
  // Keeps everything in `out` and `err`; no terminal.
  struct Capture {};
  explicit Console(Capture) : capturing_(true) {}

  void Out(std::string_view text);
  void Err(std::string_view text);  // a line
  template <class... Args>
  void Print(fmt::format_string<Args...> format, Args&&... args) {
    Out(fmt::format(format, std::forward<Args>(args)...));
  }

  // One line on standard error that the next one replaces; "" takes it away. Nothing unless on a
  // terminal.
  void StatusLine(const std::string& text);

  std::string Paint(Colour colour, std::string_view text) const;  // for Out
  bool out_is_terminal() const { return out_is_terminal_; }
  bool err_is_terminal() const { return err_is_terminal_; }
  int width() const;

  std::string out, err;  // when capturing

 private:
  void ClearStatusLine();

  bool capturing_ = false;
  bool out_is_terminal_ = false;
  bool err_is_terminal_ = false;
  bool colour_ = false;
  std::string status_line_;
};

}  // namespace muster::cli
