#include "schema/path.h"

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

namespace muster::schema {
namespace {

TEST(Path, SaysWhereAValueStands) {
  const Path root;
  EXPECT_TRUE(root.IsRoot());
  EXPECT_EQ(root.ToString(), "");
  const Path spec = root.Child("spec");
  const Path list = spec.Child("containers");
  const Path item = list.Index(2);
  EXPECT_FALSE(item.IsRoot());
  EXPECT_EQ(item.Child("env").Index(0).Child("name").ToString(), "spec.containers[2].env[0].name");
  EXPECT_EQ(Path("data").Key(std::string("tls") + ".crt").ToString(), "data[tls.crt]");
  EXPECT_EQ(item.Child("env").FieldNames(), "spec.containers.env");
}

// A step may be kept when what it points to is a variable, too; else it is no Path.
TEST(Path, AStepFromWhatIsTemporaryIsNotKept) {
  using Kept = const Path&;
  using Temporary = Path;
  const std::string_view view;
  static_assert(std::is_same_v<decltype(std::declval<Kept>().Child(view)), Path>);
  static_assert(std::is_same_v<decltype(std::declval<Kept>().Index(0)), Path>);
  static_assert(std::is_same_v<decltype(std::declval<Kept>().Key(view)), Path>);
  static_assert(std::is_same_v<decltype(std::declval<Temporary>().Child(view)), PassingPath>);
  static_assert(std::is_same_v<decltype(std::declval<Temporary>().Index(0)), PassingPath>);
  static_assert(std::is_same_v<decltype(std::declval<Temporary>().Key(view)), PassingPath>);
  static_assert(std::is_same_v<decltype(std::declval<Kept>().Child(std::string())), PassingPath>);
  static_assert(std::is_same_v<decltype(std::declval<Kept>().Key(std::string())), PassingPath>);
  static_assert(!std::is_convertible_v<PassingPath, Path> && !std::is_copy_constructible_v<Path>);
  static_assert(std::is_constructible_v<Path, const std::string&>);
  static_assert(!std::is_constructible_v<Path, std::string>);
  // What is passed on by reference is any of them.
  static_assert(std::is_convertible_v<PassingPath, const Path&>);
}

}  // namespace
}  // namespace muster::schema
