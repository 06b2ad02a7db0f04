#include "agent/pod_workers/expansion.h"

namespace muster::agent {

std::string Expand(std::string_view text, const EnvironmentMap& variables) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const size_t dollar = text.find('$', at);
    if (dollar == std::string_view::npos || dollar + 1 == text.size()) break;
    out += text.substr(at, dollar - at);
    const char next = text[dollar + 1];
    const size_t close = next == '(' ? text.find(')', dollar + 2) : std::string_view::npos;
    if (close != std::string_view::npos) {
      const std::string name(text.substr(dollar + 2, close - dollar - 2));
      const auto found = variables.find(name);
      out += found == variables.end() ? "$(" + name + ")" : found->second;
      at = close + 1;
    } else {
      // "$$" is one dollar sign; a dollar sign before anything else is kept with what follows it.
      out += next == '$' ? std::string("$") : std::string{'$', next};
      at = dollar + 2;
    }
  }
  out += text.substr(at);
  return out;
}

}  // namespace muster::agent
