#include "json/parse.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "json/write.h"

namespace muster::json {
namespace {

std::string RoundTrip(std::string_view text) {
  const Result<Value> value = Parse(text);
  return value ? Write(*value) : value.error().message();
}

TEST(Parse, KeepsNumbersAsWritten) {
  for (const std::string_view number :
       {"0", "-0", "1e400", "1E+3", "0.10", "123456789012345678901234567890", "-1.5e-300",
        "18446744073709551616", "9007199254740993"}) {
    EXPECT_EQ(RoundTrip(number), number);
  }
}

TEST(Parse, KeepsKeyOrderAndReportsDuplicates) {
  ParseNotes notes;
  const Result<Value> value =
      Parse(R"({"z":1,"a":2,"spec":{"containers":[{"name":"x"},{"name":"y","image":"i",)"
            R"("name":"z"}]},"a":3})",
            &notes);
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ(Write(*value), R"({"z":1,"a":3,"spec":{"containers":[{"name":"x"},{"name":"z",)"
                           R"("image":"i"}]}})");
  EXPECT_EQ(notes.duplicate_keys, (std::vector<std::string>{"spec.containers[1].name", "a"}));
}

TEST(Parse, FindsDuplicatesInLargeObjects) {
  std::string text = "{";
  for (int i = 0; i < 100; ++i) text += "\"k" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  text += "\"k50\":\"last\",\"k50\":\"really\"}";
  ParseNotes notes;
  const Result<Value> value = Parse(text, &notes);
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ((*value)["k50"].AsString(), "really");
  EXPECT_EQ(value->size(), 100u);
  EXPECT_EQ(notes.duplicate_keys, std::vector<std::string>{"k50"});
}

TEST(Parse, DecodesEscapes) {
  EXPECT_EQ(Parse(R"("a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00")")->AsString(), "a\"\\/\b\f\n\r\té😀");
  EXPECT_EQ(Parse(R"("\ud800x\udc00\ud83d\u0041")")->AsString(), "\uFFFDx\uFFFD\uFFFDA");
  EXPECT_EQ(Parse("\"a\xff\xc0z\"")->AsString(), "a\uFFFD\uFFFDz");
}

TEST(Parse, SaysWhereAndWhat) {
  const auto message = [](std::string_view text) {
    const Result<Value> value = Parse(text);
    EXPECT_FALSE(value.has_value()) << text;
    return value ? "" : value.error().message();
  };
  EXPECT_EQ(message("{\"a\":1,\n  \"b\" 2}"),
            "invalid JSON at line 2 column 7: expected ':' after a key, found \"2\"");
  EXPECT_EQ(message(""),
            "invalid JSON at line 1 column 1: expected a value, found the end of the text");
  EXPECT_EQ(message("[1,]"), "invalid JSON at line 1 column 4: expected a value, found \"]\"");
  EXPECT_EQ(message("{\"é\":tru}"),
            "invalid JSON at line 1 column 6: expected a value, found \"t\"");
  EXPECT_EQ(message("{} x"),
            "invalid JSON at line 1 column 4: expected nothing after the document, found \"x\"");
  for (const std::string_view bad :
       {"01", "1.", "-", "+1", ".5", "1e", "\"\n\"", "\"\\x\"", "\"\\u12g4\"", "{a:1}", "nul",
        "[1 2]", "{\"a\":1,}", "\"abc", "[", "{\"a\"", "\x01", "NaN"}) {
    message(bad);
  }
}

TEST(Parse, LimitsDepth) {
  EXPECT_TRUE(Parse(std::string(kMaxDepth, '[') + std::string(kMaxDepth, ']')).has_value());
  const Result<Value> deep =
      Parse(std::string(kMaxDepth + 1, '[') + std::string(kMaxDepth + 1, ']'));
  ASSERT_FALSE(deep.has_value());
  EXPECT_EQ(deep.error().reason(), Reason::kBadRequest);
}

std::vector<Value> Yaml(std::string_view text) {
  Result<std::vector<Value>> documents = ParseYaml(text);
  EXPECT_TRUE(documents.has_value()) << (documents ? "" : documents.error().message());
  return documents.value_or(std::vector<Value>());
}

TEST(ParseYaml, LeavesOutEmptyDocumentsOfEitherForm) {
  EXPECT_EQ(Yaml("---\n---\na: 1\n---\nnull\n---\n~\n").size(), 1u);
  EXPECT_EQ(Yaml("{\"a\":1}\nnull\n{}").size(), 2u);
  EXPECT_EQ(Yaml("null").size(), 0u);
}

TEST(ParseYaml, ReadsScalarsAsTheGoLibraryDoes) {
  const Value value =
      Yaml(
          "a: yes\nb: off\nc: 'yes'\nd: \"1\"\ne: 017\nf: 0o17\ng: 0x1F\nh: 1_000\ni: 1.50\nj: "
          "~\nk:\nl: .5\nm: 1e3\n"
          "nn: 2026-01-02\no: 1:30\np: 0b101\nq: 08\nr: y\ns: 123456789012345678901234567890\nt: "
          "-017\nu: .inf\nv: 1.2.3\nw: 1.\nx: +5\n"
          "y1: !!str 5\nz: 100m\n")
          .at(0);
  EXPECT_EQ(Write(value),
            R"({"a":true,"b":false,"c":"yes","d":"1","e":15,"f":15,"g":31,"h":1000,"i":1.50,)"
            R"("j":null,"k":null,"l":0.5,"m":1e3,)"
            R"("nn":"2026-01-02","o":"1:30","p":5,"q":8,"r":true,)"
            R"("s":123456789012345678901234567890,"t":-15,"u":".inf","v":"1.2.3",)"
            R"("w":1,"x":5,"y1":"5","z":"100m"})");
}

TEST(ParseYaml, ReadsAStreamAndSkipsEmptyDocuments) {
  const std::vector<Value> documents =
      Yaml("# comment\n---\nkind: A\n---\n---\nkind: B\n...\n---\n# nothing\n");
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_EQ(documents[0]["kind"].AsString(), "A");
  EXPECT_EQ(documents[1]["kind"].AsString(), "B");
  EXPECT_EQ(Yaml("{\"a\": 1}\n{\"a\": 2}").size(), 2u);
  EXPECT_EQ(Write(Yaml("{a: [1, x], b: {c: }}").at(0)), R"({"a":[1,"x"],"b":{"c":null}})");
  EXPECT_TRUE(Yaml("").empty());
  EXPECT_EQ(Write(Yaml("1: a\ntrue: b\nn: c\n").at(0)), R"({"1":"a","true":"b","false":"c"})");
}

TEST(ParseYaml, ReadsBlockScalars) {
  EXPECT_EQ(Yaml("a: |\n  one\n   two\n\n  three\nb: >-\n  x\n  y\n").at(0),
            Obj({{"a", "one\n two\n\nthree\n"}, {"b", "x y"}}));
}

TEST(ParseYaml, ExpandsAnchorsAndMergeKeys) {
  EXPECT_EQ(
      Write(Yaml("base: &b {x: 1, z: 2}\nuse:\n  <<: *b\n  z: 3\nagain: *b\n\"<<\": 1\n").at(0)),
      R"({"base":{"x":1,"z":2},"use":{"z":3,"x":1},"again":{"x":1,"z":2},"\u003c\u003c":1})");
  EXPECT_EQ(Yaml("- &a {x: 1}\n- &b {x: 2, z: 3}\n- <<: [*a, *b]\n").at(0).At(2),
            Obj({{"x", 1}, {"z", 3}}));
}

TEST(ParseYaml, BoundsAliases) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 9; ++j) text += before + ", ";
    text += before + "]\n";
  }
  const Result<std::vector<Value>> documents = ParseYaml(text);
  ASSERT_FALSE(documents.has_value());
  EXPECT_NE(documents.error().message().find("excessive aliasing"), std::string::npos);
  EXPECT_FALSE(ParseYaml("a: &a [*a]").has_value());
}

TEST(ParseYaml, ReportsDuplicatesAndBadInput) {
  ParseNotes notes;
  const auto documents = ParseYaml("spec:\n  containers:\n  - name: a\n    name: b\n", &notes);
  ASSERT_TRUE(documents.has_value());
  EXPECT_EQ(documents->at(0)["spec"]["containers"].At(0)["name"].AsString(), "b");
  EXPECT_EQ(notes.duplicate_keys, std::vector<std::string>{"spec.containers[0].name"});
  const auto bad = ParseYaml("a: b\n c: d: e\n");
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().reason(), Reason::kBadRequest);
  EXPECT_TRUE(bad.error().message().starts_with("invalid YAML at line 2")) << bad.error().message();
  EXPECT_FALSE(ParseYaml("? [a, b]\n: c\n").has_value());
  EXPECT_FALSE(ParseYaml(std::string(2000, '[')).has_value());
  const auto deep = ParseYaml("a: " + std::string(10'000, '[') + std::string(10'000, ']'));
  ASSERT_FALSE(deep.has_value());
  EXPECT_NE(deep.error().message().find("levels of nesting"), std::string::npos)
      << deep.error().message();
  for (const char* stray : {"}", "]", "a: 1\n}", "--- }\n", "- a\n]\n"}) {
    const auto refused = ParseYaml(stray);
    ASSERT_FALSE(refused.has_value()) << stray;
    EXPECT_EQ(refused.error().message().find("aliasing"), std::string::npos) << stray;
  }
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Upstream's own encodings of every built-in kind, JSON and YAML of one tree side by side.
TEST(Golden, JsonAndYamlOfEveryKindAgreeWithUpstreamByteForByte) {
  const std::filesystem::path archive = "../shared/vectors/k8s-api-testdata.tar.xz";
  if (!std::filesystem::exists(archive)) GTEST_SKIP() << "golden vectors not present: " << archive;
  const std::string directory = testing::TempDir() + "muster-json-golden-vectors";
  std::filesystem::create_directories(directory);
  const std::string unpack = "tar -C '" + directory + "' -xJf '" + archive.string() + "'";
  ASSERT_EQ(std::system(unpack.c_str()), 0) << "unpacking needs tar and xz";
  const std::filesystem::path folder = directory + "/testdata/HEAD";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const std::string text = ReadFile(entry.path());
    const Result<Value> value = Parse(text);
    ASSERT_TRUE(value.has_value()) << entry.path();
    EXPECT_EQ(WritePretty(*value, 2), text) << entry.path();
    EXPECT_EQ(*Parse(Write(*value)), *value) << entry.path();
    std::filesystem::path yaml_path = entry.path();
    const std::string yaml = ReadFile(yaml_path.replace_extension(".yaml"));
    EXPECT_EQ(WriteYaml(*value), yaml) << entry.path();
    const auto documents = ParseYaml(yaml);
    ASSERT_TRUE(documents.has_value()) << yaml_path;
    EXPECT_EQ(documents->at(0), *value) << yaml_path;
    ++files;
  }
  EXPECT_GT(files, 150);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace muster::json
