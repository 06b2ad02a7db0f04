#include "script.h"

#include <optional>

#include "base/strings.h"
#include "json/write.h"

namespace muster::conformance {
namespace {

std::pair<std::string, std::string> SplitHeader(std::string_view text) {
  const size_t colon = text.find(':');
  return {std::string(text.substr(0, colon)), std::string(Trim(text.substr(colon + 1)))};
}

bool IsHeader(std::string_view text) {
  const size_t colon = text.find(':');
  const size_t space = text.find(' ');
  return colon != std::string_view::npos && (space == std::string_view::npos || colon < space);
}

class Parser {
 public:
  std::vector<Step> Parse(std::string_view text, std::string& error) {
    for (std::string_view line : Split(text, '\n')) {
      ++line_;
      if (line.starts_with("## ")) {
        title_ = line.substr(3);
      } else if (line.starts_with("> ")) {
        Sent(line.substr(2));
      } else if (line.starts_with("< ")) {
        Expected(line.substr(2));
      } else if (line.starts_with("= ") && !steps_.empty()) {
        const std::vector<std::string_view> words = SplitNonEmpty(line.substr(2), ' ');
        if (words.size() == 2) steps_.back().captures.emplace_back(words[0], words[1]);
      } else if (!line.starts_with('#') && !Trim(line).empty()) {
        if (steps_.empty()) {
          error = "line " + std::to_string(line_) + ": a body before the first request";
          return {};
        }
        std::string& body = answering_ ? steps_.back().expected : steps_.back().body;
        if (!body.empty()) body += '\n';
        body += line;
      }
    }
    return std::move(steps_);
  }

 private:
  Step& NewStep(Step::Type type) {
    answering_ = false;
    Step step;
    step.type = type;
    step.line = line_;
    step.title = title_;
    steps_.push_back(std::move(step));
    return steps_.back();
  }

  void Sent(std::string_view text) {
    if (IsHeader(text) && !steps_.empty() && !answering_) {
      auto header = SplitHeader(text);
      if (header.first == "user") {
        steps_.back().user = header.second;
      } else {
        steps_.back().headers.push_back(std::move(header));
      }
      return;
    }
    std::vector<std::string_view> words = SplitNonEmpty(text, ' ');
    if (words[0] == "WAIT") {
      NewStep(Step::Type::kWait).wait_seconds = static_cast<int>(ParseInt(words[1]).value_or(0));
      return;
    }
    const bool watch = words[0] == "WATCH";
    Step& step = NewStep(watch ? Step::Type::kWatch : Step::Type::kRequest);
    if (watch) {
      step.stream = words[1];
      words.erase(words.begin(), words.begin() + 2);
    }
    step.method = words[0];
    step.target = words.size() > 1 ? words[1] : "/";
  }

  void Expected(std::string_view text) {
    const std::vector<std::string_view> words = SplitNonEmpty(text, ' ');
    if (words[0] == "FRAMES" || words[0] == "ENDED") {
      NewStep(words[0] == "FRAMES" ? Step::Type::kFrames : Step::Type::kEnded).stream = words[1];
    } else if (const std::optional<int64_t> status = ParseInt(words[0])) {
      steps_.back().status = static_cast<int>(*status);
    } else {
      steps_.back().expected_headers.push_back(SplitHeader(text));
    }
    answering_ = true;
  }

  int line_ = 0;
  bool answering_ = false;
  std::string title_;
  std::vector<Step> steps_;
};

}  // namespace

std::vector<Step> ParseScript(std::string_view text, std::string& error) {
  return Parser().Parse(text, error);
}

std::string Mismatch(const json::Value& expected, const json::Value& actual,
                     const std::string& path) {
  const std::string at = path.empty() ? "/" : path;
  if (expected.IsString()) {
    const std::string_view text = expected.AsString();
    if (text == "*") return actual.IsNull() ? at + " is absent" : "";
    if (text.starts_with('~') && actual.IsString() &&
        actual.AsString().find(text.substr(1)) != std::string_view::npos) {
      return "";
    }
  }
  if (expected.IsObject() && actual.IsObject()) {
    for (const auto& [key, value] : expected.members()) {
      if (std::string wrong = Mismatch(value, actual[key], path + "/" + key); !wrong.empty())
        return wrong;
    }
    return "";
  }
  if (expected.IsArray() && actual.IsArray() && expected.size() == actual.size()) {
    for (size_t i = 0; i < expected.size(); ++i) {
      std::string wrong = Mismatch(expected.At(i), actual.At(i), path + "/" + std::to_string(i));
      if (!wrong.empty()) return wrong;
    }
    return "";
  }
  if (expected == actual) return "";
  return at + ": expected " + json::Write(expected) + ", got " + json::Write(actual);
}

std::string Substitute(std::string text, const std::map<std::string, std::string>& variables) {
  for (const auto& [name, value] : variables)
    text = ReplaceAll(std::move(text), "${" + name + "}", value);
  return text;
}

}  // namespace muster::conformance
