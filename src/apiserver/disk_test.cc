// The API over a store on disk: old revisions, and a disk that takes no more.

#include <deque>

#include <gtest/gtest.h>

#include "apiserver/apiserver_testing.h"
#include "apiserver/core.h"
#include "store/sqlite_backend.h"
#include "store/store_core.h"
#include "store/store_test_support.h"

namespace muster::apiserver {
namespace {

// Runs its work when told to.
class HeldPool final : public Pool {
 public:
  void Run(Task work, Loop& loop, Task done) override {
    jobs_.push_back({std::move(work), &loop, std::move(done)});
  }
  size_t waiting() const { return jobs_.size(); }
  void RunAll() {
    for (Job& job : jobs_) {
      job.work();
      job.loop->Post(std::move(job.done));
    }
    jobs_.clear();
  }

 private:
  struct Job {
    Task work;
    Loop* loop;
    Task done;
  };
  std::deque<Job> jobs_;
};

constexpr char kConfigMaps[] = "/api/v1/namespaces/default/configmaps";

class DiskTest : public ::testing::Test {
 protected:
  void Start(store::SqliteOptions sqlite = {}) {
    ServerOptions options;
    options.pool = &pool_;
    test_ = std::make_unique<TestServer>(std::move(options), [&](Loop& loop) {
      store::StoreCore::Options core;
      core.decorator = MakeDecorator();
      core.max_history_bytes = 3000;
      return *store::StoreCore::Open(
          loop, *store::OpenSqliteBackend(folder_.File("store/muster.db"), sqlite),
          std::move(core));
    });
    pool_.RunAll();
    test_->loop.RunReady();
  }
  TestServer::WriterPtr Create(const std::string& name, size_t bytes = 300) {
    return test_->Send("POST", kConfigMaps,
                       "{\"metadata\":{\"name\":\"" + name + "\",\"labels\":{\"l\":\"" +
                           name.substr(0, 1) + "\"}},\"data\":{\"k\":\"" + std::string(bytes, 'v') +
                           "\"}}");
  }
  // Enough that the revision before it is no longer in memory.
  store::Revision MakePast() {
    for (const char* name : {"a1", "a2", "b1", "b2", "a3"}) EXPECT_EQ(Create(name)->status, 201);
    const store::Revision past = test_->store->CommittedRevision();
    for (int i = 0; i < 30; ++i) EXPECT_EQ(Create("c" + std::to_string(i))->status, 201);
    for (int i = 0; i < 30; ++i)
      EXPECT_EQ(test_->Send("DELETE", kConfigMaps + ("/c" + std::to_string(i)))->status, 200);
    EXPECT_FALSE(test_->store->InMemory(past));
    return past;
  }
  TestServer::WriterPtr List(const std::string& query) {
    return test_->Send("GET", kConfigMaps + ("?" + query));
  }
  static std::string Names(const FakeWriter& writer) {
    std::string names;
    const json::Value list = TestServer::Json(writer);
    for (const json::Value& item : list["items"].items()) {
      const std::string name = item["metadata"]["name"].Str();
      if (name != "kube-root-ca.crt") names += name + " ";
    }
    return names;
  }

  store::TemporaryFolder folder_;
  HeldPool pool_;
  std::unique_ptr<TestServer> test_;
};

TEST_F(DiskTest, ListsOfThePastAreReadOnThePool) {
  Start();
  const std::string exact =
      fmt::format("resourceVersion={}&resourceVersionMatch=Exact", MakePast());
  const auto all = List(exact);
  const auto labelled = List(exact + "&labelSelector=l%3Da");
  EXPECT_EQ(all->status, 0);  // the loop is free meanwhile
  EXPECT_EQ(Create("new")->status, 201);
  ASSERT_EQ(pool_.waiting(), 2U);
  pool_.RunAll();
  test_->loop.RunReady();
  EXPECT_EQ(all->status, 200);
  EXPECT_EQ(Names(*all), "a1 a2 a3 b1 b2 ");
  EXPECT_EQ(Names(*labelled), "a1 a2 a3 ");
}

TEST_F(DiskTest, PagesOfThePastGoOnWhereTheyStopped) {
  Start();
  const store::Revision past = MakePast();
  std::string query = fmt::format("limit=2&resourceVersion={}", past);
  std::string names;
  for (int page = 0; page < 3; ++page) {
    const auto writer = List(query);
    pool_.RunAll();
    test_->loop.RunReady();
    ASSERT_EQ(writer->status, 200) << writer->body;
    names += Names(*writer) + "| ";
    const json::Value metadata = TestServer::Json(*writer)["metadata"];
    EXPECT_EQ(metadata["resourceVersion"].Str(), std::to_string(past));
    query = "limit=2&continue=" + metadata["continue"].Str();
  }
  EXPECT_EQ(names, "a1 a2 | a3 b1 | b2 | ");
}

TEST_F(DiskTest, PastThatIsCompactedWhileItWaitsIsGone) {
  Start();
  const store::Revision past = MakePast();
  const std::string exact = fmt::format("resourceVersion={}&resourceVersionMatch=Exact", past);
  const auto writer = List(exact);
  ASSERT_TRUE(test_->store->Compact(test_->store->CommittedRevision()).ok());
  test_->loop.RunReady();
  pool_.RunAll();
  test_->loop.RunReady();
  EXPECT_EQ(writer->status, 410);
  EXPECT_EQ(TestServer::Json(*writer)["reason"].AsString(), "Expired");
  // Outside the window it is refused at once.
  EXPECT_EQ(List(exact)->status, 410);
  EXPECT_EQ(pool_.waiting(), 0U);
}

TEST_F(DiskTest, ListsOfThePastAreBounded) {
  Start();
  const std::string exact =
      fmt::format("resourceVersion={}&resourceVersionMatch=Exact", MakePast());
  for (size_t i = 0; i < kMaxPastReads; ++i) EXPECT_EQ(List(exact)->status, 0);
  EXPECT_EQ(List(exact)->status, 429);
  pool_.RunAll();
  test_->loop.RunReady();
  EXPECT_EQ(List(exact)->status, 0);
  pool_.RunAll();
  test_->loop.RunReady();
}

TEST_F(DiskTest, ServerMayEndWhileThePastIsRead) {
  Start();
  const auto writer =
      List(fmt::format("resourceVersion={}&resourceVersionMatch=Exact", MakePast()));
  test_->server.reset();
  test_->store.reset();
  pool_.RunAll();
  test_->loop.RunReady();
  EXPECT_EQ(writer->status, 0);
}

TEST_F(DiskTest, FullDiskRefusesWritesWithTheReasonAndGoesOnReading) {
  Start({.max_pages = 400});
  ASSERT_EQ(Create("kept")->status, 201);
  TestServer::WriterPtr refused;
  for (int i = 0; i < 100; ++i) {
    refused = Create("big" + std::to_string(i), 20'000);
    if (refused->status != 201) break;
  }
  for (int tries = 0; tries < 2; ++tries) {  // the write that fails, and the next one
    EXPECT_EQ(refused->status, 500);
    const json::Value status = TestServer::Json(*refused);
    EXPECT_EQ(status["reason"].AsString(), "InternalError");
    for (const char* text : {"is full", "muster.db", "read-only", "goes on by itself"})
      EXPECT_TRUE(status["message"].Str().contains(text)) << status["message"].Str();
    refused = Create("next");
  }
  const std::string kept = std::string(kConfigMaps) + "/kept";
  EXPECT_EQ(test_->Send("GET", kept)->status, 200);
  EXPECT_EQ(test_->Send("GET", kConfigMaps)->status, 200);
  EXPECT_EQ(test_->Send("DELETE", kept)->status, 500);
  EXPECT_EQ(test_->Send("GET", kept)->status, 200);
  const auto ready = test_->Send("GET", "/readyz?verbose");
  EXPECT_EQ(ready->status, 500);
  EXPECT_TRUE(ready->body.contains("[-]store failed: the store is read-only")) << ready->body;
  EXPECT_TRUE(ready->body.contains("is full")) << ready->body;
}

TEST_F(DiskTest, ReasonsOfHealthAreNotForEverybody) {
  Start({.max_pages = 400});
  for (int i = 0; i < 100; ++i) Create("big" + std::to_string(i), 20'000);
  net::Request request;
  request.method = "GET";
  request.target = "/readyz?verbose";
  auto writer = std::make_shared<FakeWriter>();
  test_->server->Handle(std::move(request), writer);
  EXPECT_EQ(writer->status, 500);
  EXPECT_TRUE(writer->body.contains("[-]store failed: reason withheld")) << writer->body;
  EXPECT_FALSE(writer->body.contains("muster.db")) << writer->body;
}

}  // namespace
}  // namespace muster::apiserver
