// $(VAR) against a second reading of the rules, one character at a time: variables as "NAME=VALUE"
// lines, an empty line, then the text.

#include "agent/pod_workers/expansion.h"
#include "base/check.h"
#include "base/fuzz_test_support.h"

namespace {

using muster::agent::EnvironmentMap;

std::string ExpandAgain(std::string_view text, const EnvironmentMap& variables) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    const size_t close = text.find(')', i);
    if (text[i] != '$' || i + 1 == text.size()) {
      out += text[i];
    } else if (next == '(' && close != std::string_view::npos) {
      const std::string name(text.substr(i + 2, close - i - 2));
      const auto variable = variables.find(name);
      out += variable == variables.end() ? std::string(text.substr(i, close - i + 1))
                                         : variable->second;
      i = close;
    } else {
      if (next != '$') out += '$';
      out += next;
      ++i;
    }
  }
  return out;
}

}  // namespace

FUZZ_TARGET(expansion, input) {
  muster::FuzzInput lines(input);
  EnvironmentMap variables;
  for (std::string_view line = lines.Line(); !line.empty(); line = lines.Line()) {
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos)
      variables[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  CHECK(muster::agent::Expand(lines.Rest(), variables) == ExpandAgain(lines.Rest(), variables));
}
