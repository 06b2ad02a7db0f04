// A Job is counted right whichever write is lost, refused, or the last one before a crash.

#include <memory>
#include <optional>

#include "controllers/job/job_test_base.h"

namespace muster::controllers {
namespace {

enum class Fault { kRefused, kAnswerLost, kCrashBefore, kCrashAfter };

// Takes the answer and tells nobody.
class SilentWriter final : public net::ResponseWriter {
 public:
  void Send(net::Response) override {}
  void StartStream(int, net::Headers) override {}
  void Write(std::shared_ptr<const std::string>) override {}
  void End() override {}
  size_t BufferedBytes() const override { return 0; }
  std::unique_ptr<net::ByteStream> Upgrade(net::Headers) override { return nullptr; }
  void OnPeerGone(Task) override {}
};

class JobFaults {
 public:
  JobFaults(Fault fault, size_t at, bool indexed) : fault_(fault), at_(at) {
    api_.before_handle = [this](const net::Request& request, const net::ResponseWriterPtr& writer) {
      return OnRequest(request, writer);
    };
    Restart();
    api_.Put(kJobs, Yaml(JobYaml(fmt::format("  parallelism: 2\n  completions: 3\n{}",
                                             indexed ? "  completionMode: Indexed" : ""))));
  }

  // The second pod fails, the others succeed. True once the Job is over.
  bool Run() {
    for (int step = 0; step < 60; ++step) {
      loop_.RunFor(seconds(5));
      if (crashed_) Restart();
      EndOnePod();
    }
    return IsFinished(Job());
  }

  json::Value Job() const { return *api_.Find(kJobs, "d", "train"); }
  size_t writes() const { return writes_; }
  size_t made() const { return made_; }
  size_t CountPods(bool (*holds)(const json::Value&)) const {
    size_t count = 0;
    for (const auto& [key, object] : api_.objects) {
      if (key.starts_with(std::string(kPods) + "|") && holds(object)) ++count;
    }
    return count;
  }
  size_t ExtraWrites() { return world_->runtime.CountWritesOfExtraPass(); }

 private:
  struct World {
    explicit World(SimLoop& loop, client::FakeApi& api)
        : transport(loop, api, {}),
          client(loop, transport, "tester"),
          informers(client),
          runtime(client, informers, Rng(1)) {
      runtime.Add(std::make_unique<TrackedPodsController>());
      runtime.Add(std::make_unique<JobController>());
      runtime.Start();
      informers.Start();
    }
    client::InProcessTransport transport;
    client::ApiClient client;
    client::InformerSet informers;
    client::Runtime runtime;
  };

  void Restart() {
    crashed_ = false;
    world_.reset();
    world_ = std::make_unique<World>(loop_, api_);
  }

  bool OnRequest(const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (replaying_ || request.method == "GET" ||
        request.target.find("/events") != std::string::npos)
      return true;
    if (crashed_) return false;  // nothing leaves a process that is gone
    if (writes_++ != at_) return Count(request);
    switch (fault_) {
      case Fault::kRefused:
        client::FakeApi::SendError(*writer, 500, "InternalError", "try again");
        return false;
      case Fault::kAnswerLost:
        Apply(request);
        client::FakeApi::SendError(*writer, 504, "Timeout", "lost");
        return false;
      case Fault::kCrashAfter:
        Apply(request);
        [[fallthrough]];
      case Fault::kCrashBefore:
        crashed_ = true;
        return false;
    }
    return true;
  }

  void Apply(const net::Request& request) {
    Count(request);
    replaying_ = true;
    api_.Handle(request, std::make_shared<SilentWriter>());
    replaying_ = false;
  }

  bool Count(const net::Request& request) {
    const json::Value body = client::FakeApi::BodyOf(request);
    if (request.method == "POST" &&
        api_.Find(kPods, "d", body["metadata"]["name"].Str()) == nullptr)
      ++made_;
    return true;
  }

  void EndOnePod() {
    for (const auto& [key, object] : api_.objects) {
      if (!key.starts_with(std::string(kPods) + "|") || !IsActive(object)) continue;
      json::Value pod =
          object.Set("status", json::Obj({{"phase", ++ended_ == 2 ? "Failed" : "Succeeded"}}));
      return api_.Put(kPods, std::move(pod));
    }
  }

  const Fault fault_;
  const size_t at_;
  SimLoop loop_;
  client::FakeApi api_{loop_};
  std::unique_ptr<World> world_;
  bool crashed_ = false, replaying_ = false;
  size_t writes_ = 0, made_ = 0;
  int ended_ = 0;
};

TEST(JobFaults, EveryWriteMayFail) {
  for (const bool indexed : {false, true}) {
    JobFaults calm(Fault::kRefused, 1'000'000, indexed);
    ASSERT_TRUE(calm.Run());
    ASSERT_GT(calm.writes(), 10u);
    for (const Fault fault :
         {Fault::kRefused, Fault::kAnswerLost, Fault::kCrashBefore, Fault::kCrashAfter}) {
      for (size_t at = 0; at < calm.writes(); ++at) {
        SCOPED_TRACE(
            fmt::format("indexed {} fault {} write {}", indexed, static_cast<int>(fault), at));
        JobFaults faulty(fault, at, indexed);
        ASSERT_TRUE(faulty.Run());
        const json::Value status = faulty.Job()["status"];
        EXPECT_EQ(status["succeeded"].AsInt(), 3);
        EXPECT_EQ(status["failed"].AsInt(), 1);
        EXPECT_EQ(status["uncountedTerminatedPods"], Yaml("{}"));
        EXPECT_EQ(faulty.made(), 4u);  // none was made twice
        EXPECT_EQ(faulty.CountPods(IsTracked), 0u);
        EXPECT_EQ(faulty.CountPods(IsActive), 0u);
        EXPECT_EQ(faulty.ExtraWrites(), 0u);
      }
    }
  }
}

}  // namespace
}  // namespace muster::controllers
