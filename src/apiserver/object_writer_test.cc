#include "apiserver/object_writer.h"

#include <gtest/gtest.h>

#include "apiserver/apiserver_testing.h"

namespace muster::apiserver {
namespace {

net::Headers MergePatch() {
  net::Headers headers;
  headers.Add("Content-Type", "application/merge-patch+json");
  return headers;
}

constexpr char kNamespace[] = "/api/v1/namespaces/default";
constexpr char kLabel[] = R"({"metadata":{"labels":{"a":"b"}}})";

TEST(ObjectWriter, AnUpdateWithoutEffectIsAnsweredAtOnceAndWritesNothing) {
  TestServer test;
  test.Send("PATCH", kNamespace, kLabel, MergePatch());
  const store::Revision before = test.store->CommittedRevision();
  EXPECT_EQ(test.Begin("PATCH", kNamespace, kLabel, MergePatch())->status, 200);
  test.loop.RunReady();
  EXPECT_EQ(test.store->CommittedRevision(), before);
}

// Found by simulation: the answer spoke of a revision that a crash could still undo.
TEST(ObjectWriter, AnUpdateThatRepeatsAPendingWriteWaitsForItsCommit) {
  TestServer test;
  const auto first = test.Begin("PATCH", kNamespace, kLabel, MergePatch());
  const auto second = test.Begin("PATCH", kNamespace, kLabel, MergePatch());
  EXPECT_EQ(first->status, 0);
  EXPECT_EQ(second->status, 0);
  test.loop.RunReady();
  EXPECT_EQ(first->status, 200);
  EXPECT_EQ(second->status, 200);
}

}  // namespace
}  // namespace muster::apiserver
