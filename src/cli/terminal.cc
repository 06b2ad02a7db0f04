#include "cli/terminal.h"

#include <cstdio>

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <fmt/core.h>

namespace muster::cli {
namespace {

class RawTerminalImpl final : public RawTerminal {
 public:
  explicit RawTerminalImpl(const termios& before) : before_(before) {
    termios raw = before;
    cfmakeraw(&raw);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  ~RawTerminalImpl() override { tcsetattr(STDIN_FILENO, TCSANOW, &before_); }

 private:
  termios before_;
};

}  // namespace

std::unique_ptr<RawTerminal> MakeRawTerminal() {
  termios before{};
  if (isatty(STDIN_FILENO) != 1 || tcgetattr(STDIN_FILENO, &before) != 0) return nullptr;
  return std::make_unique<RawTerminalImpl>(before);
}

TerminalSize GetTerminalSize() {
  winsize size{};
  if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {};
  return {size.ws_col, size.ws_row};
}

bool AskYesNo(const std::string& question, bool otherwise) {
  fmt::print(stderr, "{} [{}] ", question, otherwise ? "Y/n" : "y/N");
  fflush(stderr);
  char line[64] = "";
  if (fgets(line, sizeof line, stdin) == nullptr) return otherwise;
  if (line[0] == 'y' || line[0] == 'Y') return true;
  if (line[0] == 'n' || line[0] == 'N') return false;
  return otherwise;
}

}  // namespace muster::cli
