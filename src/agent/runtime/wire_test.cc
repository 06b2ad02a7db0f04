#include "agent/runtime/wire.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace muster::agent {
namespace {

struct Pair {
  Pair() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    a = std::make_unique<WireConnection>(UniqueFd(fds[0]));
    raw = fds[0];
    b = std::make_unique<WireConnection>(UniqueFd(fds[1]));
  }
  std::unique_ptr<WireConnection> a, b;
  int raw = -1;
};

TEST(Wire, CarriesFramesInOrder) {
  Pair p;
  p.a->Send(json::Obj({{"n", 1}}));
  p.a->Send(json::Obj({{"n", 2}}));
  p.b->ReadAvailable();
  EXPECT_EQ(p.b->Next()->message["n"].AsInt(), 1);
  EXPECT_EQ(p.b->Next()->message["n"].AsInt(), 2);
  EXPECT_FALSE(p.b->Next().has_value());
  EXPECT_FALSE(p.b->broken());
}

TEST(Wire, CarriesDescriptorsWithTheirFrame) {
  Pair p;
  int pipe_fds[2];
  ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  std::vector<UniqueFd> fds;
  fds.emplace_back(pipe_fds[0]);
  p.a->Send(json::Obj({{"n", 0}}));
  p.a->Send(json::Obj({{"n", 1}}), std::move(fds));
  ASSERT_EQ(write(pipe_fds[1], "x", 1), 1);
  p.b->ReadAvailable();
  EXPECT_TRUE(p.b->Next()->fds.empty());
  auto frame = p.b->Next();
  ASSERT_EQ(frame->fds.size(), 1u);
  char c = 0;
  EXPECT_EQ(read(frame->fds[0].get(), &c, 1), 1);
  EXPECT_EQ(c, 'x');
  close(pipe_fds[1]);
}

TEST(Wire, CarriesMoreThanTheSocketBuffer) {
  Pair p;
  const std::string big(2 * 1024 * 1024, 'b');
  p.a->Send(json::Obj({{"big", big}}));
  EXPECT_TRUE(p.a->WantsWrite());
  std::optional<WireFrame> frame;
  for (int i = 0; i < 1000 && !frame; ++i) {
    p.b->ReadAvailable();
    frame = p.b->Next();
    p.a->Flush();
  }
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->message["big"].AsString(), big);
}

TEST(Wire, CutsOffAPeerThatBreaksTheRules) {
  Pair long_frame;
  ASSERT_EQ(write(long_frame.raw, "\xff\xff\xff\x7f\0\0\0\0", 8), 8);
  long_frame.b->ReadAvailable();
  EXPECT_FALSE(long_frame.b->Next().has_value());
  EXPECT_TRUE(long_frame.b->broken());
  Pair no_json;
  ASSERT_EQ(write(no_json.raw, "\x01\0\0\0\0\0\0\0{", 9), 9);
  no_json.b->ReadAvailable();
  EXPECT_FALSE(no_json.b->Next().has_value());
  EXPECT_TRUE(no_json.b->broken());
  Pair missing_fd;
  ASSERT_EQ(write(missing_fd.raw, "\x02\0\0\0\x01\0\0\0{}", 10), 10);
  missing_fd.b->ReadAvailable();
  EXPECT_FALSE(missing_fd.b->Next().has_value());
  EXPECT_TRUE(missing_fd.b->broken());
}

TEST(Wire, RefusesAFrameThatIsTooLong) {
  Pair p;
  p.a->Send(json::Obj({{"big", std::string(kMaxWireFrameBytes + 1, 'b')}}));
  EXPECT_TRUE(p.a->broken());
}

}  // namespace
}  // namespace muster::agent
