#include "agent/volumes/network_mounter.h"

#include <gtest/gtest.h>

#include <deque>

#include "agent/runtime/mounts_test_support.h"
#include "loop/sim_loop.h"

namespace muster::agent {
namespace {

// A pool whose work is done when the test says so.
class SteppedPool final : public Pool {
 public:
  void Run(Task work, Loop& loop, Task done) override {
    works.push_back({std::move(work), std::move(done), &loop});
  }
  void DoFirst() {
    Work first = std::move(works.front());
    works.pop_front();
    first.work();
    first.loop->Post(std::move(first.done));
  }
  struct Work {
    Task work, done;
    Loop* loop;
  };
  std::deque<Work> works;
};

class Mounter : public MountTest {
 protected:
  // By a program that works for servers called good*.
  Mounter() {
    EXPECT_TRUE(WriteFile(dir_ + "/mount",
                          "#!/bin/sh\nfor target; do :; done\n"
                          "case $3 in good*) exec mount -t tmpfs x \"$target\";; esac\n"
                          "echo no >&2; exit 32\n",
                          0755)
                    .ok());
  }
  NetworkVolume Volume(const std::string& server, const std::string& name) const {
    NetworkVolume volume = NfsVolume(server, "/e", {}, false);
    volume.shown = name;
    volume.target = dir_ + "/" + name;
    return volume;
  }
  void Begin(const std::string& uid, std::vector<NetworkVolume> volumes) {
    mounter_->Mount(uid, std::move(volumes), [this, uid](const Status& status) {
      ended_ += fmt::format("{}:{} ", uid, status.ok() ? "ok" : "failed");
    });
  }
  void Step() {
    pool_.DoFirst();
    loop_.RunReady();
  }

  SimLoop loop_;
  SteppedPool pool_;
  std::string ended_;
  std::unique_ptr<NetworkMounter> mounter_ = std::make_unique<NetworkMounter>(
      MountTools{.program = dir_ + "/mount", .refusal = ""}, loop_, &pool_);
};

TEST_F(Mounter, MountsAllOfAPodOrSaysWhyNot) {
  Begin("p", {Volume("good", "a"), Volume("good", "b")});
  Step();
  EXPECT_EQ(ended_, "");
  Step();
  EXPECT_EQ(ended_, "p:ok ");
  EXPECT_EQ(Mounts(), 2u);
  Begin("q", {Volume("bad", "c"), Volume("good", "d")});
  Step();
  EXPECT_EQ(ended_, "p:ok q:failed ");
  EXPECT_EQ(Mounts(), 2u);
  EXPECT_TRUE(pool_.works.empty());
}

TEST_F(Mounter, OneServerLeavesTurnsToOthers) {
  for (const char* uid : {"1", "2", "3", "4"}) Begin(uid, {Volume("bad", uid)});
  EXPECT_EQ(pool_.works.size(), static_cast<size_t>(kMaxMountsPerServer));
  Begin("5", {Volume("good", "5")});
  EXPECT_EQ(pool_.works.size(), kMaxMountsPerServer + 1u);
  for (int server = 0; server < kMaxParallelMounts; ++server)
    Begin(fmt::format("s{}", server), {Volume(fmt::format("good{}", server), "s")});
  EXPECT_EQ(pool_.works.size(), static_cast<size_t>(kMaxParallelMounts));
  while (!pool_.works.empty()) Step();
  EXPECT_TRUE(ended_.starts_with("1:failed 2:failed 5:ok ")) << ended_;
  EXPECT_NE(ended_.find("4:failed"), std::string::npos) << ended_;
}

TEST_F(Mounter, APodThatEndsWaitsForNobody) {
  for (const char* uid : {"1", "2", "3"}) Begin(uid, {Volume("good", uid)});
  mounter_->Cancel("3");
  mounter_->Cancel("nobody");
  loop_.RunReady();
  EXPECT_EQ(ended_, "3:failed ") << "it had no turn yet";
  mounter_->Cancel("1");
  Step();
  EXPECT_EQ(ended_, "3:failed 1:failed ");
  Step();
  EXPECT_EQ(ended_, "3:failed 1:failed 2:ok ");
}

TEST_F(Mounter, EndsWithItsWorkUnderWay) {
  Begin("1", {Volume("good", "1")});
  mounter_.reset();
  Step();
  EXPECT_EQ(ended_, "");
  EXPECT_EQ(Mounts(), 0u) << "cancelled before its program began";
}

}  // namespace
}  // namespace muster::agent
