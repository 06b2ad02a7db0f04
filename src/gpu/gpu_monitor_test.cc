#include "gpu/gpu_monitor.h"

#include <gtest/gtest.h>

#include "loop/sim_loop.h"

namespace muster::gpu {
namespace {

// Answers after `delay`, or never.
class FakeProber final : public Prober {
 public:
  explicit FakeProber(SimLoop& loop) : loop_(loop) {}
  void Read(bool anew, Done done) override {
    ++reads;
    EXPECT_FALSE(busy) << "two looks at once";
    busy = true;
    anew_reads += anew ? 1 : 0;
    loop_.After(delay, [this, done = std::move(done)]() mutable {
      busy = false;
      done(answer);
    });
  }
  void Rest() override { ++rests; }

  Result<Inventory> answer = Inventory();
  Duration delay = milliseconds(10);
  int reads = 0, anew_reads = 0, rests = 0;
  bool busy = false;

 private:
  SimLoop& loop_;
};

struct Fixture {
  SimLoop loop;
  FakeProber prober{loop};
  int changes = 0;
  GpuMonitor monitor{loop, prober, seconds(15), [this] { ++changes; }};
  Fixture() {
    Inventory one;
    one.gpus.resize(1);
    one.gpus[0].uuid = "GPU-a";
    prober.answer = one;
  }
};

TEST(GpuMonitor, LooksAgainAndAgainAndTellsOfChangesAlone) {
  Fixture f;
  f.monitor.Start();
  EXPECT_FALSE(f.monitor.known());
  f.loop.RunFor(minutes(1));
  EXPECT_TRUE(f.monitor.known());
  EXPECT_EQ(f.changes, 1);
  EXPECT_GE(f.prober.reads, 12);
  EXPECT_EQ(f.prober.anew_reads, 0);
}

TEST(GpuMonitor, WithoutADriverItAsksOnce) {
  Fixture f;
  f.prober.answer = Error(Reason::kNotFound, "libnvidia-ml.so.1: cannot open shared object file");
  f.monitor.Start();
  f.loop.RunFor(minutes(10));
  EXPECT_EQ(f.prober.reads, 1);
  EXPECT_EQ(f.prober.rests, 1);
  EXPECT_EQ(f.changes, 1) << "who waits for the first answer hears of it";
  EXPECT_TRUE(f.monitor.absent());
}

TEST(GpuMonitor, AfterAFaultTheDriverIsAskedAnewUntilAllIsWell) {
  Fixture f;
  f.monitor.Start();
  f.loop.RunFor(seconds(1));
  const Result<Inventory> fine = f.prober.answer;
  f.prober.answer = Error(Reason::kTimeout, "no answer");
  f.loop.RunFor(seconds(20));
  EXPECT_FALSE(f.monitor.health().gpus()[0].healthy);
  EXPECT_GT(f.prober.anew_reads, 0);
  f.prober.answer = fine;
  f.loop.RunFor(seconds(30));
  EXPECT_TRUE(f.monitor.health().gpus()[0].healthy);
  EXPECT_EQ(f.changes, 4) << "there, faulty, waiting, there again";
  const int anew = f.prober.anew_reads;
  f.loop.RunFor(seconds(30));
  EXPECT_EQ(f.prober.anew_reads, anew);
}

TEST(GpuMonitor, ASlowDriverIsNotAskedTwiceAtATime) {
  Fixture f;
  f.prober.delay = seconds(42);
  f.monitor.Start();
  int refreshed = 0;
  for (int i = 0; i < 3; ++i) f.monitor.Refresh([&] { ++refreshed; });
  f.loop.RunFor(minutes(5));
  EXPECT_EQ(refreshed, 3);
  EXPECT_GE(f.prober.reads, 5) << "and it goes on";
}

TEST(GpuMonitor, RefreshAsksOnlyWhenTheLastLookIsOld) {
  Fixture f;
  f.monitor.Start();
  f.loop.RunFor(milliseconds(500));
  const auto refresh = [&] {
    bool done = false;
    f.monitor.Refresh([&] { done = true; });
    f.loop.RunFor(milliseconds(20));
    EXPECT_TRUE(done);
  };
  refresh();
  EXPECT_EQ(f.prober.reads, 1);
  f.loop.RunFor(seconds(2));
  refresh();
  EXPECT_EQ(f.prober.reads, 2);
}

}  // namespace
}  // namespace muster::gpu
