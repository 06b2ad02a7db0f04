#include "agent/pod_workers/status_writer.h"

#include <gtest/gtest.h>

#include "client/fake_api.h"
#include "client/in_process_transport.h"
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
    status->Write(Status(ready));
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

}  // namespace
}  // namespace muster::agent
