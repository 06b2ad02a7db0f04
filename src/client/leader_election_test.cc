#include "client/leader_election.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "loop/sim_loop.h"

namespace muster::client {
namespace {

constexpr char kLeaseCollection[] = "/apis/coordination.k8s.io/v1/leases";

// One copy of a part.
struct Candidate {
  Candidate(SimLoop& loop, FakeApi& api, const std::string& identity)
      : transport(loop, api, {}),
        client(loop, transport, "tester"),
        elector(client, {"kube-system", "part", identity},
                {[this] { ++started; }, [this] { ++lost; },
                 [this](const std::string& other) { others += other + " "; }},
                Rng(identity.size())) {}
  InProcessTransport transport;
  ApiClient client;
  int started = 0, lost = 0;
  std::string others;
  LeaderElector elector;
};

class LeaderElectionTest : public testing::Test {
 protected:
  json::Value Spec() { return (*api_.Find(kLeaseCollection, "kube-system", "part"))["spec"]; }
  std::unique_ptr<Candidate> Start(const std::string& identity) {
    auto candidate = std::make_unique<Candidate>(loop_, api_, identity);
    candidate->elector.Start();
    loop_.RunFor(seconds(1));
    return candidate;
  }

  SimLoop loop_;
  FakeApi api_{loop_};
};

TEST_F(LeaderElectionTest, TheFirstLeadsAndRenews) {
  const auto a = Start("a");
  EXPECT_EQ(a->started, 1);
  EXPECT_TRUE(a->elector.leads());
  const json::Value first = Spec();
  EXPECT_EQ(first["holderIdentity"].AsString(), "a");
  EXPECT_EQ(first["leaseDurationSeconds"].AsInt(), 15);
  EXPECT_EQ(first["leaseTransitions"].AsInt(), 0);
  loop_.RunFor(seconds(60));
  EXPECT_EQ(a->lost, 0);
  EXPECT_NE(Spec()["renewTime"], first["renewTime"]);
  EXPECT_EQ(Spec()["acquireTime"], first["acquireTime"]);
  EXPECT_EQ(Spec()["leaseTransitions"].AsInt(), 0);
}

TEST_F(LeaderElectionTest, AnotherWaitsAndFollowsADeadLeader) {
  auto a = Start("a");
  const auto b = Start("b");
  loop_.RunFor(minutes(1));
  EXPECT_EQ(b->started, 0);
  EXPECT_EQ(b->others, "a ");
  a.reset();  // killed
  loop_.RunFor(seconds(10));
  EXPECT_EQ(b->started, 0);
  loop_.RunFor(seconds(10));
  EXPECT_EQ(b->started, 1);
  EXPECT_EQ(Spec()["holderIdentity"].AsString(), "b");
  EXPECT_EQ(Spec()["leaseTransitions"].AsInt(), 1);
}

TEST_F(LeaderElectionTest, ALeaseThatIsGivenUpIsTakenAtOnce) {
  const auto a = Start("a");
  const auto b = Start("b");
  bool done = false;
  a->elector.Release([&] { done = true; });
  loop_.RunFor(seconds(4));
  EXPECT_TRUE(done);
  EXPECT_EQ(b->started, 1);
  EXPECT_EQ(a->lost, 0);
}

TEST_F(LeaderElectionTest, ALeaderThatIsCutOffLosesBeforeAnotherLeads) {
  const auto a = Start("a");
  bool cut = false;
  api_.before_handle = [&](const net::Request&, const net::ResponseWriterPtr& writer) {
    if (!cut) return true;
    FakeApi::SendError(*writer, 503, "ServiceUnavailable", "away");
    return false;
  };
  cut = true;
  loop_.RunFor(seconds(13));
  EXPECT_EQ(a->lost, 1);
  EXPECT_FALSE(a->elector.leads());
  cut = false;
  const auto b = Start("b");
  EXPECT_EQ(b->started, 0);  // has seen the Lease just now
  loop_.RunFor(seconds(18));
  EXPECT_EQ(b->started, 1);
  EXPECT_EQ(a->started, 1);
}

TEST_F(LeaderElectionTest, ALeaderThatWasOverruledLoses) {
  const auto a = Start("a");
  json::Value lease = *api_.Find(kLeaseCollection, "kube-system", "part");
  api_.Put(kLeaseCollection, lease.SetPath({"spec", "holderIdentity"}, "x"));
  loop_.RunFor(seconds(4));
  EXPECT_EQ(a->lost, 1);
}

TEST_F(LeaderElectionTest, ALeaseThatIsDeletedIsMadeAgain) {
  const auto a = Start("a");
  api_.Remove(kLeaseCollection, "kube-system", "part");
  loop_.RunFor(seconds(12));
  EXPECT_EQ(a->lost, 0);
  EXPECT_EQ(Spec()["holderIdentity"].AsString(), "a");
}

// A Lease whose renewTime lies in the past or the future counts from when it was seen.
TEST_F(LeaderElectionTest, ClocksOfOthersDoNotMatter) {
  for (const char* renewed : {"1999-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"}) {
    api_.Put(kLeaseCollection,
             json::Obj({{"metadata", json::Obj({{"name", "part"}, {"namespace", "kube-system"}})},
                        {"spec", json::Obj({{"holderIdentity", std::string("x") + renewed},
                                            {"leaseDurationSeconds", 15},
                                            {"renewTime", renewed}})}}));
    const auto a = Start("a");
    loop_.RunFor(seconds(12));
    EXPECT_EQ(a->started, 0) << renewed;
    loop_.RunFor(seconds(6));
    EXPECT_EQ(a->started, 1) << renewed;
  }
}

}  // namespace
}  // namespace muster::client
