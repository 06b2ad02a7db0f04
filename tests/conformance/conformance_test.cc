// Runs every *.test file of a folder (see script.h) and every *.rows file below it (see rows.h)
// against an API server in this process.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "base/log.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/patch.h"
#include "rows.h"
#include "schema/protobuf_codec.h"
#include "script.h"
#include "test_server.h"

namespace muster::conformance {
namespace {

// "6b 38" or "6b38"; anything that is no hexadecimal digit is skipped.
std::string BytesOfHex(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string bytes;
  int high = -1;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) continue;
    if (high >= 0) bytes += static_cast<char>(high * 16 + static_cast<int>(digit));
    high = high >= 0 ? -1 : static_cast<int>(digit);
  }
  return bytes;
}

// One server and the streams that are open on it.
class World {
 public:
  void Run(const Step& step) {
    switch (step.type) {
      case Step::Type::kRequest:
        Check(step, *Send(step));
        break;
      case Step::Type::kWatch:
        streams_[step.stream] = Send(step);
        CheckHead(step, *streams_[step.stream]);
        break;
      case Step::Type::kFrames:
        CheckFrames(step);
        break;
      case Step::Type::kEnded:
        server_.loop().RunReady();
        EXPECT_TRUE(streams_[step.stream] != nullptr && streams_[step.stream]->ended)
            << "the stream goes on";
        break;
      case Step::Type::kWait:
        server_.loop().RunFor(seconds(step.wait_seconds));
        break;
    }
  }

 private:
  using WriterPtr = TestServer::WriterPtr;

  std::string Body(const Step& step, net::Request& request) {
    std::string body = ExpandRepeats(Substitute(step.body, variables_));
    if (body.starts_with("yaml ")) return body.substr(5);
    if (body.starts_with("hex ")) return BytesOfHex(body.substr(4));
    if (!body.starts_with("protobuf ")) {
      if (!body.empty() && !request.headers.Has("Content-Type"))
        request.headers.Add("Content-Type", "application/json");
      return body;
    }
    request.headers.Set("Content-Type", std::string(schema::kProtobufMediaType));
    const Result<json::Value> object = json::Parse(body.substr(9));
    if (!object) ADD_FAILURE() << object.error().ToString();
    const Result<std::string> bytes = schema::EncodeProtobuf(object.value_or(json::Value()));
    if (!bytes) ADD_FAILURE() << bytes.error().ToString();
    return bytes.value_or("");
  }

  WriterPtr Send(const Step& step) {
    net::Request request;
    request.method = step.method;
    request.target = Substitute(step.target, variables_);
    for (const auto& [name, value] : step.headers)
      request.headers.Add(name, Substitute(value, variables_));
    request.body = Body(step, request);
    return server_.Send(std::move(request), step.user);
  }

  void CheckHead(const Step& step, const apiserver::FakeWriter& writer) {
    EXPECT_EQ(writer.status, step.status) << writer.body;
    for (const auto& [name, value] : step.expected_headers) {
      const auto& list = writer.headers.list();
      const bool found = std::ranges::any_of(list, [&](const auto& header) {
        return EqualsIgnoreCase(header.first, name) && (value == header.second || (value == "*"));
      });
      EXPECT_TRUE(found) << "no header " << name << ": " << value << " (found "
                         << writer.headers.Get(name) << ")";
    }
    if (std::ranges::none_of(step.expected_headers,
                             [](const auto& one) { return one.first == "Warning"; })) {
      EXPECT_EQ(writer.headers.Get("Warning"), "") << "an unexpected warning";
    }
  }

  void Check(const Step& step, const apiserver::FakeWriter& writer) {
    CheckHead(step, writer);
    const std::string expected = Substitute(step.expected, variables_);
    if (expected.starts_with("text ")) {
      EXPECT_NE(writer.body.find(expected.substr(5)), std::string::npos) << writer.body;
      return;
    }
    if (expected.empty() && step.captures.empty()) return;
    json::ParseNotes notes;
    const Result<json::Value> actual = json::Parse(writer.body, &notes);
    ASSERT_TRUE(actual.has_value()) << writer.body;
    // kubectl refuses an OpenAPI document with a key that occurs twice.
    EXPECT_TRUE(notes.duplicate_keys.empty()) << notes.duplicate_keys[0];
    CheckJson(expected, *actual);
    for (const auto& [name, pointer] : step.captures) {
      const json::Value* value = json::FindPointer(*actual, pointer);
      if (value == nullptr) {
        ADD_FAILURE() << "nothing at " << pointer;
        continue;
      }
      variables_[name] = value->IsString() ? value->Str() : std::string(value->NumberToken());
    }
  }

  static void CheckJson(const std::string& expected_text, const json::Value& actual) {
    if (expected_text.empty()) return;
    const Result<json::Value> expected = json::Parse(expected_text);
    ASSERT_TRUE(expected.has_value()) << expected.error().ToString() << "\n" << expected_text;
    EXPECT_EQ(Mismatch(*expected, actual), "");
  }

  void CheckFrames(const Step& step) {
    server_.loop().RunReady();
    const WriterPtr& writer = streams_[step.stream];
    ASSERT_TRUE(writer != nullptr) << "no stream " << step.stream;
    json::Array frames;
    for (std::string_view line : SplitNonEmpty(writer->body, '\n')) {
      const Result<json::Value> frame = json::Parse(line);
      ASSERT_TRUE(frame.has_value()) << line;
      frames.push_back(*frame);
    }
    writer->body.clear();
    CheckJson(Substitute(step.expected, variables_), json::Value(std::move(frames)));
  }

  TestServer server_;
  std::map<std::string, WriterPtr> streams_;
  std::map<std::string, std::string> variables_;
};

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class ScriptTest : public testing::Test {
 public:
  explicit ScriptTest(std::filesystem::path path) : path_(std::move(path)) {}

  void TestBody() override {
    std::string error;
    const std::vector<Step> steps = ParseScript(ReadText(path_), error);
    ASSERT_EQ(error, "");
    ASSERT_FALSE(steps.empty());
    World world;
    for (const Step& step : steps) {
      SCOPED_TRACE(path_.filename().string() + ":" + std::to_string(step.line) + ": " + step.title);
      world.Run(step);
      if (HasFatalFailure()) return;
    }
  }

 private:
  std::filesystem::path path_;
};

// How many rows of each kind passed: refused and accepted ones, and those that state all defaults.
struct RowCounts {
  int validation = 0, defaulting = 0;
};

std::map<std::string, RowCounts>& CountsByKind() {
  static std::map<std::string, RowCounts> counts;
  return counts;
}

class RowsTest : public testing::Test {
 public:
  explicit RowsTest(std::filesystem::path path) : path_(std::move(path)) {}

  void TestBody() override {
    std::string error;
    const std::vector<Row> rows = ParseRows(ReadText(path_), error);
    ASSERT_EQ(error, "");
    ASSERT_FALSE(rows.empty());
    for (const Row& row : rows) {
      SCOPED_TRACE(path_.filename().string() + ":" + std::to_string(row.line));
      RunRow(row);
      RowCounts& counts = CountsByKind()[row.kind];
      ++(row.exact ? counts.defaulting : counts.validation);
    }
  }

 private:
  std::filesystem::path path_;
};

void PrintCounts() {
  std::string by_kind;
  RowCounts total;
  for (const auto& [kind, counts] : CountsByKind()) {
    by_kind += fmt::format(" {} {}+{}", kind, counts.validation, counts.defaulting);
    total.validation += counts.validation;
    total.defaulting += counts.defaulting;
  }
  if (by_kind.empty()) return;
  fmt::print("result: {} validation rows + {} defaulting rows:{}\n", total.validation,
             total.defaulting, by_kind);
}

template <class TestOfPath>
void Register(const char* suite, const std::filesystem::path& folder, std::string_view extension) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == extension) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  for (const std::filesystem::path& path : paths) {
    testing::RegisterTest(suite, path.stem().c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [path]() -> testing::Test* { return new TestOfPath(path); });
  }
}

}  // namespace

int Main(const std::filesystem::path& folder) {
  Register<ScriptTest>("Conformance", folder, ".test");
  Register<RowsTest>("Rows", folder / "validation", ".rows");
  const int result = RUN_ALL_TESTS();
  PrintCounts();
  return result;
}

}  // namespace muster::conformance

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  muster::SetLogLevel(muster::LogLevel::kError);
  return muster::conformance::Main(argc > 1 ? argv[1] : "tests/conformance");
}
