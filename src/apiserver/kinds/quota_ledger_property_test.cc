// Random writes, in the order and with the failures that a store may have, against a count from
// nothing: no quota is ever exceeded, and nothing stays charged.

#include <gtest/gtest.h>

#include <set>

#include "apiserver/core.h"
#include "apiserver/kinds/quota_ledger.h"
#include "apiserver/object_writer.h"
#include "apiserver/stored_object.h"
#include "base/check.h"
#include "base/log.h"
#include "base/seeds_test_support.h"
#include "json/parse.h"
#include "loop/sim_loop.h"
#include "store/backend.h"
#include "store/memory_store.h"
#include "store/store_core.h"

namespace muster::apiserver {
namespace {

// Everything is in memory; appends fail when told to, as on a full disk.
class FailingBackend final : public store::Backend {
 public:
  explicit FailingBackend(const bool& fails) : fails_(fails) {}
  Result<store::LoadedState> Load(const std::function<void(store::LogRecord)>&) override {
    return store::LoadedState{};
  }
  Status Append(std::span<const store::LogRecord>, bool) override {
    return fails_ ? store::RecoverableError("full") : Status::Ok();
  }
  Result<bool> CompactStep(store::Revision) override { return false; }
  Status Maintain(bool) override { return Status::Ok(); }
  Status Recover(store::Revision) override { return Status::Ok(); }
  bool KeepsLog() const override { return false; }
  Result<store::ReadAtResult> ReadAt(std::string_view, std::string_view, size_t,
                                     store::Revision) override {
    return Error(Reason::kExpired, "not kept");
  }
  Result<std::vector<store::LogChange>> ReadLog(store::Revision, store::Revision) override {
    return Error(Reason::kExpired, "not kept");
  }

 private:
  const bool& fails_;
};

json::Value Json(const std::string& text) {
  const Result<json::Value> value = json::Parse(text);
  CHECK_MSG(value.has_value(), "not JSON");
  return *value;
}

class World {
 public:
  explicit World(uint64_t seed) : rng_(seed) {
    store::StoreCore::Options options;
    options.decorator = MakeDecorator();
    store_ = *store::StoreCore::Open(loop_, std::make_unique<FailingBackend>(fails_),
                                     std::move(options));
    core_ = std::make_unique<Core>(loop_, *store_, ServerOptions());
    // In every second story one object is counted at a time, and writes come between.
    if (seed % 2 == 0) core_->quotas->CountInStepsOfForTest(1);
    pods_ = core_->registry.Find("", "v1", "pods");
    quotas_ = core_->registry.Find("", "v1", "resourcequotas");
  }

  void Step() {
    const std::string name = "p" + std::to_string(rng_.Below(10));
    switch (rng_.Below(12)) {
      case 0:
        SetQuota("q" + std::to_string(rng_.Below(2)));
        break;
      case 1:
        Remove(quotas_, "q" + std::to_string(rng_.Below(2)));
        break;
      case 2:
      case 3:
        Remove(pods_, name);
        break;
      case 4:
      case 5:
        End(name);
        break;
      case 6:
        Mark(name);
        break;
      case 7:
        loop_.RunFor(milliseconds(static_cast<int64_t>(rng_.Below(4000))));
        break;
      case 8:
        loop_.RunReady();
        break;
      default:
        Create(name);
        break;
    }
    if (rng_.Chance(0.03)) FailOnce();
    Compare(false);
  }

  void Drain() {
    loop_.RunFor(minutes(2));
    for (const std::string& quota : Names(quotas_))
      core_->quotas->UsedForTest("d", quota, loop_.Now());  // the first question begins a count
    loop_.RunReady();
    Compare(true);
    EXPECT_EQ(core_->quotas->pending_writes(), 0u);
    for (const std::string& quota : Names(quotas_))
      EXPECT_TRUE(core_->quotas->PendingForTest("d", quota).empty()) << quota;
  }

  int created = 0, refused = 0, failed = 0, counting = 0;

 private:
  WriteContext ContextOf(const ResourcePtr& resource, const std::string& name) {
    return {*resource->kind, "d", name, loop_.Now(), rng_.Chance(0.1), {}};
  }
  WriteDone Count() {
    return [this](const Result<store::EntryPtr>& entry) {
      if (!entry) ++failed;
    };
  }
  void CreateObjectOf(const ResourcePtr& resource, const std::string& name, json::Value object) {
    WriteContext context = ContextOf(resource, name);
    CreateObject(*core_, resource, context, std::move(object),
                 [this](const Result<store::EntryPtr>& entry) {
                   const bool forbidden = !entry && entry.error().reason() == Reason::kForbidden;
                   ++(entry ? created : forbidden ? refused : failed);
                 });
  }

  json::Value Metadata(const std::string& name) {
    return json::Obj({{"name", name},
                      {"namespace", "d"},
                      {"uid", core_->rng.Uuid()},
                      {"creationTimestamp", FormatTime(loop_.Now())}});
  }

  void Create(const std::string& name) {
    const std::string cpu = std::to_string(rng_.Below(3));
    json::Value pod = Json(R"({"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"name":"c",
        "image":"i","resources":{"requests":{"cpu":")" +
                           cpu + R"("}}}]},
        "status":{"phase":"Pending"}})");
    CreateObjectOf(pods_, name, pod.Set("metadata", Metadata(name)));
  }

  void SetQuota(const std::string& name) {
    const json::Value spec =
        Json(R"({"hard":{"pods":")" + std::to_string(4 + rng_.Below(4)) + R"(","cpu":"5"}})");
    const Result<Found> found = FindObject(*core_, *quotas_->kind, "d", name);
    if (!found) {
      json::Value quota = json::Obj({{"kind", "ResourceQuota"}, {"apiVersion", "v1"}});
      CreateObjectOf(quotas_, name, quota.Set("metadata", Metadata(name)).Set("spec", spec));
    } else {
      WriteContext context = ContextOf(quotas_, name);
      ReplaceObject(*core_, quotas_, context, *found, found->object.Set("spec", spec), Count());
    }
  }

  void Change(const std::string& name, const std::function<json::Value(json::Value)>& change) {
    const Result<Found> found = FindObject(*core_, *pods_->kind, "d", name);
    if (!found) return;
    WriteContext context = ContextOf(pods_, name);
    ReplaceObject(*core_, pods_, context, *found, change(found->object), Count());
  }
  void End(const std::string& name) {
    Change(name, [](const json::Value& pod) { return pod.SetPath({"status", "phase"}, "Failed"); });
  }
  void Mark(const std::string& name) {
    Change(name, [&](const json::Value& pod) {
      if (pod["metadata"].Has("deletionTimestamp")) return pod;
      return pod.SetPath({"metadata", "deletionTimestamp"}, FormatTime(loop_.Now() + seconds(2)))
          .SetPath({"metadata", "deletionGracePeriodSeconds"}, 2);
    });
  }
  void Remove(const ResourcePtr& resource, const std::string& name) {
    const Result<Found> found = FindObject(*core_, *resource->kind, "d", name);
    if (found) RemoveObject(*core_, resource, rng_.Chance(0.1), *found, Count());
  }

  void FailOnce() {
    fails_ = true;
    loop_.RunReady();
    fails_ = false;
    if (rng_.Chance(0.5)) loop_.RunFor(minutes(1));
  }

  std::set<std::string> Names(const ResourcePtr& resource) const {
    std::set<std::string> names;
    const auto range = store_->Range(CollectionPrefix(*resource->kind, "d"), "", 0, 0);
    for (const store::EntryPtr& entry : range->entries)
      names.insert(std::string(ParseKey(entry->key).name));
    return names;
  }

  // The tally of committed objects is the least that a quota may say; what is pending comes on top,
  // and when nothing is, they are equal.
  void Compare(bool quiet) {
    for (const std::string& name : Names(quotas_)) {
      const store::EntryPtr quota = store_->Get(ObjectKey(*quotas_->kind, "d", name));
      schema::QuotaTally truth(schema::Quota(DecodeStored(*quotas_->kind, *quota->value)),
                               loop_.Now());
      const auto range = store_->Range(CollectionPrefix(*pods_->kind, "d"), "", 0, 0);
      for (const store::EntryPtr& pod : range->entries)
        truth.Change({"", "pods"}, {}, DecodeStored(*pods_->kind, *pod->value));
      schema::Amounts expected = truth.used();
      if (!quiet) schema::AddAmounts(expected, core_->quotas->PendingForTest("d", name));
      const schema::Amounts used = core_->quotas->UsedForTest("d", name, loop_.Now());
      if (used.empty()) {
        ++counting;
        ASSERT_FALSE(quiet) << name << " is still being counted";
      } else {
        ASSERT_EQ(schema::ToText(used), schema::ToText(expected)) << name;
      }
      CompareWithHard(name, *quota, truth.used());
    }
  }

  // Above its bound only because the bound came later, and then it does not rise.
  void CompareWithHard(const std::string& name, const store::Entry& quota,
                       const schema::Amounts& used) {
    const schema::Amounts hard =
        schema::AmountsOf(DecodeStored(*quotas_->kind, *quota.value)["spec"]["hard"]);
    auto& before = seen_[name];
    if (before.first == quota.mod_revision) {
      for (const auto& [what, amount] : used) {
        const bool rose = amount > before.second[what];
        ASSERT_FALSE(rose && amount > hard.at(what) && settled_.contains(name)) << name << what;
      }
    } else {
      settled_.erase(name);
    }
    // What was under way when the quota came has an end as well.
    if (core_->quotas->pending_writes() == 0) settled_.insert(name);
    before = {quota.mod_revision, used};
  }

  Rng rng_;
  bool fails_ = false;
  SimLoop loop_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Core> core_;
  ResourcePtr pods_, quotas_;
  std::map<std::string, std::pair<store::Revision, schema::Amounts>> seen_;
  std::set<std::string> settled_;  // quotas that nothing older than them can push above a bound
};

// One commit takes so many writes at most: when the quota is there, some pods are still under way.
TEST(QuotaLedger, WhatIsUnderWayWhenAQuotaComesCounts) {
  constexpr int kPods = static_cast<int>(store::kMaxBatchWrites) + 100;
  SimLoop loop;
  const auto store = store::OpenMemoryStore(loop, MakeDecorator());
  Core core(loop, *store, ServerOptions());
  const auto create = [&](const char* plural, const std::string& name, const std::string& spec,
                          WriteDone done) {
    const ResourcePtr resource = core.registry.Find("", "v1", plural);
    WriteContext context{*resource->kind, "d", name, loop.Now(), false, {}};
    CreateObject(
        core, resource, context,
        Json(R"({"metadata":{"namespace":"d","name":")" + name + R"("},"spec":)" + spec + "}"),
        std::move(done));
  };
  bool quota_is_there = false;
  int there = 0;
  create("resourcequotas", "q", R"({"hard":{"pods":")" + std::to_string(kPods) + "\"}}",
         [&](const Result<store::EntryPtr>&) { quota_is_there = true; });
  for (int i = 0; i < kPods; ++i) {
    create("pods", "p" + std::to_string(i), R"({"containers":[]})",
           [&](const Result<store::EntryPtr>& entry) { there += entry ? 1 : 0; });
  }
  while (!quota_is_there && loop.Step()) {
  }
  ASSERT_LT(there, kPods) << "all have committed with the quota";
  const auto try_above = [&] {
    std::string refusal = "no answer";
    create("pods", "above", R"({"containers":[]})", [&](const Result<store::EntryPtr>& entry) {
      refusal = entry ? "taken" : entry.error().message();
    });
    return refusal;
  };
  // More are there than are counted in one task.
  EXPECT_EQ(try_above(),
            "pods \"above\" is forbidden: status unknown for quota: q, resources: pods");
  loop.RunReady();
  EXPECT_EQ(there, kPods);
  EXPECT_EQ(try_above(),
            fmt::format("pods \"above\" is forbidden: exceeded quota: q, requested: pods=1, used: "
                        "pods={0}, limited: pods={0}",
                        kPods));
}

TEST(QuotaLedgerProperty, NothingIsExceededAndNothingLeaks) {
  const LogLevel level = GetLogLevel();
  SetLogLevel(LogLevel::kNone);  // of the store, which is full again and again
  int created = 0, refused = 0, failed = 0, counting = 0;
  constexpr int64_t kSeeds = SeedsOf(150);
  for (int64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    World world(static_cast<uint64_t>(seed));
    for (int step = 0; step < 200 && !testing::Test::HasFatalFailure(); ++step) world.Step();
    world.Drain();
    if (testing::Test::HasFailure()) break;
    created += world.created;
    refused += world.refused;
    failed += world.failed;
    counting += world.counting;
  }
  SetLogLevel(level);
  if (testing::Test::HasFailure()) return;
  EXPECT_GT(created, 10 * kSeeds);
  EXPECT_GT(refused, 2 * kSeeds);
  EXPECT_GT(failed, kSeeds / 2);
  EXPECT_GT(counting, kSeeds);
}

}  // namespace
}  // namespace muster::apiserver
