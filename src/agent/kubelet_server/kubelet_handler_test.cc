#include "agent/kubelet_server/kubelet_handler.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "agent/kubelet_server/exec_session.h"
#include "agent/pod_machine_test_support.h"
#include "net/websocket.h"

namespace muster::agent {
namespace {

// The far end of an upgraded connection: what the node wrote, and a way to write to it.
struct Wire {
  std::string to_client;
  Function<void(std::string_view)> to_node;
  bool closed = false, paused = false;
};

class FakeStream final : public net::ByteStream {
 public:
  explicit FakeStream(std::shared_ptr<Wire> wire) : wire_(std::move(wire)) {}
  ~FakeStream() override { wire_->closed = true; }
  void OnData(Function<void(std::string_view)> on_data) override {
    wire_->to_node = std::move(on_data);
  }
  void OnClose(Task) override {}
  void Write(std::string bytes) override { wire_->to_client += bytes; }
  size_t BufferedBytes() const override { return 0; }
  void PauseReading(bool paused) override { wire_->paused = paused; }
  void Close() override { wire_->closed = true; }

 private:
  std::shared_ptr<Wire> wire_;
};

struct Answer {
  int status = 0;
  std::string body;
  bool ended = false;
  std::shared_ptr<Wire> wire = std::make_shared<Wire>();
};

class FakeWriter final : public net::ResponseWriter {
 public:
  explicit FakeWriter(std::shared_ptr<Answer> answer) : answer_(std::move(answer)) {}
  void Send(net::Response response) override {
    answer_->status = response.status;
    answer_->body = response.body;
    answer_->ended = true;
  }
  void StartStream(int status, net::Headers) override { answer_->status = status; }
  void Write(std::shared_ptr<const std::string> bytes) override { answer_->body += *bytes; }
  void End() override { answer_->ended = true; }
  size_t BufferedBytes() const override { return 0; }
  std::unique_ptr<net::ByteStream> Upgrade(net::Headers) override {
    answer_->status = 101;
    return std::make_unique<FakeStream>(answer_->wire);
  }
  void OnPeerGone(Task) override {}

 private:
  std::shared_ptr<Answer> answer_;
};

struct Kubelet {
  Kubelet()
      : handler(machine.data_dir, machine.loop, *machine.pool, machine.node->runtime,
                machine.node->manager) {}

  std::shared_ptr<Answer> Send(const std::string& target, net::Headers headers = {},
                               const std::string& user = "kube-apiserver") {
    net::Request request;
    request.method = "GET";
    request.target = target;
    request.headers = std::move(headers);
    request.peer.user = user;
    auto answer = std::make_shared<Answer>();
    handler.Handle(std::move(request), std::make_shared<FakeWriter>(answer));
    return answer;
  }
  std::shared_ptr<Answer> Get(const std::string& target,
                              const std::string& user = "kube-apiserver") {
    auto answer = Send(target, {}, user);
    EXPECT_TRUE(machine.Until([&] { return answer->ended; })) << target;
    return answer;
  }
  std::shared_ptr<Answer> Exec(const std::string& query) {
    net::Request handshake;
    net::PrepareWebSocket(handshake, {"v5.channel.k8s.io"});
    return Send("/exec/d/p/main?" + query, handshake.headers);
  }
  // The messages of one channel so far, joined.
  static std::string Channel(const Answer& answer, char channel) {
    net::WebSocketDecoder decoder(false);
    std::vector<net::WebSocketFrame> frames;
    EXPECT_TRUE(decoder.Feed(answer.wire->to_client, frames).ok());
    std::string out;
    for (const net::WebSocketFrame& frame : frames) {
      if (frame.opcode == 2 && !frame.payload.empty() && frame.payload[0] == channel) {
        out += frame.payload.substr(1);
      }
    }
    return out;
  }
  void Type(Answer& answer, char channel, const std::string& text) {
    std::string frame;
    net::AppendWebSocketFrame(frame, 2, true, channel + text, "mask");
    answer.wire->to_node(frame);
  }

  Machine machine;
  KubeletHandler handler;
};

TEST(KubeletApi, AnswersTheApiServerOnly) {
  InNetworkNamespace([] {
    Kubelet k;
    EXPECT_EQ(k.Get("/healthz")->body, "ok");
    EXPECT_EQ(k.Get("/healthz", "")->status, 401);
    EXPECT_EQ(k.Get("/healthz", "system:node:other")->status, 403);
    EXPECT_EQ(k.Get("/nothing")->status, 404);
  });
}

// The agent comes again and has not heard of its pods yet: that is no reason to deny them.
TEST(KubeletApi, DeniesNoPodBeforeItKnowsAll) {
  InNetworkNamespace([] {
    Kubelet k;
    ASSERT_FALSE(k.machine.node->manager.synced());
    const auto early = k.Send("/containerLogs/d/none/main");
    EXPECT_EQ(early->status, 503);
    EXPECT_EQ(early->body, "this node has just started and does not know yet of pod \"none\"\n");
    EXPECT_EQ(k.Exec("command=true")->status, 503);
    ASSERT_TRUE(k.machine.Until([&] { return k.machine.node->manager.synced(); }));
    EXPECT_EQ(k.Send("/containerLogs/d/none/main")->status, 404);
  });
}

TEST(KubeletApi, GivesLogsAndFollowsThemToTheEnd) {
  InNetworkNamespace([] {
    Kubelet k;
    k.machine.Create(OneContainer("p",
                                  "echo one; echo two; while [ ! -e /go/on ]; do sleep 0.01; "
                                  "done; echo three; exit 1",
                                  "OnFailure",
                                  R"(,"volumeMounts":[{"name":"go","mountPath":"/go"}])",
                                  R"("volumes":[{"name":"go","emptyDir":{}}],)"));
    ASSERT_TRUE(k.machine.Until([&] { return k.machine.Log("p") == "one\ntwo\n"; }));
    ASSERT_TRUE(k.machine.UntilPhase("p", "Running"));
    EXPECT_EQ(k.Get("/containerLogs/d/p/main")->body, "one\ntwo\n");
    EXPECT_EQ(k.Get("/containerLogs/d/p/main?tailLines=1")->body, "two\n");
    EXPECT_EQ(k.Get("/containerLogs/d/p/main?limitBytes=5")->body, "one\nt");
    EXPECT_EQ(k.Get("/containerLogs/d/p/main?sinceSeconds=3600")->body, "one\ntwo\n");
    EXPECT_EQ(k.Get("/containerLogs/d/p/main?tailLines=x")->status, 400);
    EXPECT_EQ(k.Get("/containerLogs/d/p/other")->status, 400);
    EXPECT_EQ(k.Get("/containerLogs/d/p/main?previous=true")->status, 400);
    const std::string stamped = k.Get("/containerLogs/d/p/main?timestamps=true&tailLines=1")->body;
    EXPECT_EQ(stamped.substr(stamped.size() - 6), "Z two\n");

    const auto followed = k.Send("/containerLogs/d/p/main?follow=true");
    ASSERT_TRUE(k.machine.Until([&] { return followed->body == "one\ntwo\n"; }));
    EXPECT_FALSE(followed->ended);
    ASSERT_TRUE(WriteFile(k.machine.PodDirectory("p") + "/volumes/go/on", "").ok());
    ASSERT_TRUE(k.machine.Until([&] { return followed->ended; }));
    EXPECT_EQ(followed->body, "one\ntwo\nthree\n");
    ASSERT_TRUE(
        k.machine.Until([&] { return k.machine.Status("p")["restartCount"].AsInt() == 1; }));
    EXPECT_EQ(k.Get("/containerLogs/d/p/main?previous=true")->body, "one\ntwo\nthree\n");
  });
}

TEST(KubeletApi, PreviousLogsAreThoseOfTheLastRunThatEnded) {
  InNetworkNamespace([] {
    Kubelet k;
    k.machine.Create(OneContainer("p", "echo run >> /go/runs; wc -l < /go/runs; exit 1", "Always",
                                  R"(,"volumeMounts":[{"name":"go","mountPath":"/go"}])",
                                  R"("volumes":[{"name":"go","emptyDir":{}}],)"));
    // Its second run has ended and the third one waits.
    ASSERT_TRUE(k.machine.Until([&] {
      const json::Value status = k.machine.Status("p");
      return status["restartCount"].AsInt() == 1 &&
             status["state"]["waiting"]["reason"].AsString() == "CrashLoopBackOff";
    }));
    EXPECT_EQ(k.Get("/containerLogs/d/p/main?previous=true")->body, "2\n");
    EXPECT_EQ(k.Get("/containerLogs/d/p/main")->body, "2\n");
  });
}

TEST(KubeletApi, ExecRunsInTheContainerAndTellsTheExitCode) {
  InNetworkNamespace([] {
    Kubelet k;
    k.machine.Create(OneContainer("p", "echo mine > /tmp/mark; echo up; sleep 1000"));
    ASSERT_TRUE(k.machine.UntilPhase("p", "Running"));
    ASSERT_TRUE(k.machine.Until([&] { return k.machine.Log("p") == "up\n"; }));
    const auto run = k.Exec(
        "command=sh&command=-c&command=cat+/tmp/mark;hostname;echo+bad+%3E%262;exit+4"
        "&stdout=true&stderr=true");
    ASSERT_TRUE(k.machine.Until([&] { return !Kubelet::Channel(*run, 3).empty(); }));
    EXPECT_EQ(Kubelet::Channel(*run, 1), "mine\np\n");
    EXPECT_EQ(Kubelet::Channel(*run, 2), "bad\n");
    const json::Value status = *json::Parse(Kubelet::Channel(*run, 3));
    EXPECT_EQ(status["reason"].AsString(), "NonZeroExitCode");
    EXPECT_EQ(status["details"]["causes"].At(0)["message"].AsString(), "4");

    const auto none = k.Exec("command=no-such-program&stdout=true");
    ASSERT_TRUE(k.machine.Until([&] { return !Kubelet::Channel(*none, 3).empty(); }));
    EXPECT_NE(Kubelet::Channel(*none, 3).find("executable file not found"), std::string::npos);
  });
}

// kubectl throws away what comes before it knows its streams.
TEST(KubeletApi, ExecSaysNothingBeforeThePeerReads) {
  InNetworkNamespace([] {
    Kubelet k;
    k.machine.Create(OneContainer("p", "sleep 1000"));
    ASSERT_TRUE(k.machine.UntilPhase("p", "Running"));
    const auto run = k.Exec("command=echo&command=hello&stdout=true");
    std::string ping, pong;
    net::AppendWebSocketFrame(ping, 9, true, "", "");
    EXPECT_EQ(run->wire->to_client, ping);
    const Time asked = k.machine.loop.Now();
    net::AppendWebSocketFrame(pong, 10, true, "", "mask");
    run->wire->to_node(pong);
    ASSERT_TRUE(k.machine.Until([&] { return Kubelet::Channel(*run, 1) == "hello\n"; }));
    EXPECT_GE(k.machine.loop.Now() - asked, kExecStreamsDelay);
  });
}

TEST(KubeletApi, ExecPassesInputUntilItIsClosed) {
  InNetworkNamespace([] {
    Kubelet k;
    k.machine.Create(OneContainer("p", "sleep 1000"));
    ASSERT_TRUE(k.machine.UntilPhase("p", "Running"));
    const auto run = k.Exec("command=cat&stdin=true&stdout=true");
    k.Type(*run, 0, "hello\n");
    ASSERT_TRUE(k.machine.Until([&] { return Kubelet::Channel(*run, 1) == "hello\n"; }));
    k.Type(*run, static_cast<char>(255), std::string(1, '\0'));
    ASSERT_TRUE(k.machine.Until([&] { return !Kubelet::Channel(*run, 3).empty(); }));
    EXPECT_NE(Kubelet::Channel(*run, 3).find("Success"), std::string::npos);
  });
}

TEST(KubeletApi, ExecSlowsAPeerThatSendsFasterThanTheCommandReads) {
  InNetworkNamespace([] {
    Kubelet k;
    k.machine.Create(OneContainer("p", "sleep 1000"));
    ASSERT_TRUE(k.machine.UntilPhase("p", "Running"));
    const auto run = k.Exec(
        "command=sh&command=-c&command=while+[+!+-e+/tmp/go+];do+sleep+0.01;done;wc+-c"
        "&stdin=true&stdout=true");
    constexpr size_t kTotal = 10'000'000, kPiece = 32'768;
    size_t sent = 0;
    const auto send_while_open = [&] {
      while (sent < kTotal && !run->wire->paused) {
        const size_t piece = std::min(kPiece, kTotal - sent);
        k.Type(*run, 0, std::string(piece, '\0'));
        sent += piece;
      }
    };
    send_while_open();  // the command has not even started
    EXPECT_LE(sent, kMaxExecBacklogBytes + kPiece);
    for (int i = 0; i < 3; ++i) k.Type(*run, 0, "on the way");  // read before the pause
    const auto go = k.Exec("command=touch&command=/tmp/go");
    ASSERT_TRUE(k.machine.Until([&] {
      send_while_open();
      return sent == kTotal;
    }));
    k.Type(*run, static_cast<char>(255), std::string(1, '\0'));
    k.Type(*run, 0, "after the end");
    ASSERT_TRUE(k.machine.Until([&] { return !Kubelet::Channel(*run, 3).empty(); }));
    EXPECT_EQ(Kubelet::Channel(*run, 1), "10000030\n");
    EXPECT_FALSE(run->wire->paused);
  });
}

TEST(KubeletApi, ExecForgetsInputThatNobodyReads) {
  InNetworkNamespace([] {
    signal(SIGPIPE, SIG_IGN);  // as main() does
    Kubelet k;
    k.machine.Create(OneContainer("p", "sleep 1000"));
    ASSERT_TRUE(k.machine.UntilPhase("p", "Running"));
    const auto run = k.Exec(
        "command=sh&command=-c&command=exec+0%3C%26-;while+[+!+-e+/tmp/go+];do+sleep+0.01;done"
        "&stdin=true&stdout=true");
    size_t sent = 0;
    ASSERT_TRUE(k.machine.Until([&] {
      if (!run->wire->paused) k.Type(*run, 0, std::string(500'000, 'x')), sent += 500'000;
      return sent >= 5'000'000;
    }));
    const auto go = k.Exec("command=touch&command=/tmp/go");
    ASSERT_TRUE(k.machine.Until([&] { return !Kubelet::Channel(*run, 3).empty(); }));
    EXPECT_NE(Kubelet::Channel(*run, 3).find("Success"), std::string::npos);
  });
}

TEST(KubeletApi, ExecGivesATerminal) {
  InNetworkNamespace([] {
    Kubelet k;
    k.machine.Create(OneContainer("p", "sleep 1000"));
    ASSERT_TRUE(k.machine.UntilPhase("p", "Running"));
    const auto run = k.Exec(
        "command=sh&command=-c&command=read+x;tty;stty+size&stdin=true&stdout=true&tty=true");
    k.Type(*run, 4, R"({"Width":120,"Height":40})");
    k.Type(*run, 0, "\n");
    ASSERT_TRUE(k.machine.Until([&] { return !Kubelet::Channel(*run, 3).empty(); }));
    const std::string out = Kubelet::Channel(*run, 1);
    EXPECT_NE(out.find("/dev/pts/0"), std::string::npos) << out;
    EXPECT_NE(out.find("40 120"), std::string::npos) << out;
  });
}

TEST(ExecStatus, IsWhatKubectlReads) {
  EXPECT_EQ(ExecStatus(0), R"({"metadata":{},"status":"Success"})");
  EXPECT_NE(ExecStatus(3).find(R"("reason":"ExitCode","message":"3")"), std::string::npos);
  EXPECT_EQ(ExecStatus(-1).find("ExitCode"), std::string::npos);
}

}  // namespace
}  // namespace muster::agent
