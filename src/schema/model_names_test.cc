#include "schema/model_names.h"

#include <gtest/gtest.h>

#include "schema/names.h"

namespace muster::schema {
namespace {

TEST(ModelNamesTest, ANameOfDnsStaysAsItIs) {
  EXPECT_EQ(ModelObjectName("digits"), "digits");
  EXPECT_EQ(ModelObjectName("team.digits-2"), "team.digits-2");
  EXPECT_EQ(ModelObjectName(std::string(63, 'a')), std::string(63, 'a'));
  EXPECT_EQ(ModelVersionObjectName("digits", 12), "digits.12");
}

TEST(ModelNamesTest, AnyOtherGetsOneThatIsItsAlone) {
  for (const std::string& name :
       {std::string("Digits"), std::string("digits of MNIST"), std::string("---"),
        std::string("a_b"), std::string(64, 'a'), std::string(250, 'x'), std::string("größe"),
        std::string("-a-")}) {
    const std::string object = ModelObjectName(name);
    Problems problems;
    CheckDns1123Subdomain(object, problems);
    CheckLabelValue(object, problems);
    EXPECT_TRUE(problems.empty()) << object;
    EXPECT_EQ(ModelObjectName(object), object);
  }
  EXPECT_NE(ModelObjectName("Digits"), ModelObjectName("digits"));
  EXPECT_NE(ModelObjectName("a b"), ModelObjectName("a_b"));
  EXPECT_TRUE(ModelObjectName("Digits of MNIST").starts_with("digits-of-mnist-"));
}

}  // namespace
}  // namespace muster::schema
