#include "agent/pod_workers/status_writer.h"

#include <gtest/gtest.h>

#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "client/informer.h"
#include "loop/sim_loop.h"

namespace muster::agent {
namespace {

constexpr char kPods[] = "/api/v1/pods";

json::Value Status(std::string_view ready) {
  return json::Obj(
      {{"conditions", json::List({json::Obj({{"type", "Ready"}, {"status", ready}})})}});
}

struct Writer {
  Writer() {
    api.Put(kPods, json::Obj({{"metadata", json::Obj({{"namespace", "d"}, {"name", "p"}})}}));
    status = std::make_unique<StatusWriter>(loop, client, Shown(), [] {});
  }
  const json::Value& Shown() { return *api.Find(kPods, "d", "p"); }
  void Write(std::string_view ready) {
    status->Write(Status(ready), client::RevisionOf(Shown()));
    loop.RunReady();
  }

  SimLoop loop;
  client::FakeApi api{loop};
  client::InProcessTransport transport{loop, api, {"", "agent", {}}};
  client::ApiClient client{loop, transport, "agent"};
  std::unique_ptr<StatusWriter> status;
};

TEST(StatusWriter, WritesEachStatusOnce) {
  Writer w;
  w.Write("True");
  const uint64_t revision = w.api.revision();
  EXPECT_TRUE(w.status->Acknowledged());
  w.Write("True");
  EXPECT_EQ(w.api.revision(), revision);
}

TEST(StatusWriter, WhatOthersSayOfReadinessIsContradicted) {
  Writer w;
  const json::Value before = w.Shown();
  EXPECT_FALSE(w.status->IsContradictedBy(before));  // nothing was written yet
  w.Write("True");
  EXPECT_FALSE(w.status->IsContradictedBy(before));
  EXPECT_FALSE(w.status->IsContradictedBy(w.Shown()));
  w.api.Put(kPods, w.Shown().Set("status", Status("False")));
  EXPECT_TRUE(w.status->IsContradictedBy(w.Shown()));
  w.Write("True");
  EXPECT_EQ(w.Shown()["status"], Status("True"));
  EXPECT_FALSE(w.status->IsContradictedBy(w.Shown()));
}

TEST(StatusWriter, WhatOthersWroteMeanwhileIsNotWrittenOver) {
  Writer w;
  const json::Value before = w.Shown();
  w.api.Put(kPods, w.Shown().Set("status", json::Obj({{"phase", "Failed"}})));
  w.status->Write(Status("True"), client::RevisionOf(before));
  w.loop.RunReady();
  EXPECT_EQ(w.Shown()["status"], json::Obj({{"phase", "Failed"}}));
  EXPECT_FALSE(w.status->Acknowledged());
  EXPECT_FALSE(w.status->NeedsNewStatus(before));  // that pod is not known yet
  ASSERT_TRUE(w.status->NeedsNewStatus(w.Shown()));
  // Nothing is sent again before the newer one is known.
  const size_t requests = w.api.requests.size();
  w.status->Write(Status("False"), client::RevisionOf(before));
  w.loop.RunReady();
  EXPECT_EQ(w.api.requests.size(), requests);
  w.Write("False");
  EXPECT_TRUE(w.status->Acknowledged());
  EXPECT_FALSE(w.status->NeedsNewStatus(w.Shown()));
  EXPECT_EQ(w.Shown()["status"]["conditions"], Status("False")["conditions"]);
  EXPECT_EQ(w.Shown()["status"]["phase"].AsString(), "Failed");
}

TEST(StatusWriter, WhatItWroteItselfIsNoNews) {
  Writer w;
  const uint64_t before = client::RevisionOf(w.Shown());
  w.Write("True");
  w.status->Write(Status("False"), before);  // the informer is behind
  w.loop.RunReady();
  EXPECT_TRUE(w.status->Acknowledged());
  EXPECT_EQ(w.Shown()["status"], Status("False"));
}

}  // namespace
}  // namespace muster::agent
