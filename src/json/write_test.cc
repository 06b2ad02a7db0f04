#include "json/write.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::json {
namespace {

TEST(Write, EscapesAsGoDoes) {
  EXPECT_EQ(Write(Value("<a>&\"\\/\n\t\b\x01\x7f\u2028é😀")),
            "\"\\u003ca\\u003e\\u0026\\\"\\\\/\\n\\t\\b\\u0001\x7f\\u2028é😀\"");
  EXPECT_EQ(Write(Value("bad \xff byte")), "\"bad \\ufffd byte\"");
}

TEST(Write, PrettyIsGosIndent) {
  EXPECT_EQ(
      WritePretty(Obj({{"a", List({1, Obj({{"b", nullptr}})})}, {"c", Obj()}, {"d", List()}})),
      "{\n    \"a\": [\n        1,\n        {\n            \"b\": null\n        }\n    ],\n    "
      "\"c\": {},\n    \"d\": []\n}");
}

TEST(WriteYaml, QuotesWhatWouldReadAsSomethingElse) {
  const Value value =
      Obj({{"a", "yes"},   {"b", "1"},    {"c", "null"}, {"d", "2026-01-02T03:04:05Z"},
           {"e", ""},      {"f", "a: b"}, {"g", "- x"},  {"h", "#no"},
           {"i", "it's"},  {"j", "'q'"},  {"k", "1:30"}, {"l", " pad"},
           {"m", "tab\t"}, {"n", "100m"}, {"o", "~"},    {"p", "a #b"},
           {"q", "{x}"},   {"r", "😀"},   {"s", "end:"}, {"t", "0x1g"},
           {"u", "-"},     {"v", "*"},    {"w", "a,b"},  {"x1", "%d"},
           {"y", true},    {"z", 1.5}});
  EXPECT_EQ(WriteYaml(value),
            "a: \"yes\"\nb: \"1\"\nc: \"null\"\nd: \"2026-01-02T03:04:05Z\"\ne: \"\"\nf: 'a: "
            "b'\ng: '- x'\nh: '#no'\ni: it's\n"
            "j: '''q'''\nk: \"1:30\"\nl: ' pad'\nm: \"tab\\t\"\n\"n\": 100m\no: \"~\"\np: 'a "
            "#b'\nq: '{x}'\nr: \"\\U0001F600\"\n"
            "s: 'end:'\nt: 0x1g\nu: '-'\nv: '*'\nw: a,b\nx1: '%d'\n\"y\": true\nz: 1.5\n");
}

TEST(WriteYaml, WritesTextBlocks) {
  EXPECT_EQ(WriteYaml(Obj({{"a", "one\n  two\n"},
                           {"b", "no end\nhere"},
                           {"c", "keep\n\n"},
                           {"d", " lead\nx"},
                           {"e", "trail \nx"}})),
            "a: |\n  one\n    two\nb: |-\n  no end\n  here\nc: |+\n  keep\n\nd: |2-\n   lead\n  "
            "x\ne: \"trail \\nx\"\n");
}

TEST(WriteYaml, LaysOutNestedLists) {
  EXPECT_EQ(
      WriteYaml(Obj({{"l", List({List({1, 2}), Obj({{"b", List({"x"})}, {"a", Obj({{"c", 1}})}}),
                                 "s", List(), Obj()})}})),
      "l:\n- - 1\n  - 2\n- a:\n    c: 1\n  b:\n  - x\n- s\n- []\n- {}\n");
  EXPECT_EQ(WriteYaml(List({1, "a"})), "- 1\n- a\n");
  EXPECT_EQ(WriteYaml(Value("text")), "text\n");
  EXPECT_EQ(WriteYaml(Value("two\nlines}")), "|-\n  two\n  lines}\n");
  EXPECT_EQ(WriteYaml(Obj()), "{}\n");
}

TEST(WriteYaml, SortsKeysNaturally) {
  EXPECT_EQ(WriteYaml(Obj({{"a10", 1},
                           {"a2", 2},
                           {"B", 3},
                           {"b.c", 4},
                           {"b/c", 5},
                           {"bc", 6},
                           {"0", 7},
                           {"a", 8}})),
            "\"0\": 7\nB: 3\na: 8\na2: 2\na10: 1\nb.c: 4\nb/c: 5\nbc: 6\n");
}

TEST(WriteYaml, FoldsLongLinesAtSpaces) {
  const std::string word = "0123456789 ";
  std::string text = "x";
  for (int i = 0; i < 10; ++i) text += word;
  text += "end";
  const std::string yaml = WriteYaml(Obj({{"message", text}}));
  EXPECT_EQ(
      yaml,
      "message: x0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789\n"
      "  0123456789 0123456789 0123456789 end\n");
  EXPECT_EQ(ParseYaml(yaml)->at(0)["message"].AsString(), text);
}

TEST(WriteYaml, ReadsBackWhatItWrote) {
  for (const std::string_view text : {"a\n",    "\n",
                                      "\n\n",   " \n",
                                      "a\r\nb", "\xe2\x80\xa8",
                                      "a  b",   "\"",
                                      "\\",     "key: value # no",
                                      "-\n-",   "\u0085",
                                      "\ufeff", "...",
                                      "--- a",  "? x",
                                      "!tag",   "&a",
                                      "@",      "`",
                                      "=",      "<<",
                                      "1_0",    "0o7",
                                      "+.inf"}) {
    const Value value = Obj({{std::string(text), List({text, Obj({{"v", text}})})}});
    const auto documents = ParseYaml(WriteYaml(value));
    ASSERT_TRUE(documents.has_value()) << WriteYaml(value);
    EXPECT_EQ(documents->at(0), value) << WriteYaml(value);
  }
}

}  // namespace
}  // namespace muster::json
