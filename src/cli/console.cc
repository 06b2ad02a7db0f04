#include "cli/console.h"

#include <cstdio>
#include <cstdlib>

#include <sys/ioctl.h>
#include <unistd.h>

namespace muster::cli {
namespace {

constexpr int kDefaultWidth = 100;

const char* CodeOf(Colour colour) {
  switch (colour) {
    case Colour::kPlain:
      return "";
    case Colour::kBold:
      return "1";
    case Colour::kDim:
      return "2";
    case Colour::kRed:
      return "31";
    case Colour::kGreen:
      return "32";
    case Colour::kYellow:
      return "33";
    case Colour::kBlue:
      return "34";
    case Colour::kMagenta:
      return "35";
    case Colour::kCyan:
      return "36";
  }
  return "";
}

void WriteAll(FILE* file, std::string_view text) {
  fwrite(text.data(), 1, text.size(), file);
  fflush(file);
}

}  // namespace

Console::Console() {
  out_is_terminal_ = isatty(STDOUT_FILENO) == 1;
  err_is_terminal_ = isatty(STDERR_FILENO) == 1;
  const char* no_colour = std::getenv("NO_COLOR");
  colour_ = out_is_terminal_ && (no_colour == nullptr || *no_colour == '\0');
}

void Console::Out(std::string_view text) {
  if (capturing_) {
    out += text;
    return;
  }
  ClearStatusLine();
  WriteAll(stdout, text);
}

void Console::Err(std::string_view text) {
  std::string line(text);
  line += '\n';
  if (capturing_) {
    err += line;
    return;
  }
  ClearStatusLine();
  WriteAll(stderr, line);
}

void Console::StatusLine(const std::string& text) {
  if (!err_is_terminal_ || capturing_ || text == status_line_) return;
  ClearStatusLine();
  const auto room = static_cast<size_t>(width() > 4 ? width() - 1 : kDefaultWidth);
  status_line_ = text;
  WriteAll(stderr, text.size() > room ? text.substr(0, room - 3) + "..." : text);
}

void Console::ClearStatusLine() {
  if (status_line_.empty()) return;
  status_line_.clear();
  WriteAll(stderr, "\r\033[K");
}

std::string Console::Paint(Colour colour, std::string_view text) const {
  if (!colour_ || colour == Colour::kPlain) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", CodeOf(colour), text);
}

int Console::width() const {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kDefaultWidth;
}

}  // namespace muster::cli
