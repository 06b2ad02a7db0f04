#include "gpu/probe_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <set>

#include "gpu/fake_nvml_test_support.h"

namespace muster::gpu {
namespace {

// A program of tests cannot execute itself: its child is a fork.
struct Fixture {
  FakeDriver driver;
  AsioLoop loop;
  std::set<pid_t> children;
  std::unique_ptr<ProbeProcess> prober = Make({});

  std::unique_ptr<ProbeProcess> Make(ProbeProcess::Deadlines deadlines) {
    return std::make_unique<ProbeProcess>(loop, [this] { return Fork(); }, deadlines);
  }

  Result<ProbeChild> Fork() {
    int fds[2];
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
      close(fds[0]);
      ServeProbe(fds[1]);
    }
    close(fds[1]);
    children.insert(pid);
    return ProbeChild{fds[0], pid};
  }

  Result<Inventory> Read(bool anew = false) {
    Result<Inventory> out = Error(Reason::kUnknown, "no answer");
    loop.After(milliseconds(1), [&] {
      prober->Read(anew, [&](Result<Inventory> answer) {
        out = std::move(answer);
        loop.Stop();
      });
    });
    loop.Restart();
    loop.Run();
    return out;
  }
};

TEST(ProbeProcess, AsksTheDriverInAChildThatStays) {
  Fixture f;
  f.driver.Says(kThreeGpus);
  for (int i = 0; i < 3; ++i) {
    const Result<Inventory> read = f.Read();
    ASSERT_TRUE(read.has_value()) << read.error().message();
    EXPECT_EQ(read->gpus.size(), 3u);
  }
  EXPECT_EQ(f.children.size(), 1u);
}

TEST(ProbeProcess, ReasonsComeThrough) {
  Fixture f;
  setenv(kNvmlLibraryVariable, "/nonexistent.so", 1);
  const Result<Inventory> read = f.Read();
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().reason(), Reason::kNotFound);
}

TEST(ProbeProcess, ADriverThatHangsIsGivenUpAndAskedAgain) {
  Fixture f;
  f.prober = f.Make({milliseconds(300), milliseconds(300)});
  f.driver.Says(std::string(kThreeGpus) + "hang\n");
  for (int i = 0; i < 3; ++i) {
    const Result<Inventory> read = f.Read();
    ASSERT_FALSE(read.has_value());
    EXPECT_EQ(read.error().reason(), Reason::kTimeout);
  }
  EXPECT_LE(f.children.size(), 3u);
  f.driver.Says(kThreeGpus);
  f.prober = f.Make({});
  EXPECT_TRUE(f.Read().has_value());
}

TEST(ProbeProcess, AChildThatDiesIsReplaced) {
  Fixture f;
  f.driver.Says(kThreeGpus);
  ASSERT_TRUE(f.Read().has_value());
  kill(*f.children.begin(), SIGKILL);
  // Until the kernel has ended the dead one no other is started.
  Result<Inventory> read = f.Read();
  for (int i = 0; i < 1000 && !read; ++i) read = f.Read();
  EXPECT_TRUE(read.has_value());
  EXPECT_EQ(f.children.size(), 2u);
}

TEST(ProbeProcess, AChildThatIsNotNeededAnyMoreLeavesNoZombie) {
  Fixture f;
  f.driver.Says(kThreeGpus);
  ASSERT_TRUE(f.Read().has_value());
  const pid_t child = *f.children.begin();
  f.loop.After(milliseconds(1), [&f] { f.prober->Rest(); });
  int looks = 0;
  std::function<void()> look = [&] {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
      return f.loop.Stop();  // ECHILD: it was waited for
    if (++looks == 2000) {
      ADD_FAILURE() << "the child was never waited for";
      return f.loop.Stop();
    }
    f.loop.After(milliseconds(5), look);
  };
  f.loop.After(milliseconds(5), look);
  f.loop.Restart();
  f.loop.Run();
  EXPECT_TRUE(f.Read().has_value());  // asked again all the same
}

TEST(ProbeProcess, ManyGpusFitAMessage) {
  Fixture f;
  std::string many;
  for (size_t i = 0; i < kMaxGpusPerNode; ++i) {
    many += fmt::format("gpu GPU-{:036}\nmodel NVIDIA H200 with a long name\nswitch 18\n", i);
  }
  f.driver.Says(many);
  const Result<Inventory> read = f.Read();
  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(read->gpus[63].links.size(), 63u);
}

}  // namespace
}  // namespace muster::gpu
