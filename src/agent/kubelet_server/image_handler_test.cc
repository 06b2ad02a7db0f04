// The requests of `muster image`, against a cache whose programs are missing.

#include "agent/kubelet_server/image_handler.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "agent/runtime/files.h"
#include "loop/sim_loop.h"

namespace muster::agent {
namespace {

struct Answer {
  int status = 0;
  std::string body;
};

class Writer final : public net::ResponseWriter {
 public:
  explicit Writer(std::shared_ptr<Answer> answer) : answer_(std::move(answer)) {}
  void Send(net::Response response) override { *answer_ = {response.status, response.body}; }
  void StartStream(int, net::Headers) override {}
  void Write(std::shared_ptr<const std::string>) override {}
  void End() override {}
  size_t BufferedBytes() const override { return 0; }
  std::unique_ptr<net::ByteStream> Upgrade(net::Headers) override { return nullptr; }
  void OnPeerGone(Task) override {}

 private:
  std::shared_ptr<Answer> answer_;
};

// Keeps what it is given, so that pulls take as long as the test wants.
class HeldPool final : public Pool {
 public:
  void Run(Task work, Loop&, Task done) override {
    held.push_back([work = std::move(work), done = std::move(done)]() mutable {
      work();
      done();
    });
  }
  void Release() {
    std::vector<Task> tasks = std::move(held);
    held.clear();
    for (Task& task : tasks) task();
  }
  std::vector<Task> held;
};

class ImageHandlerTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/image-handler-XXXXXX";
    dir_ = mkdtemp(path);
    cache_ = std::make_unique<ImageCache>(dir_, loop_, pool_, &programs_);
    cache_->Start({});
    pool_.Release();
    handler_ = std::make_unique<ImageHandler>(loop_, *cache_);
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  std::shared_ptr<Answer> Send(const std::string& method, const std::string& what,
                               const std::string& body = "") {
    auto answer = std::make_shared<Answer>();
    net::Request request;
    request.method = method;
    request.body = body;
    handler_->Handle(request, what, std::make_shared<Writer>(answer));
    return answer;
  }

  SimLoop loop_;
  HeldPool pool_, programs_;
  std::string dir_;
  std::unique_ptr<ImageCache> cache_;
  std::unique_ptr<ImageHandler> handler_;
};

TEST_F(ImageHandlerTest, RefusesWhatIsNoRequest) {
  EXPECT_EQ(Send("GET", "")->body, "{\"images\":[]}");
  EXPECT_EQ(Send("DELETE", "")->status, 405);
  EXPECT_EQ(Send("GET", "pull")->status, 405);
  EXPECT_EQ(Send("POST", "pull", "no JSON")->status, 400);
  EXPECT_EQ(Send("POST", "push", "{}")->status, 404);
  EXPECT_EQ(Send("POST", "pull", R"({"image":"Not A Name"})")->status, 422);
  EXPECT_EQ(Send("POST", "load", R"({"path":"x.tar"})")->status, 400);
  EXPECT_EQ(Send("POST", "remove", R"({"image":"a"})")->status, 404);
}

TEST_F(ImageHandlerTest, WhoAsksAgainHearsHowItWent) {
  const std::string body = R"({"image":"localhost:1/a"})";
  const auto first = Send("POST", "pull", body);
  EXPECT_EQ(first->status, 0);
  loop_.RunFor(kImageAnswerTime);
  EXPECT_EQ(first->status, 202);
  // It ends while nobody waits; the next one who asks gets the answer, and the one after that
  // begins anew.
  programs_.Release();
  const auto second = Send("POST", "pull", body);
  EXPECT_GE(second->status, 500) << second->body;
  EXPECT_TRUE(second->body.starts_with("failed to pull image")) << second->body;
  EXPECT_EQ(Send("POST", "pull", body)->status, 0);
}

TEST_F(ImageHandlerTest, KeepsItsLimit) {
  for (size_t i = 0; i < kMaxImageRequests; ++i)
    EXPECT_EQ(Send("POST", "pull", fmt::format(R"({{"image":"a:{}"}})", i))->status, 0);
  EXPECT_EQ(Send("POST", "pull", R"({"image":"b"})")->status, 429);
}

}  // namespace
}  // namespace muster::agent
