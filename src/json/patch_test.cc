#include "json/patch.h"

#include <gtest/gtest.h>

#include "json/parse.h"
#include "json/write.h"

namespace muster::json {
namespace {

Value J(std::string_view text) { return *Parse(text); }

std::string Patched(std::string_view document, std::string_view patch) {
  const Result<Value> result = ApplyJsonPatch(J(document), J(patch));
  return result ? Write(*result) : std::string(ReasonName(result.error().reason()));
}

TEST(Pointer, FollowsRfc6901) {
  const Value document = J(R"({"foo":["bar","baz"],"":0,"a/b":1,"m~n":8," ":7})");
  EXPECT_EQ(*FindPointer(document, ""), document);
  EXPECT_EQ(Write(*FindPointer(document, "/foo/1")), "\"baz\"");
  EXPECT_EQ(FindPointer(document, "/")->AsInt(-1), 0);
  EXPECT_EQ(FindPointer(document, "/a~1b")->AsInt(), 1);
  EXPECT_EQ(FindPointer(document, "/m~0n")->AsInt(), 8);
  EXPECT_EQ(FindPointer(document, "/foo/01"), nullptr);
  EXPECT_EQ(FindPointer(document, "/foo/2"), nullptr);
  EXPECT_EQ(FindPointer(document, "foo"), nullptr);
  EXPECT_EQ(FindPointer(document, "/a~2b"), nullptr);
}

TEST(JsonPatch, DoesTheExamplesOfRfc6902AppendixA) {
  EXPECT_EQ(Patched(R"({"foo":"bar"})", R"([{"op":"add","path":"/baz","value":"qux"}])"),
            R"({)"
            R"("foo":"bar","baz":"qux"})");
  EXPECT_EQ(Patched(R"({"foo":["bar","baz"]})", R"([{"op":"add","path":"/foo/1",)"
                                                R"("value":"qux"}])"),
            R"({"foo":["bar","qux","baz"]})");
  EXPECT_EQ(Patched(R"({"baz":"qux","foo":"bar"})", R"([{"op":"remove","path":"/baz"}])"),
            R"({)"
            R"("foo":"bar"})");
  EXPECT_EQ(Patched(R"({"foo":["bar","qux","baz"]})", R"([{"op":"remove",)"
                                                      R"("path":"/foo/1"}])"),
            R"({"foo":["bar","baz"]})");
  EXPECT_EQ(Patched(R"({"baz":"qux","foo":"bar"})", R"([{"op":"replace","path":"/baz",)"
                                                    R"("value":"boo"}])"),
            R"({"baz":"boo","foo":"bar"})");
  EXPECT_EQ(Patched(R"({"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}})",
                    R"([{"op":"move","from":"/foo/waldo","path":"/qux/thud"}])"),
            R"({"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}})");
  EXPECT_EQ(Patched(R"({"foo":["all","grass","cows","eat"]})", R"([{"op":"move","from":"/foo/1",)"
                                                               R"("path":"/foo/3"}])"),
            R"({"foo":["all","cows","eat","grass"]})");
  EXPECT_EQ(Patched(R"({"baz":"qux","foo":["a",2,"c"]})",
                    R"([{"op":"test","path":"/baz",)"
                    R"("value":"qux"},{"op":"test","path":"/foo/1","value":2}])"),
            R"({"baz":"qux","foo":["a",2,"c"]})");
  EXPECT_EQ(Patched(R"({"baz":"qux"})", R"([{"op":"test","path":"/baz",)"
                                        R"("value":"bar"}])"),
            "Invalid");
  EXPECT_EQ(Patched(R"({"foo":"bar"})", R"([{"op":"add","path":"/child","value":{"grandchild":{)"
                                        R"(}}}])"),
            R"({"foo":"bar","child":{"grandchild":{}}})");
  EXPECT_EQ(Patched(R"({"foo":"bar"})", R"([{"op":"add","path":"/baz/bat",)"
                                        R"("value":"qux"}])"),
            "Invalid");
  EXPECT_EQ(Patched(R"({"/":9,"~1":10})", R"([{"op":"test","path":"/~01","value":10}])"),
            R"({)"
            R"("/":9,"~1":10})");
  EXPECT_EQ(Patched(R"({"/":9,"~1":10})", R"([{"op":"test","path":"/~01",)"
                                          R"("value":"10"}])"),
            "Invalid");
  EXPECT_EQ(Patched(R"({"foo":["bar"]})", R"([{"op":"add","path":"/foo/-","value":["abc",)"
                                          R"("def"]}])"),
            R"({"foo":["bar",["abc","def"]]})");
}

TEST(JsonPatch, AppliesAllOrNothingAndNamesTheOperation) {
  const Result<Value> result =
      ApplyJsonPatch(J(R"({"a":1})"), J(R"([{"op":"replace",)"
                                        R"("path":"/a","value":2},{"op":"remove","path":"/b"}])"));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message(),
            "the server rejected our request due to an error in our request: remove operation does "
            "not apply: doc is missing path \"/b\"");
  EXPECT_EQ(Patched(R"({"a":{"b":1}})", R"([{"op":"move","from":"/a","path":"/a/c"}])"), "Invalid");
  EXPECT_EQ(Patched(R"({"a":{"b":1}})", R"([{"op":"copy","from":"/a","path":"/c"},{)"
                                        R"("op":"replace","path":"","value":[]}])"),
            "[]");
}

// As upstream's API server, and not as RFC 6902: Ray's autoscaler replaces a scaleStrategy that no
// user has written.
TEST(JsonPatch, ReplaceAddsAMemberThatIsNotThere) {
  EXPECT_EQ(
      Patched(R"({"a":[{"b":1}]})", R"([{"op":"replace","path":"/a/0/c","value":{"d":["x"]}}])"),
      R"({"a":[{"b":1,"c":{"d":["x"]}}]})");
  EXPECT_EQ(Patched(R"({"a":[1]})", R"([{"op":"replace","path":"/a/1","value":2}])"), "Invalid");
  EXPECT_EQ(Patched(R"({"a":[1]})", R"([{"op":"replace","path":"/b/c","value":2}])"), "Invalid");
}

TEST(JsonPatch, RefusesMalformedAndHugePatches) {
  for (const char* patch : {"{}", "[1]", R"([{"op":"spin","path":"/a"}])",
                            R"([{"op":"add",)"
                            R"("path":"a","value":1}])",
                            R"([{"op":"add","path":"/a"}])", R"([{"op":"move","path":"/a"}])",
                            R"([{"op":"remove"}])"}) {
    EXPECT_EQ(Patched("{}", patch), "BadRequest") << patch;
  }
  EXPECT_EQ(
      Patched("{}", Write(Value(Array(kMaxPatchOperations + 1, J(R"({"op":"test",)"
                                                                 R"("path":"","value":{}})"))))),
      "RequestEntityTooLarge");
}

TEST(JsonPatch, LimitsWhatCopiesAdd) {
  // Each operation doubles the document.
  std::string patch = "[";
  for (int i = 0; i < 64; ++i) {
    patch += fmt::format(R"({}{{"op":"copy","from":"","path":"/c{}"}})", i == 0 ? "" : ",", i);
  }
  const Result<Value> bomb = ApplyJsonPatch(J(R"({"a":1})"), J(patch + "]"));
  ASSERT_FALSE(bomb.has_value());
  EXPECT_EQ(bomb.error().reason(), Reason::kInvalid);
  EXPECT_NE(bomb.error().message().find("accumulated size increase of copy"), std::string::npos);
  // One copy of nearly that size is fine, a second one is not.
  const Value big = Obj({{"a", std::string(kMaxPatchCopiedBytes - 100, 'x')}});
  const std::string copy = R"({"op":"copy","from":"/a","path":"/b"})";
  EXPECT_TRUE(ApplyJsonPatch(big, J("[" + copy + "]")).has_value());
  EXPECT_FALSE(ApplyJsonPatch(big, J("[" + copy + "," + copy + "]")).has_value());
}

TEST(JsonPatch, KeepsTheLimitOfNesting) {
  std::string path;
  std::string open, close;
  for (int i = 0; i < kMaxDepth - 1; ++i) {
    path += "/a";
    open += R"({"a":)";
    close += "}";
  }
  const Value deep = J(open + "{}" + close);  // kMaxDepth levels
  for (const char* op : {"add", "copy"}) {
    const Value fits = Obj({{"op", op}, {"path", path}, {"from", path}, {"value", Obj()}});
    EXPECT_TRUE(ApplyJsonPatch(deep, List({fits})).has_value()) << op;
    const Value deeper = Obj({{"op", op}, {"path", path + "/b"}, {"from", path}, {"value", Obj()}});
    const Result<Value> result = ApplyJsonPatch(deep, List({deeper}));
    ASSERT_FALSE(result.has_value()) << op;
    EXPECT_EQ(result.error().reason(), Reason::kInvalid) << op;
    EXPECT_NE(result.error().message().find("levels of nesting"), std::string::npos) << op;
  }
  const Value two = Obj({{"x", deep["a"]}, {"y", deep["a"]}});
  const Value move = Obj({{"op", "move"}, {"from", "/x"}, {"path", "/y" + path.substr(4) + "/z"}});
  EXPECT_FALSE(ApplyJsonPatch(two, List({move})).has_value());
}

TEST(MergePatch, DoesTheExamplesOfRfc7386) {
  const char* rows[][3] = {{R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
                           {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
                           {R"({"a":"b"})", R"({"a":null})", R"({})"},
                           {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
                           {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
                           {R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
                           {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})",
                            R"({"a":{)"
                            R"("b":"d"}})"},
                           {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
                           {R"(["a","b"])", R"(["c","d"])", R"(["c","d"])"},
                           {R"({"a":"b"})", R"(["c"])", R"(["c"])"},
                           {R"({"a":"foo"})", "null", "null"},
                           {R"({"a":"foo"})", "\"bar\"", "\"bar\""},
                           {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
                           {"[1,2]", R"({"a":"b","c":null})", R"({"a":"b"})"},
                           {"{}", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"}};
  for (const auto& row : rows)
    EXPECT_EQ(Write(ApplyMergePatch(J(row[0]), J(row[1]))), row[2]) << row[0] << row[1];
}

TEST(JsonPatch, HasABoundOnTheItemsThatItShifts) {
  const Value document = Obj({{"list", Value(Array(100'000, Value(1)))}});
  const auto patch = [](size_t count) {
    const Value insert = *Parse(R"({"op":"add","path":"/list/0","value":0})");
    return Value(Array(count, insert));
  };
  EXPECT_EQ((*ApplyJsonPatch(document, patch(1000)))["list"].size(), 101'000u);
  const Result<Value> refused = ApplyJsonPatch(document, patch(kMaxPatchOperations));
  ASSERT_FALSE(refused.has_value()) << "a thousand million items moved";
  EXPECT_EQ(refused.error().reason(), Reason::kRequestEntityTooLarge);
  EXPECT_NE(refused.error().message().find("replace a whole list"), std::string::npos);
}

TEST(JsonPatch, HasABoundOnWhatItCompares) {
  // Each pair of operations puts the whole list together again.
  const Value document = Obj({{"list", Value(Array(10'000, Value(1)))}});
  Array patch;
  for (int i = 0; i < 1000; ++i) {
    patch.push_back(*Parse(R"({"op":"replace","path":"/list/0","value":1})"));
    patch.push_back(Obj({{"op", "test"}, {"path", "/list"}, {"value", document["list"]}}));
  }
  const Result<Value> refused = ApplyJsonPatch(document, Value(patch));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason(), Reason::kRequestEntityTooLarge);
  patch.clear();
  for (int i = 0; i < 1000; ++i) {
    patch.push_back(*Parse(R"({"op":"move","from":"/list","path":"/list2"})"));
    patch.push_back(*Parse(R"({"op":"move","from":"/list2","path":"/list"})"));
  }
  EXPECT_EQ(*ApplyJsonPatch(document, Value(patch)), document) << "moving a list copies nothing";
}

TEST(MergePatch, TakesThousandsOfMembers) {
  Object members;
  Object patch;
  for (int i = 0; i < 3000; ++i) {
    members.emplace_back("k" + std::to_string(i), i);
    if (i % 3 != 0) patch.emplace_back("k" + std::to_string(i), i % 3 == 1 ? Value() : Value("x"));
  }
  patch.emplace_back("new", 1);
  const Value merged = ApplyMergePatch(Value(members), Value(patch));
  ASSERT_EQ(merged.size(), 2001u);
  EXPECT_EQ(merged.members()[0].first, "k0");
  EXPECT_EQ(merged.members()[1].first, "k2");
  EXPECT_EQ(merged["k2"].AsString(), "x");
  EXPECT_EQ(merged.members().back().first, "new");
}

TEST(MergePatch, CreatesWhatApplyUndoes) {
  const Value from = J(R"({"a":1,"b":{"c":2,"d":[1]},"e":"x"})");
  const Value to = J(R"({"a":1,"b":{"c":3,"d":[1,2]},"f":{"g":1}})");
  const Value patch = CreateMergePatch(from, to);
  EXPECT_EQ(Write(patch), R"({"e":null,"b":{"c":3,"d":[1,2]},"f":{"g":1}})");
  EXPECT_EQ(ApplyMergePatch(from, patch), to);
  EXPECT_EQ(Write(CreateMergePatch(from, from)), "{}");
}

}  // namespace
}  // namespace muster::json
