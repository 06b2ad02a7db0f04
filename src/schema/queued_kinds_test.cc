#include "schema/queued_kinds.h"

#include <gtest/gtest.h>

#include "json/parse.h"
#include "json/write.h"

namespace muster::schema {
namespace {

json::Value Parse(const char* text) { return *json::Parse(text); }

TEST(QueuedKinds, ALabelPutsAnObjectIntoAQueue) {
  EXPECT_EQ(QueueOf(Parse(R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"team"}}})")),
            "team");
  EXPECT_EQ(QueueOf(Parse(R"({"metadata":{"labels":{"a":"b"}}})")), "");
  // Its owner is looked after: a Job of a JobSet, but not one of a CronJob.
  const auto owned = [](const char* api, const char* kind) {
    return Parse(fmt::format(R"({{"metadata":{{"labels":{{"kueue.x-k8s.io/queue-name":"team"}},
      "ownerReferences":[{{"apiVersion":"{}","kind":"{}","name":"o","controller":true}}]}}}})",
                             api, kind)
                     .c_str());
  };
  EXPECT_EQ(QueueOf(owned("jobset.x-k8s.io/v1alpha2", "JobSet")), "");
  EXPECT_EQ(QueueOf(owned("batch/v1", "Job")), "");
  EXPECT_EQ(QueueOf(owned("batch/v1", "CronJob")), "team");
  EXPECT_EQ(QueueOf(owned("ml.example.com/v1", "DistributedTraining")), "team");
}

TEST(QueuedKinds, EachKindIsSuspendedInItsWay) {
  EXPECT_EQ(FindQueuedKind("apps", "Deployment"), nullptr);
  const QueuedKind& job = *FindQueuedKind("batch", "Job");
  const QueuedKind& training = *FindQueuedKind("kubeflow.org", "PyTorchJob");
  const QueuedKind& pod = *FindQueuedKind("", "Pod");
  const json::Value plain = Parse(R"({"spec":{"a":1}})");
  for (const QueuedKind* kind : {&job, &training, &pod}) {
    EXPECT_FALSE(IsSuspended(*kind, plain));
    const json::Value held = WithSuspended(*kind, plain, true);
    EXPECT_TRUE(IsSuspended(*kind, held)) << json::Write(held);
    EXPECT_EQ(WithSuspended(*kind, held, true), held);
    EXPECT_FALSE(IsSuspended(*kind, WithSuspended(*kind, held, false)));
  }
  EXPECT_EQ(json::Write(WithSuspended(job, plain, true)), R"({"spec":{"a":1,"suspend":true}})");
  EXPECT_EQ(json::Write(WithSuspended(training, plain, true)),
            R"({"spec":{"a":1,"runPolicy":{"suspend":true}}})");
  const json::Value other = Parse(R"({"spec":{"schedulingGates":[{"name":"x/y"}]}})");
  EXPECT_EQ(WithSuspended(pod, WithSuspended(pod, other, true), false), other);
  EXPECT_EQ(WithSuspended(pod, WithSuspended(pod, plain, true), false), plain);
}

}  // namespace
}  // namespace muster::schema
