#include "json/projection.h"

#include <gtest/gtest.h>

#include "json/parse.h"
#include "json/write.h"

namespace muster::json {
namespace {

Value Tree(std::string_view text) { return Parse(text).value(); }

std::string Projected(std::string_view text, const Fields& fields) {
  return Write(fields.Project(Tree(text)));
}

constexpr char kPod[] = R"({"metadata":{"name":"a","annotations":{"x/y":"1","z":"2"}},)"
                        R"("spec":{"containers":[{"name":"c","env":[1,2]},{"name":"d"}],"n":1e3}})";

TEST(FieldsTest, KeepsWhatIsNamedAndGoesThroughArrays) {
  EXPECT_EQ(Projected(kPod, Fields{{"metadata", "annotations", "x/y"},
                                   {"spec", "containers", "name"},
                                   {"spec", "n"},
                                   {"status", "phase"}}),
            R"({"metadata":{"annotations":{"x/y":"1"}},)"
            R"("spec":{"containers":[{"name":"c"},{"name":"d"}],"n":1e3}})");
  EXPECT_EQ(Projected(kPod, Fields::Whole()), kPod);
  EXPECT_EQ(Projected(kPod, Fields()), "{}");
}

TEST(FieldsTest, KeepsWhatIsNoObjectWhereAPathGoesOn) {
  EXPECT_EQ(Projected(R"({"spec":"text","status":null})", Fields{{"spec", "a"}, {"status", "b"}}),
            R"({"spec":"text","status":null})");
}

TEST(FieldsTest, AddIsTheUnion) {
  Fields fields{{"spec", "a"}, {"spec", "b"}};
  EXPECT_TRUE(fields.Covers(Fields{{"spec", "a"}}));
  EXPECT_TRUE(fields.Covers(Fields{{"spec", "a", "deeper"}}));
  EXPECT_TRUE(fields.Covers(Fields()));
  EXPECT_FALSE(fields.Covers(Fields{{"spec"}}));
  EXPECT_FALSE(fields.Covers(Fields{{"status"}}));
  fields.Add(Fields{{"spec", "c", "d"}, {"status"}});
  EXPECT_EQ(Projected(R"({"spec":{"a":1,"b":2,"c":{"d":3,"e":4}},"status":{"x":5}})", fields),
            R"({"spec":{"a":1,"b":2,"c":{"d":3}},"status":{"x":5}})");
  fields.Add(Fields{{"spec"}});
  EXPECT_TRUE(fields.Covers(Fields{{"spec"}}));
  fields.Add(Fields::Whole());
  EXPECT_TRUE(fields.Covers(Fields::Whole()));
}

TEST(SharedValuesTest, EqualPartsAreOne) {
  SharedValues shared;
  const Value a = shared.Project(Tree(kPod), Fields::Whole());
  const Value b = shared.Project(Tree(kPod), Fields::Whole());
  EXPECT_EQ(a, b);
  EXPECT_TRUE(a["spec"].SameAs(b["spec"]));
  EXPECT_TRUE(a["metadata"]["annotations"].SameAs(b["metadata"]["annotations"]));
  const Value other = shared.Project(Tree(R"({"spec":{"containers":[{"name":"c","env":[1,2]}]}})"),
                                     Fields::Whole());
  EXPECT_TRUE(other["spec"]["containers"].At(0).SameAs(a["spec"]["containers"].At(0)));
}

TEST(SharedValuesTest, DoesNotMixUpWhatOnlyLooksEqual) {
  SharedValues shared;
  const char* const texts[] = {R"({"s":{"a":1}})",   R"({"s":{"a":1.0}})",  R"({"s":{"a":"1"}})",
                               R"({"s":{"a":[1]}})", R"({"s":{"a":true}})", R"({"s":{"b":1}})",
                               R"({"s":[]})",        R"({"s":{}})",         R"({"s":""})"};
  for (int round = 0; round < 2; ++round) {
    for (const char* text : texts) {
      EXPECT_EQ(Write(shared.Project(Tree(text), Fields::Whole())), text);
    }
  }
}

// Beyond kMaxSharedValues nothing is lost but the sharing.
TEST(SharedValuesTest, ManyValuesStayRight) {
  SharedValues shared;
  for (size_t i = 0; i < 3 * kMaxSharedValues; ++i) {
    const std::string text = R"({"spec":{"name":"pod-)" + std::to_string(i) + R"("}})";
    ASSERT_EQ(Write(shared.Project(Tree(text), Fields::Whole())), text);
  }
}

}  // namespace
}  // namespace muster::json
