#include "rows.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "base/strings.h"
#include "json/parse.h"
#include "json/patch.h"
#include "json/write.h"
#include "script.h"
#include "test_server.h"

namespace muster::conformance {
namespace {

struct Line {
  int number = 0;
  std::string text;
};
using Block = std::vector<Line>;

std::vector<Block> SplitBlocks(std::string_view text) {
  std::vector<Block> blocks(1);
  int number = 0;
  for (std::string_view line : Split(text, '\n')) {
    ++number;
    if (line.starts_with('#')) continue;
    if (Trim(line).empty()) {
      if (!blocks.back().empty()) blocks.emplace_back();
    } else if (line.starts_with(' ') && !blocks.back().empty()) {
      blocks.back().back().text += line;
    } else {
      blocks.back().push_back({number, std::string(line)});
    }
  }
  if (blocks.back().empty()) blocks.pop_back();
  return blocks;
}

// "word rest" -> both; the rest is "" when there is none.
std::pair<std::string_view, std::string_view> FirstWord(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) return {line, {}};
  return {line.substr(0, space), Trim(line.substr(space))};
}

class Parser {
 public:
  std::vector<Row> Parse(std::string_view text, std::string& error) {
    for (const Block& block : SplitBlocks(text)) {
      if (!IsSetting(block[0].text)) {
        ReadRow(block);
      } else {
        for (const Line& line : block) Setting(line);
      }
      if (!error_.empty()) break;
    }
    error = error_;
    return error_.empty() ? std::move(rows_) : std::vector<Row>();
  }

 private:
  static bool IsSetting(std::string_view line) {
    constexpr std::string_view kSettings[] = {"kind",   "given",  "create",
                                              "update", "status", "base"};
    return std::ranges::find(kSettings, FirstWord(line).first) != std::end(kSettings);
  }

  void Fail(const Line& line, std::string_view why) {
    if (error_.empty()) error_ = fmt::format("line {}: {}", line.number, why);
  }

  json::Value ReadJson(const Line& line, std::string_view text) {
    const Result<json::Value> value = json::Parse(ExpandRepeats(text));
    if (!value) Fail(line, value.error().message());
    return value.value_or(json::Value());
  }

  void Setting(const Line& line) {
    const auto [word, rest] = FirstWord(line.text);
    if (word == "kind") {
      setting_.kind = rest;
    } else if (word == "base") {
      setting_.base = ReadJson(line, rest);
    } else if (word == "given") {
      const auto [path, object] = FirstWord(rest);
      if (path.empty()) setting_.given.clear();
      if (!path.empty()) setting_.given.emplace_back(path, object);
    } else {
      setting_.path = rest;
      setting_.verb = word == "create"   ? Row::Verb::kCreate
                      : word == "update" ? Row::Verb::kUpdate
                                         : Row::Verb::kStatus;
    }
  }

  void ReadRow(const Block& block) {
    Row row = setting_;
    row.line = block[0].number;
    json::Array operations;
    for (const Line& line : block) {
      const std::string_view text = line.text;
      if (text.starts_with('/')) {
        operations.push_back(Operation(line));
      } else if (text.starts_with('{')) {
        row.base = ReadJson(line, text);
      } else if (text.starts_with("! ")) {
        Refused(line, row);
      } else if (text.starts_with("=")) {
        row.exact = text.starts_with("==");
        row.accepted = ReadJson(line, text.substr(row.exact ? 2 : 1));
      } else {
        Fail(line, "neither a mutation nor an answer");
      }
    }
    if (row.code == 0 && row.accepted.IsNull()) Fail(block[0], "a row without an answer");
    row.patch = json::Value(std::move(operations));
    rows_.push_back(std::move(row));
  }

  json::Value Operation(const Line& line) {
    const auto [pointer, value] = FirstWord(line.text);
    if (value.empty()) return json::Obj({{"op", "remove"}, {"path", pointer}});
    return json::Obj({{"op", "add"}, {"path", pointer}, {"value", ReadJson(line, value)}});
  }

  void Refused(const Line& line, Row& row) {
    std::vector<std::string> parts;
    std::string_view rest = std::string_view(line.text).substr(2);
    const std::optional<int64_t> code = ParseInt(FirstWord(rest).first);
    const size_t fields = code && *code != 422 ? 2 : 3;
    if (code) rest = FirstWord(rest).second;
    while (parts.size() + 1 < fields) {
      const size_t bar = rest.find(" | ");
      if (bar == std::string_view::npos) return Fail(line, "expected REASON | FIELD | MESSAGE");
      parts.emplace_back(Trim(rest.substr(0, bar)));
      rest.remove_prefix(bar + 3);
    }
    row.code = code ? static_cast<int>(*code) : 422;
    std::string field = fields == 3 && parts[1] != "-" ? ExpandRepeats(parts[1]) : "";
    row.refusals.push_back({parts[0], std::move(field), ExpandRepeats(Trim(rest))});
  }

  Row setting_;
  std::vector<Row> rows_;
  std::string error_;
};

net::Request JsonRequest(std::string_view method, std::string_view target,
                         const json::Value& body) {
  net::Request request;
  request.method = method;
  request.target = target;
  request.body = json::Write(body);
  request.headers.Add("Content-Type", "application/json");
  return request;
}

json::Value BodyOf(const apiserver::FakeWriter& writer) {
  const Result<json::Value> body = json::Parse(writer.body);
  EXPECT_TRUE(body.has_value()) << writer.body;
  return body.value_or(json::Value());
}

// The text of an object without what is different for each: where its uid stands in another field,
// as in the labels of a Job, "*" stands instead.
std::string ComparableText(const json::Value& object) {
  const json::Value rest = object.RemovePath({"metadata", "uid"})
                               .RemovePath({"metadata", "resourceVersion"})
                               .RemovePath({"metadata", "creationTimestamp"});
  const std::string uid = object["metadata"]["uid"].Str();
  std::string text = json::Write(json::SortKeys(rest));
  return uid.empty() ? text : ReplaceAll(std::move(text), uid, "*");
}

// `pattern` is the beginning of a text; "..." in it stands for anything.
bool BeginsAs(std::string_view text, std::string_view pattern) {
  constexpr std::string_view kGap = "...";
  size_t gap = pattern.find(kGap);
  if (!text.starts_with(pattern.substr(0, gap))) return false;
  while (gap != std::string_view::npos) {
    pattern.remove_prefix(gap + kGap.size());
    gap = pattern.find(kGap);
    const size_t found = text.find(pattern.substr(0, gap));
    if (found == std::string_view::npos) return false;
    text.remove_prefix(found);
  }
  return true;
}

bool IsRefusal(const Row::Refusal& expected, const json::Value& cause) {
  return cause["reason"].AsString() == expected.reason &&
         cause["field"].AsString() == expected.field &&
         BeginsAs(cause["message"].AsString(), expected.message);
}

// Each expected cause is there and no other.
void CheckCauses(const Row& row, const json::Value& status) {
  const json::Array& causes = status["details"]["causes"].items();
  EXPECT_EQ(causes.size(), row.refusals.size()) << json::Write(status);
  for (const Row::Refusal& expected : row.refusals) {
    const bool found = std::ranges::any_of(
        causes, [&](const json::Value& cause) { return IsRefusal(expected, cause); });
    EXPECT_TRUE(found) << "no cause " << expected.reason << " | " << expected.field << " | "
                       << expected.message << "\nin " << json::Write(status);
  }
  const std::string_view message = status["message"].AsString();
  const std::string name = "\"" + status["details"]["name"].Str() + "\" is invalid: ";
  EXPECT_TRUE(message.starts_with(row.kind) && message.find(name) != std::string_view::npos)
      << "the message does not name the object: " << message;
}

void CheckAnswer(const Row& row, const apiserver::FakeWriter& writer) {
  const json::Value body = BodyOf(writer);
  if (row.code == 0) {
    ASSERT_LT(writer.status, 300) << writer.body;
    if (row.exact) {
      EXPECT_EQ(ComparableText(body), json::Write(json::SortKeys(row.accepted)));
    } else {
      EXPECT_EQ(Mismatch(row.accepted, body), "") << writer.body;
    }
    return;
  }
  ASSERT_EQ(writer.status, row.code) << writer.body;
  if (row.code == 422) return CheckCauses(row, body);
  EXPECT_EQ(body["reason"].AsString(), row.refusals[0].reason) << writer.body;
  EXPECT_NE(body["message"].AsString().find(row.refusals[0].message), std::string_view::npos)
      << "expected " << row.refusals[0].message << "\nin " << writer.body;
}

}  // namespace

std::vector<Row> ParseRows(std::string_view text, std::string& error) {
  return Parser().Parse(text, error);
}

std::string ExpandRepeats(std::string_view text) {
  std::string out;
  while (true) {
    const size_t start = text.find("${");
    const size_t star = start == std::string_view::npos ? start : text.find('*', start);
    const size_t end = star == std::string_view::npos ? star : text.find('}', star);
    if (end == std::string_view::npos) return out.append(text);
    const std::optional<int64_t> times = ParseInt(text.substr(star + 1, end - star - 1));
    out += text.substr(0, start);
    for (int64_t i = 0; i < times.value_or(0); ++i) out += text.substr(start + 2, star - start - 2);
    text.remove_prefix(end + 1);
  }
}

void RunRow(const Row& row) {
  TestServer server;
  for (const auto& [path, object] : row.given) {
    const auto made = server.Send(JsonRequest("POST", path, *json::Parse(object)));
    ASSERT_EQ(made->status, 201) << "given " << path << ": " << made->body;
  }
  json::Value object = row.base;
  std::string target = row.path;
  if (row.verb != Row::Verb::kCreate) {
    const auto made = server.Send(JsonRequest("POST", row.path, row.base));
    ASSERT_EQ(made->status, 201) << "base: " << made->body;
    object = BodyOf(*made);
    target += "/" + object["metadata"]["name"].Str();
    if (row.verb == Row::Verb::kStatus) target += "/status";
  }
  const Result<json::Value> mutated = json::ApplyJsonPatch(object, row.patch);
  ASSERT_TRUE(mutated.has_value()) << mutated.error().ToString();
  const char* method = row.verb == Row::Verb::kCreate ? "POST" : "PUT";
  CheckAnswer(row, *server.Send(JsonRequest(method, target, *mutated)));

  net::Request next;
  next.method = "GET";
  next.target = "/readyz";
  EXPECT_EQ(server.Send(std::move(next))->status, 200) << "the server does not answer any more";
}

}  // namespace muster::conformance
