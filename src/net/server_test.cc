#include "net/server.h"

#include <map>
#include <mutex>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/log.h"
#include "net/net_testing.h"

namespace muster::net {
namespace {

Response Text(std::string body, int status = 200) {
  Response response;
  response.status = status;
  response.headers.Add("Content-Type", "text/plain");
  response.body = std::move(body);
  return response;
}

void EchoTarget(const Request& request, const ResponseWriterPtr& writer) {
  writer->Send(Text(request.method + " " + request.target + " " + request.body));
}

std::shared_ptr<const std::string> Shared(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

// Pieces of 'x', `total` bytes in all.
class XSource final : public BodySource {
 public:
  explicit XSource(size_t total) : left_(total) {}
  bool Next(size_t want, std::string& out) override {
    size_t take = std::min(want, left_);
    out.append(take, 'x');
    left_ -= take;
    return left_ > 0;
  }

 private:
  size_t left_;
};

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  TestNet net;
  auto server = net.Serve(EchoTarget);
  RawSocket socket(server->port());
  socket.Write(
      "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
      "GET /3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  ASSERT_TRUE(net.RunUntil([&] { return socket.Ended(); }));
  size_t first = socket.received.find("GET /1 ");
  size_t second = socket.received.find("POST /2 hi");
  size_t third = socket.received.find("GET /3 ");
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_NE(third, std::string::npos);
  EXPECT_NE(socket.received.find("Connection: close"), std::string::npos);
}

TEST(HttpServer, ReadsOnlySoFarAheadOfAnAnswer) {
  TestNet net;
  size_t handled = 0;
  std::vector<ResponseWriterPtr> writers;
  auto server = net.Serve([&](const Request&, ResponseWriterPtr writer) {
    ++handled;
    writers.push_back(std::move(writer));
  });
  RawSocket socket(server->port());
  const std::string request =
      "GET / HTTP/1.1\r\nHost: a\r\nPad: " + std::string(1000, 'x') + "\r\n\r\n";
  std::string flood;
  while (flood.size() < 3 * kMaxPipelinedBytes) flood += request;
  const size_t count = flood.size() / request.size();
  socket.Write(flood);
  ASSERT_TRUE(net.RunUntil([&] { return handled == 1; }));
  // Each answer lets the next request in, also those that were not read while the first waited.
  EXPECT_TRUE(net.RunUntil([&] {
    socket.Pump();
    for (auto& writer : std::exchange(writers, {})) writer->Send(Text("ok"));
    return handled == count;
  }));
}

TEST(HttpServer, SendsContinueBeforeTheBody) {
  TestNet net;
  auto server = net.Serve(EchoTarget);
  RawSocket socket(server->port());
  socket.Write("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  ASSERT_TRUE(net.RunUntil([&] { return socket.Has("HTTP/1.1 100 Continue\r\n\r\n"); }));
  socket.Write("ok");
  EXPECT_TRUE(net.RunUntil([&] { return socket.Has("POST / ok"); }));
}

TEST(HttpServer, AnswersHeadWithoutABody) {
  TestNet net;
  auto server = net.Serve(
      [](const Request&, const ResponseWriterPtr& writer) { writer->Send(Text("12345")); });
  RawSocket socket(server->port());
  socket.Write("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  ASSERT_TRUE(net.RunUntil([&] { return socket.Ended(); }));
  EXPECT_NE(socket.received.find("Content-Length: 5\r\n"), std::string::npos);
  EXPECT_TRUE(socket.received.ends_with("\r\n\r\n"));
}

TEST(HttpServer, RefusesTooLongBodiesAndLetsTheClientReadWhy) {
  TestNet net;
  ServerOptions options;
  options.max_body_bytes = 1000;
  auto server = net.Serve(EchoTarget, options);
  RawSocket declared(server->port());
  declared.Write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\n");
  declared.Write(std::string(8'000'000, 'x'));
  EXPECT_TRUE(net.RunUntil([&] { return declared.Has("HTTP/1.1 413 "); }));
  RawSocket chunked(server->port());
  chunked.Write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n400\r\n" +
                std::string(1024, 'x') + "\r\n");
  EXPECT_TRUE(net.RunUntil([&] { return chunked.Has("HTTP/1.1 413 "); }));
}

TEST(HttpServer, RefusesMalformedRequests) {
  TestNet net;
  auto server = net.Serve(EchoTarget);
  for (const char* bad :
       {"nonsense\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n\r\n\r\n"}) {
    RawSocket socket(server->port());
    socket.Write(bad);
    EXPECT_TRUE(net.RunUntil([&] { return socket.Has("HTTP/1.1 400 "); })) << bad;
    socket.ShutdownWrite();
    EXPECT_TRUE(net.RunUntil([&] { return socket.Ended(); })) << bad;
  }
  RawSocket socket(server->port());
  socket.Write("GET / HTTP/1.1\r\nHost: a\r\nA: " + std::string(kMaxHeadBytes, 'x') + "\r\n\r\n");
  EXPECT_TRUE(net.RunUntil([&] { return socket.Has("HTTP/1.1 431 "); }));
  RawSocket long_url(server->port());
  long_url.Write("GET /" + std::string(kMaxHeadBytes, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(net.RunUntil([&] { return long_url.Has("HTTP/1.1 414 "); }));
}

TEST(HttpServer, ClosesSlowAndIdleConnections) {
  TestNet net;
  ServerOptions options;
  options.head_timeout = milliseconds(50);
  options.idle_timeout = milliseconds(50);
  options.body_timeout = milliseconds(50);
  auto server = net.Serve(EchoTarget, options);
  RawSocket silent(server->port());
  RawSocket half_head(server->port());
  half_head.Write("GET / HT");
  RawSocket half_body(server->port());
  half_body.Write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
  RawSocket idle(server->port());
  idle.Write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(net.RunUntil(
      [&] { return silent.Ended() && half_head.Ended() && half_body.Ended() && idle.Ended(); }));
  EXPECT_EQ(silent.received, "");
  EXPECT_TRUE(half_head.Has("HTTP/1.1 408 "));
  EXPECT_TRUE(half_body.Has("HTTP/1.1 408 "));
  EXPECT_TRUE(idle.Has("HTTP/1.1 200 "));
}

TEST(HttpServer, StreamsChunksAndEndsThem) {
  TestNet net;
  ResponseWriterPtr writer;
  auto server = net.Serve([&](const Request&, ResponseWriterPtr w) { writer = std::move(w); });
  RawSocket socket(server->port());
  socket.Write("GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(net.RunUntil([&] { return writer != nullptr; }));
  writer->StartStream(200, {});
  writer->Write(Shared("hello\n"));
  ASSERT_TRUE(net.RunUntil([&] { return socket.Has("6\r\nhello\n\r\n"); }));
  EXPECT_TRUE(net.RunUntil([&] { return writer->BufferedBytes() == 0; }));
  writer->Write(Shared("more\n"));
  writer->End();
  writer.reset();
  EXPECT_TRUE(net.RunUntil([&] { return socket.Has("5\r\nmore\n\r\n0\r\n\r\n"); }));
  socket.received.clear();
  socket.Write("GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(net.RunUntil([&] { return writer != nullptr; })) << "the connection goes on";
}

TEST(HttpServer, TellsAStreamThatItsReaderLeft) {
  TestNet net;
  ResponseWriterPtr writer;
  bool gone = false;
  auto server = net.Serve([&](const Request&, ResponseWriterPtr w) {
    writer = std::move(w);
    writer->StartStream(200, {});
    writer->OnPeerGone([&] { gone = true; });
  });
  RawSocket socket(server->port());
  socket.Write("GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(net.RunUntil([&] { return socket.Has("chunked"); }));
  EXPECT_FALSE(gone);
  socket.Close();
  EXPECT_TRUE(net.RunUntil([&] { return gone; }));
  writer->Write(Shared("into the void"));
  writer->End();
  EXPECT_TRUE(net.RunUntil([&] { return server->connections() == 0; }));
}

TEST(HttpServer, StillAnswersAPeerThatOnlyStoppedSending) {
  TestNet net;
  ResponseWriterPtr writer;
  bool gone = false;
  auto server = net.Serve([&](const Request&, ResponseWriterPtr w) {
    writer = std::move(w);
    writer->OnPeerGone([&] { gone = true; });
  });
  RawSocket socket(server->port());
  socket.Write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  socket.ShutdownWrite();
  ASSERT_TRUE(net.RunUntil([&] { return gone; }));
  writer->Send(Text("late"));
  EXPECT_TRUE(net.RunUntil([&] { return socket.Has("late") && socket.Ended(); }));
}

TEST(HttpServer, CountsWhatASlowReaderHasNotTaken) {
  TestNet net;
  ResponseWriterPtr writer;
  auto server = net.Serve([&](const Request&, ResponseWriterPtr w) {
    writer = std::move(w);
    writer->StartStream(200, {});
  });
  RawSocket socket(server->port());
  socket.Write("GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(net.RunUntil([&] { return writer != nullptr; }));
  auto event = Shared(std::string(1'000'000, 'e'));
  for (int i = 0; i < 20; ++i) writer->Write(event);
  net.RunFor(milliseconds(20));
  EXPECT_GT(writer->BufferedBytes(), 1'000'000u);
  EXPECT_TRUE(net.RunUntil([&] {
    socket.Pump();
    return writer->BufferedBytes() == 0;
  }));
  EXPECT_TRUE(net.RunUntil([&] { return socket.Has("HTTP/1.1 200"); }));
}

// The reader gets whole events in order, some of them not, and the last one.
TEST(HttpServer, CutsASlowReaderWithALastWord) {
  TestNet net;
  ResponseWriterPtr writer;
  auto server = net.Serve([&](const Request&, ResponseWriterPtr w) {
    writer = std::move(w);
    writer->StartStream(200, {});
  });
  RawSocket socket(server->port());
  socket.Write("GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(net.RunUntil([&] { return writer != nullptr; }));
  const auto event = [](int number) {
    return fmt::format("{:06}{}", number, std::string(994, 'e'));
  };
  for (int i = 0; i < 30'000; ++i) {
    writer->Write(Shared(event(i)));
    if (i == 20'000) net.RunFor(milliseconds(20));  // the kernel takes what it can
  }
  writer->CutWith(Shared("last"));
  writer.reset();
  ASSERT_TRUE(net.RunUntil([&] {
    socket.Pump();
    return socket.Ended();
  }));
  const std::string& got = socket.received;
  size_t at = got.find("\r\n\r\n") + 4;
  int next = 0;
  for (std::string chunk; at < got.size(); ++next) {
    chunk = "3e8\r\n" + event(next) + "\r\n";
    if (got.compare(at, chunk.size(), chunk) != 0) break;
    at += chunk.size();
  }
  EXPECT_EQ(got.substr(at), "4\r\nlast\r\n0\r\n\r\n");
  EXPECT_GT(next, 10);
  EXPECT_LT(next, 29'000);
}

TEST(HttpServer, ClosesOnAReaderThatDoesNotTakeTheLastWord) {
  TestNet net;
  ServerOptions options;
  options.write_stall_timeout = milliseconds(50);
  ResponseWriterPtr writer;
  auto server = net.Serve(
      [&](const Request&, ResponseWriterPtr w) {
        writer = std::move(w);
        writer->StartStream(200, {});
        writer->Write(Shared(std::string(20'000'000, 'e')));
      },
      options);
  RawSocket socket(server->port());
  socket.Write("GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(net.RunUntil([&] { return writer != nullptr; }));
  writer->CutWith(Shared("last"));
  writer.reset();
  EXPECT_TRUE(net.RunUntil([&] { return server->connections() == 0; }));
}

TEST(HttpServer, GivesUpOnAReaderThatTakesNothing) {
  TestNet net;
  ServerOptions options;
  options.write_stall_timeout = milliseconds(50);
  bool gone = false;
  ResponseWriterPtr writer;
  auto server = net.Serve(
      [&](const Request&, ResponseWriterPtr w) {
        writer = std::move(w);
        writer->StartStream(200, {});
        writer->OnPeerGone([&] { gone = true; });
        writer->Write(Shared(std::string(20'000'000, 'e')));
      },
      options);
  RawSocket socket(server->port());
  socket.Write("GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(net.RunUntil([&] { return gone; }));
}

TEST(HttpServer, BearsWithASlowReaderOfAnUpgradedStream) {
  TestNet net;
  ServerOptions options;
  options.write_stall_timeout = milliseconds(50);
  std::unique_ptr<ByteStream> stream;
  auto server = net.Serve(
      [&](const Request&, const ResponseWriterPtr& writer) {
        stream = writer->Upgrade({});
        stream->Write(std::string(20'000'000, 'e'));
      },
      options);
  RawSocket socket(server->port());
  socket.Write("GET /exec HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(net.RunUntil([&] { return stream != nullptr; }));
  net.RunFor(milliseconds(300));
  EXPECT_GT(stream->BufferedBytes(), 0u);
  stream.reset();  // what was written is still sent
  EXPECT_TRUE(net.RunUntil([&] { return socket.Ended(); }));
  EXPECT_GT(socket.received.size(), 20'000'000u);
}

TEST(HttpServer, PullsBodiesOnlyAsFastAsTheyAreRead) {
  TestNet net;
  constexpr size_t kTotal = 30'000'000;
  for (bool sized : {true, false}) {
    auto server = net.Serve([&](const Request&, const ResponseWriterPtr& writer) {
      Response response;
      if (sized) response.headers.Add("Content-Length", std::to_string(kTotal));
      response.source = std::make_unique<XSource>(kTotal);
      writer->Send(std::move(response));
    });
    auto client = net.Client();
    auto answer =
        net.Fetch(*client, net.EndpointOf(*server, false), {.method = "GET", .target = "/"});
    ASSERT_TRUE(answer.has_value()) << answer.error().ToString();
    EXPECT_EQ(answer->body.size(), kTotal);
  }
}

TEST(HttpServer, AnswersForAHandlerThatForgot) {
  TestNet net;
  auto server = net.Serve([](const Request&, const ResponseWriterPtr&) {});
  auto client = net.Client();
  auto answer =
      net.Fetch(*client, net.EndpointOf(*server, false), {.method = "GET", .target = "/"});
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, 500);
}

TEST(HttpServer, CutsAStreamWhoseWriterIsDropped) {
  TestNet net;
  auto server = net.Serve([](const Request&, const ResponseWriterPtr& writer) {
    writer->StartStream(200, {});
    writer->Write(Shared("half"));
  });
  auto client = net.Client();
  auto answer =
      net.Fetch(*client, net.EndpointOf(*server, false), {.method = "GET", .target = "/"});
  EXPECT_FALSE(answer.has_value()) << "an unfinished stream must not look whole";
}

TEST(HttpServer, KeepsHeaderValuesFromSplittingTheAnswer) {
  TestNet net;
  auto server = net.Serve([](const Request&, const ResponseWriterPtr& writer) {
    Response response = Text("ok");
    response.headers.Add("Warning", "299 - \"a\r\nX-Injected: 1\"");
    writer->Send(std::move(response));
  });
  auto client = net.Client();
  auto answer =
      net.Fetch(*client, net.EndpointOf(*server, false), {.method = "GET", .target = "/"});
  ASSERT_TRUE(answer.has_value());
  EXPECT_FALSE(answer->headers.Has("X-Injected"));
}

TEST(HttpServer, GivesAHeadThatTricklesInNoMoreTime) {
  TestNet net;
  ServerOptions options;
  options.head_timeout = milliseconds(50);
  auto server = net.Serve(EchoTarget, options);
  RawSocket first(server->port());
  first.Write("GET / HTTP/1.1\r\nHost: a\r\nA: ");
  RawSocket later(server->port());  // the same in the second request of a connection
  later.Write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(net.RunUntil([&] { return later.Has("HTTP/1.1 200 "); }));
  later.Write("GET / HTTP/1.1\r\nHost: a\r\nA: ");
  EXPECT_TRUE(net.RunUntil([&] {
    first.Write("x");
    later.Write("x");
    return first.Has("HTTP/1.1 408 ") && later.Has("HTTP/1.1 408 ");
  }));
}

TEST(HttpServer, AnswersBesideAFloodOfHalfOpenConnections) {
  TestNet net;
  ServerOptions options;
  options.head_timeout = seconds(1);
  auto server = net.Serve(EchoTarget, options);
  std::vector<std::unique_ptr<RawSocket>> half_open;
  for (int i = 0; i < 400; ++i) {  // two descriptors each: stays below the usual limit of 1024
    half_open.push_back(std::make_unique<RawSocket>(server->port()));
    if (i % 2 == 0) half_open.back()->Write("GET / HT");
  }
  RawSocket good(server->port());
  std::string flood;
  for (int i = 0; i < 1000; ++i) flood += "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  good.Write(flood + "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(net.RunUntil([&] { return good.Ended(); }));
  EXPECT_TRUE(good.Has("GET /last "));
  size_t ended = 0;
  EXPECT_TRUE(net.RunUntil([&] {
    while (ended < half_open.size() && half_open[ended]->Ended()) ++ended;
    return ended == half_open.size();
  }));
  EXPECT_TRUE(half_open[0]->Has("HTTP/1.1 408 "));
  EXPECT_EQ(half_open[1]->received, "");
  EXPECT_TRUE(net.RunUntil([&] { return server->connections() == 0; }));
}

TEST(HttpServer, TellsPlainHttpOnATlsPortWhatItNeeds) {
  TestNet net;
  auto server = net.Serve(EchoTarget, net.TlsOptions());
  RawSocket plain(server->port());
  plain.Write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(net.RunUntil([&] { return plain.Ended(); }));
  EXPECT_EQ(plain.received,
            "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
}

TEST(HttpServer, ClosesOnWhatIsNoTlsAndServesOn) {
  TestNet net;
  ServerOptions options = net.TlsOptions();
  options.head_timeout = milliseconds(50);
  auto server = net.Serve(EchoTarget, options);
  const std::string hello_of_64k("\x16\x03\x01\xff\xff\x01\x00\xff\xfc", 9);
  for (const std::string& garbage :
       {std::string(4096, '\0'), std::string(4096, '\xff'), std::string("SSH-2.0-OpenSSH_9.2\r\n"),
        hello_of_64k + std::string(70'000, 'x'), std::string("\x16\x03\x01\x02\x00", 5),
        std::string("\x15\x03\x03\x00\x02\x02\x28", 7)}) {
    RawSocket socket(server->port());
    socket.Write(garbage);
    EXPECT_TRUE(net.RunUntil([&] { return socket.Ended(); })) << testing::PrintToString(garbage);
    EXPECT_EQ(socket.received.find("HTTP/"), std::string::npos);
  }
  auto client = net.Client();
  EXPECT_TRUE(net.Fetch(*client, net.EndpointOf(*server, true), {.method = "GET", .target = "/"}));
}

TEST(HttpServer, BoundsItsConnections) {
  TestNet net;
  ServerOptions options;
  options.max_connections = 2;
  auto server = net.Serve(EchoTarget, options);
  RawSocket a(server->port());
  RawSocket b(server->port());
  ASSERT_TRUE(net.RunUntil([&] { return server->connections() == 2; }));
  RawSocket c(server->port());
  EXPECT_TRUE(net.RunUntil([&] { return c.Ended(); }));
  a.Close();
  ASSERT_TRUE(net.RunUntil([&] { return server->connections() == 1; }));
  RawSocket d(server->port());
  d.Write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(net.RunUntil([&] { return d.Has("200 OK"); }));
}

TEST(HttpServer, GoesOnWhenDescriptorsHaveRunOut) {
  TestNet net;
  auto server = net.Serve(EchoTarget);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);
  ASSERT_GE(next, 0);
  close(next);
  const rlimit one_more{static_cast<rlim_t>(next) + 1, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &one_more), 0);
  RawSocket client(server->port());  // takes the last one
  client.Write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  net.RunFor(milliseconds(50));
  EXPECT_EQ(server->connections(), 0u);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(net.RunUntil([&] { return client.Has("200 OK"); }));
}

TEST(HttpServer, ServesAThousandStreamsAtOnce) {
  TestNet net;
  std::vector<ResponseWriterPtr> writers;
  auto server = net.Serve([&](const Request&, ResponseWriterPtr writer) {
    writer->StartStream(200, {});
    writers.push_back(std::move(writer));
  });
  std::vector<std::unique_ptr<RawSocket>> sockets;
  for (int i = 0; i < 400; ++i) {  // two descriptors each: stays below the usual limit of 1024
    sockets.push_back(std::make_unique<RawSocket>(server->port()));
    sockets.back()->Write("GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  ASSERT_TRUE(net.RunUntil([&] { return writers.size() == sockets.size(); }));
  auto event = Shared("{\"type\":\"ADDED\"}\n");
  for (auto& writer : writers) writer->Write(event);
  size_t seen = 0;
  EXPECT_TRUE(net.RunUntil([&] {
    while (seen < sockets.size() && sockets[seen]->Has("ADDED")) ++seen;
    return seen == sockets.size();
  }));
}

TEST(HttpServer, StopsGracefully) {
  TestNet net;
  std::map<std::string, ResponseWriterPtr> writers;
  auto server = net.Serve(
      [&](const Request& request, ResponseWriterPtr w) { writers[request.target] = std::move(w); });
  RawSocket idle(server->port());
  RawSocket stream(server->port());
  stream.Write("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  RawSocket slow(server->port());
  slow.Write("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(net.RunUntil([&] { return writers.size() == 2; }));
  writers["/stream"]->StartStream(200, {});
  ASSERT_TRUE(net.RunUntil([&] { return stream.Has("chunked"); }));
  bool stopped = false;
  server->Stop(seconds(5), [&] { stopped = true; });
  ASSERT_TRUE(net.RunUntil([&] { return idle.Ended() && stream.Ended(); }));
  EXPECT_TRUE(stream.Has("0\r\n\r\n")) << "streams end in good order";
  EXPECT_FALSE(stopped);
  writers["/slow"]->Send(Text("done"));
  ASSERT_TRUE(net.RunUntil([&] { return slow.Has("done"); }));
  slow.Close();
  EXPECT_TRUE(net.RunUntil([&] { return stopped; }));
}

TEST(HttpServer, StopsWithoutThoseThatDoNotFinish) {
  TestNet net;
  ResponseWriterPtr writer;
  auto server = net.Serve([&](const Request&, ResponseWriterPtr w) { writer = std::move(w); });
  RawSocket socket(server->port());
  socket.Write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(net.RunUntil([&] { return writer != nullptr; }));
  bool stopped = false;
  server->Stop(milliseconds(20), [&] { stopped = true; });
  EXPECT_TRUE(net.RunUntil([&] { return stopped; }));
  server.reset();
  writer->Send(Text("nobody hears this"));
}

// Answers "ok" and says in `peer` who asked last.
auto NotePeer(Peer& peer) {
  return [&peer](const Request& request, const ResponseWriterPtr& writer) {
    peer = request.peer;
    writer->Send(Text("ok"));
  };
}

TEST(HttpServer, ReadsIdentityFromVerifiedCertificatesOnly) {
  TestNet net;
  Peer peer;
  auto server = net.Serve(NotePeer(peer), net.TlsOptions());
  Endpoint endpoint = net.EndpointOf(*server, true);
  Time now = RealClock().Wall();

  auto anonymous = net.Client();
  ASSERT_TRUE(net.Fetch(*anonymous, endpoint, {.method = "GET", .target = "/"}).has_value());
  EXPECT_EQ(peer.user, "");
  EXPECT_TRUE(peer.address.starts_with("127.0.0.1:"));

  KeyPair admin = *net.pki.IssueClient("admin", {"system:masters", "b"}, now);
  auto known = net.Client({.certificate_pem = admin.certificate_pem, .key_pem = admin.key_pem});
  ASSERT_TRUE(net.Fetch(*known, endpoint, {.method = "GET", .target = "/"}).has_value());
  EXPECT_EQ(peer.user, "admin");
  EXPECT_EQ(peer.groups, (std::vector<std::string>{"system:masters", "b"}));
  EXPECT_EQ(peer.refused, "");
}

TEST(HttpServer, SaysWhyACertificateDoesNotCount) {
  TestNet net;
  std::vector<std::string> log;
  SetLogLevel(LogLevel::kDebug);
  std::mutex mutex;  // lines come from the I/O threads
  SetLogSink([&](LogLevel, std::string_view line) {
    const std::lock_guard lock(mutex);
    log.emplace_back(line);
  });
  Peer peer;
  auto server = net.Serve(NotePeer(peer), net.TlsOptions());
  const Time now = RealClock().Wall();
  const Time past = now - kCertificateLifetime - hours(1);
  const std::vector<std::string> masters = {"system:masters"};
  const std::vector<std::pair<KeyPair, std::string>> cases = {
      {*net.pki.IssueClient("admin", masters, past), "certificate has expired"},
      {*net.pki.IssueClient("admin", masters, now + hours(1)), "certificate is not yet valid"},
      {*Pki::Create(now)->IssueClient("admin", masters, now),
       "unable to verify the first certificate"},
      // Expired, and of another authority: whichever is told, it is refused.
      {*Pki::Create(past)->IssueClient("admin", masters, past), "certificate"},
      {*net.pki.IssueServer("admin", DefaultServerNames("", {}), now), "purpose"}};
  for (const auto& [pair, why] : cases) {
    auto client = net.Client({.certificate_pem = pair.certificate_pem, .key_pem = pair.key_pem});
    ASSERT_TRUE(net.Fetch(*client, net.EndpointOf(*server, true), {.method = "GET", .target = "/"})
                    .has_value())
        << why;
    EXPECT_EQ(peer.user, "") << why;
    EXPECT_TRUE(peer.groups.empty()) << why;
    EXPECT_NE(peer.refused.find(why), std::string::npos) << peer.refused;
    const std::lock_guard lock(mutex);
    ASSERT_FALSE(log.empty());
    EXPECT_NE(log.back().find(peer.address + " why=\"" + peer.refused), std::string::npos)
        << log.back();
  }
  SetLogSink({});
  SetLogLevel(LogLevel::kInfo);
}

// Thousands of connections that each send most of a large body would otherwise fill the memory.
TEST(HttpServer, BoundsAllBodiesTogether) {
  TestNet net;
  ServerOptions options;
  options.max_all_body_bytes = 1024 * 1024;
  std::vector<ResponseWriterPtr> writers;
  auto server = net.Serve(
      [&](const Request&, ResponseWriterPtr writer) { writers.push_back(std::move(writer)); },
      options);
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n";
  std::vector<std::unique_ptr<RawSocket>> sockets;
  for (int i = 0; i < 5; ++i) {
    sockets.push_back(std::make_unique<RawSocket>(server->port()));
    sockets.back()->Write(head + std::string(199'999, 'x'));
  }
  ASSERT_TRUE(net.RunUntil([&] { return server->body_bytes() == 5 * (199'999 - kFreeBodyBytes); }));
  RawSocket refused(server->port());
  refused.Write(head + std::string(200'000, 'x'));
  ASSERT_TRUE(net.RunUntil([&] { return refused.Ended(); }));
  EXPECT_TRUE(refused.Has("HTTP/1.1 429 Too Many Requests")) << refused.received;
  EXPECT_TRUE(refused.Has("Retry-After: 1\r\n"));
  EXPECT_LE(server->body_bytes(), options.max_all_body_bytes);
  // Small ones pass. A body counts until its request is answered.
  RawSocket small(server->port());
  small.Write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n\r\n" +
              std::string(10'000, 'x'));
  ASSERT_TRUE(net.RunUntil([&] { return writers.size() == 1; }));
  sockets[0]->Write("x");
  ASSERT_TRUE(net.RunUntil([&] { return writers.size() == 2; }));
  EXPECT_EQ(server->body_bytes(), 5 * (199'999 - kFreeBodyBytes) + 1);
  writers[1]->Send(Text("done"));
  ASSERT_TRUE(net.RunUntil([&] { return sockets[0]->Has("done"); }));
  writers.clear();
  sockets.resize(1);
  EXPECT_TRUE(net.RunUntil([&] { return server->body_bytes() == 0; }));
}

// A reader that takes nothing holds its answer in our memory.
TEST(HttpServer, BoundsWhatWaitsForSlowReaders) {
  TestNet net(1);
  ServerOptions options;
  options.max_all_queued_bytes = 40 * 1024 * 1024;
  constexpr size_t kAnswerBytes = 10 * 1024 * 1024;
  int answered = 0;
  auto server = net.Serve(
      [&](const Request&, const ResponseWriterPtr& writer) {
        ++answered;
        writer->Send(Text(std::string(kAnswerBytes, 'x')));
      },
      options);
  std::vector<std::unique_ptr<RawSocket>> lazy;
  for (int i = 0; i < 20; ++i) {
    lazy.push_back(std::make_unique<RawSocket>(server->port()));
    lazy.back()->Write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  ASSERT_TRUE(net.RunUntil([&] { return answered == 20 && server->connections() <= 5; }));
  // One answer has to come before there is too much.
  EXPECT_LE(server->queued_bytes(), options.max_all_queued_bytes + kAnswerBytes + 1024);
  EXPECT_TRUE(net.RunUntil([&] { return server->queued_bytes() <= options.max_all_queued_bytes; }));
  // Who reads gets everything, whoever else does not.
  RawSocket eager(server->port());
  eager.Write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(net.RunUntil([&] {
    eager.Pump();
    return eager.received.size() > kAnswerBytes;
  }));
  lazy.clear();
  EXPECT_TRUE(net.RunUntil([&] { return server->queued_bytes() == 0; }));
}

// Watchers share the bytes of an event: they count once.
TEST(HttpServer, CountsSharedBytesOnce) {
  TestNet net(1);
  std::vector<ResponseWriterPtr> writers;
  auto server = net.Serve([&](const Request&, ResponseWriterPtr writer) {
    writer->StartStream(200, {});
    writers.push_back(std::move(writer));
  });
  std::vector<std::unique_ptr<RawSocket>> sockets;
  for (int i = 0; i < 8; ++i) {
    sockets.push_back(std::make_unique<RawSocket>(server->port()));
    sockets.back()->Write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  ASSERT_TRUE(net.RunUntil([&] { return writers.size() == 8; }));
  constexpr size_t kEventBytes = 32 * 1024 * 1024;
  {
    const auto event = Shared(std::string(kEventBytes, 'x'));
    for (const ResponseWriterPtr& writer : writers) writer->Write(event);
  }
  ASSERT_TRUE(net.RunUntil([&] { return server->queued_bytes() > kEventBytes / 2; }));
  EXPECT_LT(server->queued_bytes(), 2 * kEventBytes);
  for (const ResponseWriterPtr& writer : writers) EXPECT_GT(writer->BufferedBytes(), 0u);
}

TEST(HttpServer, SaysWhyItCannotListen) {
  TestNet net;
  auto server = net.Serve(EchoTarget);
  LambdaHandler handler(EchoTarget);
  auto second = HttpServer::Start(net.loop, net.io, handler, {.port = server->port()});
  ASSERT_FALSE(second.has_value());
  EXPECT_NE(second.error().message().find("choose another port"), std::string::npos);
  EXPECT_FALSE(
      HttpServer::Start(net.loop, net.io, handler, {.host = "not-an-address"}).has_value());
}

}  // namespace
}  // namespace muster::net
