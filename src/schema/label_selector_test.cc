#include "schema/label_selector.h"

#include <gtest/gtest.h>

#include "schema/field_selector.h"

namespace muster::schema {
namespace {

using json::List;
using json::Obj;

const json::Value kLabels = Obj({{"app", "web"}, {"tier", "front"}, {"n", "5"}, {"empty", ""}});

bool Selects(std::string_view text) {
  const Result<LabelSelector> selector = LabelSelector::Parse(text);
  EXPECT_TRUE(selector.has_value()) << text << ": " << (selector ? "" : selector.error().message());
  return selector && selector->Matches(kLabels);
}

std::string Refusal(std::string_view text) {
  const Result<LabelSelector> selector = LabelSelector::Parse(text);
  return selector ? "accepted as " + selector->ToString() : selector.error().message();
}

TEST(LabelSelector, MatchesEveryOperator) {
  for (const char* text :
       {"", "app=web", "app==web", "app!=db", "x!=y", "app in (web,db)", "app notin (db, x)",
        "x notin (a)", "app", "!x", "n>4", "n<6", "app=web,tier in (front),!x", "empty=", "empty",
        " app = web , tier ", "empty in (,a)"}) {
    EXPECT_TRUE(Selects(text)) << text;
  }
  for (const char* text : {"app=db", "x=y", "app!=web", "app in (db)", "x in (a)",
                           "app notin (web)", "!app", "x", "n>5", "app>1", "app=", "n<5"}) {
    EXPECT_FALSE(Selects(text)) << text;
  }
}

TEST(LabelSelector, RefusesInUpstreamsWords) {
  EXPECT_EQ(Refusal("a=b=c"), "found '=', expected: ',' or 'end of string'");
  EXPECT_EQ(Refusal("=a"), "found '=', expected: !, identifier, or 'end of string'");
  EXPECT_EQ(Refusal("a,"), "found '', expected: identifier after ','");
  EXPECT_EQ(Refusal("a in b"), "unable to parse requirement: found 'b' expected: '('");
  EXPECT_EQ(Refusal("a in (b"), "unable to parse requirement: found '', expected: ',' or ')'");
  EXPECT_EQ(Refusal("a b"),
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
  EXPECT_EQ(Refusal("a in ()"),
            "unable to parse requirement: values: Invalid value: []: for 'in', 'notin' operators, "
            "values set can't be empty");
  EXPECT_TRUE(Refusal("a=b c").starts_with("found 'c', expected"));
  EXPECT_TRUE(Refusal("-a=b").starts_with(
      "unable to parse requirement: key: Invalid value: \"-a\": name part must consist"));
  EXPECT_TRUE(Refusal("a=-b").starts_with(
      "unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid label must be"));
  std::string many = "k0";
  for (size_t i = 0; i < kMaxSelectorRequirements; ++i) many += ",k";
  EXPECT_TRUE(Refusal(many).find("at most") != std::string::npos);
}

TEST(LabelSelector, ReadsObjects) {
  const auto selector = LabelSelector::FromJson(
      Obj({{"matchLabels", Obj({{"app", "web"}})},
           {"matchExpressions",
            List({Obj({{"key", "tier"}, {"operator", "In"}, {"values", List({"front", "back"})}}),
                  Obj({{"key", "x"}, {"operator", "DoesNotExist"}})})}}));
  ASSERT_TRUE(selector.has_value());
  EXPECT_TRUE(selector->Matches(kLabels));
  EXPECT_FALSE(selector->Matches(Obj({{"app", "web"}})));
  EXPECT_EQ(selector->ToString(), "app=web,tier in (back,front),!x");
  EXPECT_TRUE(LabelSelector::FromJson(json::Value())->selects_nothing());
  EXPECT_FALSE(LabelSelector::FromJson(json::Value())->Matches(kLabels));
  EXPECT_TRUE(LabelSelector::FromJson(Obj())->empty());
  EXPECT_TRUE(LabelSelector::FromJson(Obj())->Matches(json::Value()));
  EXPECT_EQ(LabelSelector::FromJson(
                Obj({{"matchExpressions", List({Obj({{"key", "a"}, {"operator", "Like"}})})}}))
                .error()
                .message(),
            "\"Like\" is not a valid label selector operator");
  EXPECT_FALSE(LabelSelector::FromMap(Obj()).Matches(kLabels));
  EXPECT_TRUE(LabelSelector::FromMap(Obj({{"app", "web"}})).Matches(kLabels));
}

TEST(FieldSelector, ParsesTermsAndEscapes) {
  const auto selector =
      FieldSelector::Parse("metadata.name=x,status.phase!=Failed,spec.a==b\\,c\\=d\\\\,,");
  ASSERT_TRUE(selector.has_value());
  ASSERT_EQ(selector->terms().size(), 3u);
  EXPECT_EQ(selector->terms()[0].field, "metadata.name");
  EXPECT_TRUE(selector->terms()[1].negated);
  EXPECT_EQ(selector->terms()[2].value, "b,c=d\\");
  const auto matches = [&](std::string_view name, std::string_view phase) {
    return FieldSelector::Parse("metadata.name=x,status.phase!=Failed")
        ->MatchesBy(
            [&](std::string_view field) { return field == "metadata.name" ? name : phase; });
  };
  EXPECT_TRUE(matches("x", "Running"));
  EXPECT_FALSE(matches("x", "Failed"));
  EXPECT_FALSE(matches("y", ""));
  EXPECT_TRUE(FieldSelector::Parse("")->empty());
}

TEST(FieldSelector, RefusesInUpstreamsWords) {
  EXPECT_EQ(FieldSelector::Parse("abc").error().message(),
            "invalid selector: 'abc'; can't understand 'abc'");
  EXPECT_EQ(FieldSelector::Parse("a=b\\x").error().message(),
            "invalid field selector: invalid escape sequence: \\x");
  EXPECT_EQ(FieldSelector::Parse("a=b=c").error().message(),
            "invalid field selector: unescaped character in value: 61");
  Kind kind;
  EXPECT_EQ(
      FieldSelector::Parse("spec.x=1")->CheckSelectable(kind).message(),
      "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"");
  kind.selectable_fields = {"spec.nodeName"};
  EXPECT_EQ(FieldSelector::Parse("spec.x=1")->CheckSelectable(kind).message(),
            "field label not supported: spec.x");
  EXPECT_TRUE(FieldSelector::Parse("spec.nodeName=1,metadata.name=a")->CheckSelectable(kind).ok());
  std::string many = "a=b";
  for (size_t i = 0; i < kMaxFieldTerms; ++i) many += ",a=b";
  EXPECT_FALSE(FieldSelector::Parse(many).has_value());
}

}  // namespace
}  // namespace muster::schema
