#include "controllers/garbage/garbage_controller.h"

#include "controllers/controller_test_base.h"

namespace muster::controllers {
namespace {

class GarbageTest : public ControllerTest {
 protected:
  static json::Value Object(const std::string& name, const std::vector<std::string>& owners,
                            bool blocks = true, const std::string& owner_kind = "ConfigMap") {
    json::Array references;
    for (const std::string& owner : owners) {
      references.push_back(json::Obj({{"apiVersion", "v1"},
                                      {"kind", owner_kind},
                                      {"name", owner},
                                      {"uid", "uid of " + owner},
                                      {"blockOwnerDeletion", blocks}}));
    }
    return json::Obj({{"apiVersion", "v1"},
                      {"kind", "ConfigMap"},
                      {"metadata", json::Obj({{"name", name},
                                              {"namespace", "d"},
                                              {"uid", "uid of " + name},
                                              {"ownerReferences", json::Value(references)}})}});
  }
  void Make(const std::string& name, const std::vector<std::string>& owners = {},
            bool blocks = true) {
    api_.Put(kConfigMaps, Object(name, owners, blocks));
  }
  void Delete(const std::string& name, const char* policy) {
    client_.Delete({client::resources::kConfigMaps, "d", name, ""}, {.propagation_policy = policy},
                   [](Result<json::Value>) {});
    Settle();
  }
  bool Exists(const std::string& name) { return !Get(kConfigMaps, "d", name).IsNull(); }
  void StartIt() { Start(std::make_unique<GarbageController>(discovery_)); }
};

TEST_F(GarbageTest, BackgroundDeletionReachesTheWholeTree) {
  Make("a");
  Make("b", {"a"});
  Make("c", {"b"});
  Make("other");
  StartIt();
  EXPECT_TRUE(Exists("c"));
  Delete("a", "Background");
  EXPECT_FALSE(Exists("b"));
  EXPECT_FALSE(Exists("c"));
  EXPECT_TRUE(Exists("other"));
}

// Found by simulation: a collector that had just started knew the owner and not yet the pods.
TEST_F(GarbageTest, AnOwnerIsNotLetGoWhileAKindOfDependentsIsNotListed) {
  for (const char* finalizer : {"foregroundDeletion", "orphan"}) {
    json::Value owner = Object(finalizer, {});
    owner = owner.SetPath({"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z");
    api_.Put(kConfigMaps, owner.SetPath({"metadata", "finalizers"}, json::Strings({finalizer})));
    const json::Value owners = Object("x", {finalizer})["metadata"]["ownerReferences"];
    Put(kPods, fmt::format("{{metadata: {{name: pod-{}, namespace: d}}}}",
                           finalizer == std::string_view("orphan") ? "b" : "a"));
    const std::string name = finalizer == std::string_view("orphan") ? "pod-b" : "pod-a";
    api_.Put(kPods, Get(kPods, "d", name).SetPath({"metadata", "ownerReferences"}, owners));
  }
  bool hidden = true;
  api_.before_handle = [&hidden](const net::Request& request,
                                 const net::ResponseWriterPtr& writer) {
    if (!hidden || !request.target.starts_with(kPods)) return true;
    client::FakeApi::SendError(*writer, 503, "ServiceUnavailable", "not yet");
    return false;
  };
  StartIt();
  EXPECT_TRUE(Exists("foregroundDeletion"));
  EXPECT_TRUE(Exists("orphan"));
  hidden = false;
  loop_.RunFor(minutes(1));
  EXPECT_FALSE(Exists("orphan"));
  EXPECT_TRUE(Get(kPods, "d", "pod-b")["metadata"]["ownerReferences"].empty());
  EXPECT_FALSE(Get(kPods, "d", "pod-b").IsNull());
}

TEST_F(GarbageTest, OrphansOfThePastAreFoundAtStart) {
  Make("b", {"a"});  // a is long gone
  StartIt();
  EXPECT_FALSE(Exists("b"));
}

TEST_F(GarbageTest, AReplacedOwnerIsNotTheOwner) {
  api_.Put(kConfigMaps, Object("a", {}).SetPath({"metadata", "uid"}, "another uid"));
  Make("b", {"a"});
  StartIt();
  EXPECT_FALSE(Exists("b"));
}

TEST_F(GarbageTest, OneLivingOwnerIsEnough) {
  Make("a");
  Make("z");
  Make("b", {"a", "z"});
  StartIt();
  Delete("a", "Background");
  ASSERT_TRUE(Exists("b"));
  EXPECT_EQ(Get(kConfigMaps, "d", "b")["metadata"]["ownerReferences"].size(), 1u);
  Delete("z", "Background");
  EXPECT_FALSE(Exists("b"));
}

TEST_F(GarbageTest, ForegroundWaitsForBlockingDependents) {
  Make("a");
  api_.Put(kConfigMaps,
           Object("b", {"a"}).SetPath({"metadata", "finalizers"}, json::Strings({"x/y"})));
  Make("free", {"a"}, false);
  StartIt();
  Delete("a", "Foreground");
  EXPECT_TRUE(Exists("a")) << "b blocks it";
  EXPECT_FALSE(Exists("free")) << "does not block, and goes all the same";
  api_.Remove(kConfigMaps, "d", "b");
  Settle();
  EXPECT_FALSE(Exists("a"));
}

TEST_F(GarbageTest, ForegroundReachesGrandchildrenFirst) {
  Make("a");
  Make("b", {"a"});
  Make("c", {"b"});
  StartIt();
  Delete("a", "Foreground");
  EXPECT_FALSE(Exists("a") || Exists("b") || Exists("c"));
}

TEST_F(GarbageTest, ForegroundCyclesEnd) {
  Make("a", {"c"});
  Make("b", {"a"});
  Make("c", {"b"});
  StartIt();
  EXPECT_TRUE(Exists("a"));
  Delete("a", "Foreground");
  loop_.RunFor(minutes(1));
  EXPECT_FALSE(Exists("a") || Exists("b") || Exists("c"));
}

TEST_F(GarbageTest, OrphanLetsDependentsLive) {
  Make("a");
  Make("b", {"a"});
  StartIt();
  Delete("a", "Orphan");
  EXPECT_FALSE(Exists("a"));
  ASSERT_TRUE(Exists("b"));
  EXPECT_TRUE(Get(kConfigMaps, "d", "b")["metadata"]["ownerReferences"].empty());
}

TEST_F(GarbageTest, AnOwnerThatTheInformerDoesNotShowYetIsAskedFor) {
  bool blind = true;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (!blind || !request.target.starts_with("/api/v1/pods?")) return true;
    client::FakeApi::SendError(*writer, 503, "ServiceUnavailable", "away");
    return false;
  };
  Put(kPods, "{metadata: {name: a, namespace: d, uid: uid of a}}");
  api_.Put(kConfigMaps, Object("b", {"a"}, true, "Pod"));
  StartIt();
  EXPECT_TRUE(Exists("b"));
  EXPECT_GE(Requests("GET /api/v1/namespaces/d/pods/a"), 1u);
}

TEST_F(GarbageTest, OwnersOfUnknownKindsCountAsAlive) {
  api_.Put(kConfigMaps, Object("b", {"a"}, true, "Spaceship"));
  StartIt();
  loop_.RunFor(minutes(5));
  EXPECT_TRUE(Exists("b"));
}

TEST_F(GarbageTest, CustomKindsAreCollectedToo) {
  StartIt();
  Put("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", R"(
metadata: {name: things.g}
spec:
  group: g
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions: [{name: v1, served: true, storage: true}])");
  Put("/apis/g/v1/things",
      "{apiVersion: g/v1, kind: Thing, metadata: {name: t, namespace: d, uid: ut}}");
  api_.Put(kConfigMaps,
           Object("b", {}).SetPath({"metadata", "ownerReferences"},
                                   Yaml("[{apiVersion: g/v1, kind: Thing, name: t, uid: ut}]")));
  Settle();
  EXPECT_TRUE(Exists("b"));
  api_.Remove("/apis/g/v1/things", "d", "t");
  Settle();
  EXPECT_FALSE(Exists("b"));
}

TEST(Dependents, KeysRoundTrip) {
  const ObjectRef ref{{"g", "v1", "things"}, {"ns", "name"}};
  EXPECT_EQ(FromKey(ToKey(ref)), ref);
  const ObjectRef core{{"", "v1", "nodes"}, {"", "n1"}};
  EXPECT_EQ(FromKey(ToKey(core)), core);
}

}  // namespace
}  // namespace muster::controllers
