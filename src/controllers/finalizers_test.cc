#include "controllers/finalizers.h"

#include "controllers/controller_test_base.h"

namespace muster::controllers {
namespace {

TEST(Finalizers, KeepWhatIsToStayAndLetGoOfWhatIsFree) {
  const client::Target target{client::resources::kConfigMaps, "d", "x", ""};
  const auto patch = [&](const char* metadata, bool is_free) {
    client::Reconciled out;
    const json::Value object = json::Obj({{"metadata", Yaml(metadata)}});
    const bool patched = KeepUntilFree(target, object, "a/b", is_free, out);
    EXPECT_EQ(patched, !out.writes.empty());
    return out.writes.empty() ? json::Value() : out.writes[0].body["metadata"];
  };
  EXPECT_EQ(patch("{uid: u, resourceVersion: '7'}", true),
            Yaml("{uid: u, resourceVersion: '7', finalizers: [a/b]}"));
  EXPECT_EQ(patch("{uid: u, finalizers: [c/d]}", false)["finalizers"], Yaml("[c/d, a/b]"));
  EXPECT_TRUE(patch("{uid: u, finalizers: [a/b]}", true).IsNull());
  constexpr char kGoing[] = "{uid: u, deletionTimestamp: t, finalizers: [a/b, c/d]}";
  EXPECT_TRUE(patch(kGoing, false).IsNull()) << "it is in use";
  EXPECT_EQ(patch(kGoing, true)["finalizers"], Yaml("[c/d]"));
  EXPECT_TRUE(patch("{uid: u, deletionTimestamp: t, finalizers: [c/d]}", true).IsNull());
  EXPECT_TRUE(patch("{uid: u, deletionTimestamp: t}", false).IsNull()) << "none is added any more";
}

}  // namespace
}  // namespace muster::controllers
