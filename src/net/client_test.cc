#include "net/client.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <unistd.h>

#include "net/net_testing.h"

namespace muster::net {
namespace {

Response Text(std::string body) {
  Response response;
  response.body = std::move(body);
  return response;
}

std::shared_ptr<const std::string> Shared(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

TEST(HttpClient, CarriesLargeBodiesBothWays) {
  TestNet net;
  for (bool tls : {false, true}) {
    ServerOptions options = tls ? net.TlsOptions() : ServerOptions{};
    auto server = net.Serve(
        [](Request request, const ResponseWriterPtr& writer) { writer->Send(Text(request.body)); },
        options);
    auto client = net.Client();
    std::string body(kMaxBodyBytes, 'a');
    for (size_t i = 0; i < body.size(); i += 997) body[i] = static_cast<char>('a' + i % 26);
    auto answer = net.Fetch(*client, net.EndpointOf(*server, tls),
                            {.method = "POST", .target = "/", .body = body});
    ASSERT_TRUE(answer.has_value()) << answer.error().ToString();
    EXPECT_TRUE(answer->body == body);
  }
}

TEST(HttpClient, ReusesConnections) {
  TestNet net;
  std::set<std::string> peers;
  auto server = net.Serve(
      [&](const Request& request, const ResponseWriterPtr& writer) {
        peers.insert(request.peer.address);
        writer->Send(Text("ok"));
      },
      net.TlsOptions());
  auto client = net.Client();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(net.Fetch(*client, net.EndpointOf(*server, true), {.method = "GET", .target = "/"})
                    .has_value());
  }
  EXPECT_EQ(peers.size(), 1u);
}

TEST(HttpClient, OpensABoundedNumberOfConnections) {
  TestNet net;
  std::set<std::string> peers;
  auto server = net.Serve([&](const Request& request, const ResponseWriterPtr& writer) {
    peers.insert(request.peer.address);
    writer->Send(Text("ok"));
  });
  auto client = net.Client();
  size_t answers = 0;
  for (int i = 0; i < 1000; ++i) {
    client->Send(net.EndpointOf(*server, false), {.method = "POST", .target = "/"}, seconds(8),
                 [&](Result<Response> answer) { answers += answer.has_value() ? 1 : 0; });
  }
  EXPECT_TRUE(net.RunUntil([&] { return answers == 1000; }));
  EXPECT_LE(peers.size(), kMaxRequestsPerEndpoint + 1000 / 8)
      << "idle ones above the pool's limit are closed";
}

TEST(HttpClient, TriesAgainWhenAKeptAliveConnectionWasClosed) {
  TestNet net;
  ServerOptions options;
  options.idle_timeout = milliseconds(20);
  auto server = net.Serve(
      [](const Request&, const ResponseWriterPtr& writer) { writer->Send(Text("ok")); }, options);
  auto client = net.Client();
  for (int i = 0; i < 3; ++i) {
    auto answer =
        net.Fetch(*client, net.EndpointOf(*server, false), {.method = "GET", .target = "/"});
    ASSERT_TRUE(answer.has_value()) << answer.error().ToString();
    ASSERT_TRUE(net.RunUntil([&] { return server->connections() == 0; }));
  }
}

TEST(HttpClient, NamesTheEndpointThatRefuses) {
  TestNet net;
  auto server = net.Serve([](const Request&, const ResponseWriterPtr&) {});
  Endpoint endpoint = net.EndpointOf(*server, false);
  server.reset();
  auto client = net.Client();
  auto answer = net.Fetch(*client, endpoint, {.method = "GET", .target = "/"});
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().reason(), Reason::kServiceUnavailable);
  EXPECT_EQ(answer.error().message(), endpoint.ToString() + ": Connection refused");
}

TEST(HttpClient, ConnectsWithoutHttp) {
  TestNet net;
  auto server = net.Serve(
      [](const Request&, const ResponseWriterPtr& writer) { writer->Send(Text("hello")); });
  const Endpoint endpoint = net.EndpointOf(*server, false);
  auto client = net.Client();
  std::unique_ptr<ByteStream> stream;
  std::string heard;
  auto dialing = client->Connect(endpoint, [&](Result<std::unique_ptr<ByteStream>> answer) {
    ASSERT_TRUE(answer.has_value());
    stream = std::move(*answer);
    stream->OnData([&](std::string_view bytes) { heard += bytes; });
    stream->Write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  });
  EXPECT_TRUE(net.RunUntil([&] { return heard.ends_with("hello"); })) << heard;
  stream.reset();
  EXPECT_TRUE(net.RunUntil([&] { return server->connections() == 0; }));
  server.reset();
  Status refused;
  dialing = client->Connect(
      endpoint, [&](Result<std::unique_ptr<ByteStream>> answer) { refused = answer.error(); });
  EXPECT_TRUE(net.RunUntil([&] { return !refused.ok(); }));
  EXPECT_EQ(refused.message(), endpoint.ToString() + ": Connection refused");
}

TEST(HttpClient, TimesOut) {
  TestNet net;
  ResponseWriterPtr writer;
  bool gone = false;
  auto server = net.Serve([&](const Request&, ResponseWriterPtr w) {
    writer = std::move(w);
    writer->OnPeerGone([&] { gone = true; });
  });
  auto client = net.Client();
  Status status;
  client->Send(net.EndpointOf(*server, false), {.method = "GET", .target = "/slow"},
               milliseconds(30), [&](Result<Response> answer) { status = answer.error(); });
  ASSERT_TRUE(net.RunUntil([&] { return !status.ok(); }));
  EXPECT_EQ(status.reason(), Reason::kTimeout);
  EXPECT_TRUE(net.RunUntil([&] { return gone; })) << "the connection is given up";
}

TEST(HttpClient, RefusesServersOfAnotherAuthority) {
  TestNet net;
  auto server =
      net.Serve([](const Request&, const ResponseWriterPtr& writer) { writer->Send(Text("ok")); },
                net.TlsOptions());
  Endpoint endpoint = net.EndpointOf(*server, true);
  auto stranger = net.Client({.ca_pem = Pki::Create(RealClock().Wall())->ca_pem()});
  auto answer = net.Fetch(*stranger, endpoint, {.method = "GET", .target = "/"});
  ASSERT_FALSE(answer.has_value());
  EXPECT_NE(answer.error().message().find("certificate"), std::string::npos)
      << answer.error().message();

  Endpoint wrong_name = endpoint;
  wrong_name.server_name = "example.invalid";
  auto client = net.Client();
  EXPECT_FALSE(net.Fetch(*client, wrong_name, {.method = "GET", .target = "/"}).has_value());
  auto careless = net.Client({.insecure_skip_verify = true});
  EXPECT_TRUE(net.Fetch(*careless, wrong_name, {.method = "GET", .target = "/"}).has_value());
  Endpoint by_name = endpoint;
  by_name.host = "localhost";
  EXPECT_TRUE(net.Fetch(*client, by_name, {.method = "GET", .target = "/"}).has_value());
}

TEST(HttpClient, StreamsUntilTheEnd) {
  TestNet net;
  ResponseWriterPtr writer;
  auto server = net.Serve([&](const Request&, ResponseWriterPtr w) { writer = std::move(w); },
                          net.TlsOptions());
  auto client = net.Client();
  int status = 0;
  std::string data;
  bool ended = false;
  Status end;
  auto stream = client->Stream(net.EndpointOf(*server, true), {.method = "GET", .target = "/watch"},
                               {.on_head = [&](int code, const Headers&) { status = code; },
                                .on_data = [&](std::string_view bytes) { data += bytes; },
                                .on_end = [&](Status s) { end = s, ended = true; }});
  ASSERT_TRUE(net.RunUntil([&] { return writer != nullptr; }));
  writer->StartStream(200, {});
  writer->Write(Shared("one "));
  ASSERT_TRUE(net.RunUntil([&] { return data == "one "; }));
  EXPECT_EQ(status, 200);
  writer->Write(Shared("two"));
  writer->End();
  ASSERT_TRUE(net.RunUntil([&] { return ended; }));
  EXPECT_TRUE(end.ok());
  EXPECT_EQ(data, "one two");
}

TEST(HttpClient, ReportsABrokenStream) {
  TestNet net;
  ResponseWriterPtr writer;
  auto server = net.Serve([&](const Request&, ResponseWriterPtr w) {
    writer = std::move(w);
    writer->StartStream(200, {});
  });
  auto client = net.Client();
  Status end;
  bool started = false;
  auto stream =
      client->Stream(net.EndpointOf(*server, false), {.method = "GET", .target = "/watch"},
                     {.on_head = [&](int, const Headers&) { started = true; },
                      .on_data = nullptr,
                      .on_end = [&](Status s) { end = s; }});
  ASSERT_TRUE(net.RunUntil([&] { return started; }));
  server.reset();
  EXPECT_TRUE(net.RunUntil([&] { return !end.ok(); }));
}

TEST(HttpClient, MayDropAStreamFromItsOwnCallback) {
  TestNet net;
  bool gone = false;
  ResponseWriterPtr writer;
  auto server = net.Serve([&](const Request&, ResponseWriterPtr w) {
    writer = std::move(w);
    writer->StartStream(200, {});
    writer->OnPeerGone([&] { gone = true; });
    writer->Write(Shared("x"));
  });
  auto client = net.Client();
  std::unique_ptr<ClientStream> stream;
  stream =
      client->Stream(net.EndpointOf(*server, false), {.method = "GET", .target = "/watch"},
                     {.on_head = nullptr,
                      .on_data = [&stream](std::string_view) { stream.reset(); },
                      .on_end = [](Status) { FAIL() << "no callback after the handle is gone"; }});
  EXPECT_TRUE(net.RunUntil([&] { return gone; }));
}

TEST(HttpClient, SlowsAServerDownThatStreamsFasterThanTheLoopReads) {
  TestNet net;
  ResponseWriterPtr writer;
  auto server = net.Serve([&](const Request&, ResponseWriterPtr w) {
    writer = std::move(w);
    writer->StartStream(200, {});
    for (int i = 0; i < 40; ++i) writer->Write(Shared(std::string(1'000'000, 'x')));
    writer->End();
  });
  auto client = net.Client();
  size_t total = 0;
  bool ended = false;
  auto stream = client->Stream(net.EndpointOf(*server, false), {.method = "GET", .target = "/"},
                               {.on_head = nullptr,
                                .on_data = [&](std::string_view bytes) { total += bytes.size(); },
                                .on_end = [&](Status) { ended = true; }});
  EXPECT_TRUE(net.RunUntil([&] { return ended; }));
  EXPECT_EQ(total, 40'000'000u);
}

TEST(HttpClient, APausedAnswerHoldsItsServerBack) {
  TestNet net;
  ResponseWriterPtr writer;
  std::string asked;
  const size_t pieces = 48;  // of a million bytes: more than the kernel keeps for both ends
  auto server = net.Serve([&](const Request& request, ResponseWriterPtr w) {
    asked = request.body;
    writer = std::move(w);
    writer->StartStream(200, {});
    for (size_t i = 0; i < pieces; ++i) writer->Write(Shared(std::string(1'000'000, 'x')));
    writer->End();
  });
  const size_t most = 100'000;
  auto client = net.Client({.max_undelivered_bytes = most});
  size_t total = 0;
  bool ended = false;
  std::unique_ptr<ClientStream> stream;
  stream = client->Stream(net.EndpointOf(*server, false), {.method = "POST", .target = "/"},
                          Shared("a body that others have, too"),
                          {.on_head = nullptr,
                           .on_data =
                               [&](std::string_view bytes) {
                                 if (total == 0) stream->PauseReading(true);
                                 total += bytes.size();
                               },
                           .on_end = [&](Status) { ended = true; }});
  ASSERT_TRUE(net.RunUntil([&] { return total > most; }));
  net.RunFor(milliseconds(300));
  EXPECT_LT(total, 2 * most);
  EXPECT_FALSE(ended);
  EXPECT_GT(server->queued_bytes(), kStreamDrainedBytes);
  stream->PauseReading(false);
  EXPECT_TRUE(net.RunUntil([&] { return ended; }));
  EXPECT_EQ(total, pieces * 1'000'000);
  EXPECT_EQ(asked, "a body that others have, too");
}

// A server may forget to close it, or do so when the next request is on its way.
TEST(HttpClient, KeepsNoConnectionThatItAskedToClose) {
  TestNet net;
  std::vector<std::unique_ptr<ByteStream>> server_sides;
  bool closed = false;
  auto server = net.Serve([&](const Request&, const ResponseWriterPtr& writer) {
    auto& side = server_sides.emplace_back(writer->Upgrade({}));  // is raw from here on
    side->OnClose([&] { closed = true; });
    side->Write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  auto client = net.Client();
  Request request{.method = "GET", .target = "/"};
  request.headers.Add("Connection", "close");
  auto answer = net.Fetch(*client, net.EndpointOf(*server, false), std::move(request));
  ASSERT_TRUE(answer.has_value()) << answer.error().ToString();
  EXPECT_EQ(answer->body, "ok");
  EXPECT_TRUE(net.RunUntil([&] { return closed; }));
}

TEST(HttpClient, BoundsWhatItCollects) {
  TestNet net;
  auto server = net.Serve([](const Request&, const ResponseWriterPtr& writer) {
    writer->Send(Text(std::string(2000, 'x')));
  });
  auto client = net.Client({.max_response_bytes = 1000});
  EXPECT_FALSE(net.Fetch(*client, net.EndpointOf(*server, false), {.method = "GET", .target = "/"})
                   .has_value());
}

TEST(HttpClient, RunsNoCallbackAfterItIsGone) {
  TestNet net;
  std::vector<ResponseWriterPtr> writers;
  auto server = net.Serve(
      [&](const Request&, ResponseWriterPtr writer) { writers.push_back(std::move(writer)); });
  auto client = net.Client();
  bool gone = false;
  for (int i = 0; i < 200; ++i) {
    // On a slow machine some time out before the client goes: that is their right.
    client->Send(net.EndpointOf(*server, false), {.method = "GET", .target = "/"}, seconds(1),
                 [&](Result<Response>) { EXPECT_FALSE(gone); });
  }
  ASSERT_TRUE(net.RunUntil([&] { return writers.size() >= kMaxRequestsPerEndpoint; }));
  client.reset();
  gone = true;
  net.RunFor(milliseconds(1100));
}

TEST(HttpClient, UpgradesAndTalksBothWays) {
  TestNet net;
  std::unique_ptr<ByteStream> server_side;
  bool server_closed = false;
  auto server = net.Serve(
      [&](const Request& request, const ResponseWriterPtr& writer) {
        EXPECT_EQ(request.headers.Get("Upgrade"), "echo");
        Headers headers;
        headers.Add("Connection", "Upgrade");
        headers.Add("Upgrade", "echo");
        server_side = writer->Upgrade(std::move(headers));
        server_side->OnData(
            [&](std::string_view bytes) { server_side->Write(std::string(bytes)); });
        server_side->OnClose([&] { server_closed = true; });
      },
      net.TlsOptions());
  auto client = net.Client();
  Request request{.method = "POST", .target = "/exec"};
  request.headers.Add("Upgrade", "echo");
  std::unique_ptr<ByteStream> stream;
  auto handle =
      client->Upgrade(net.EndpointOf(*server, true), request, [&](Result<UpgradeAnswer> answer) {
        ASSERT_TRUE(answer.has_value()) << answer.error().ToString();
        stream = std::move(answer->stream);
      });
  ASSERT_TRUE(net.RunUntil([&] { return stream != nullptr; }));
  handle.reset();  // the stream goes on
  std::string echoed;
  std::string sent(5'000'000, 'y');
  stream->OnData([&](std::string_view bytes) { echoed += bytes; });
  stream->Write(sent);
  EXPECT_TRUE(net.RunUntil([&] { return echoed.size() == sent.size(); }));
  EXPECT_EQ(stream->BufferedBytes(), 0u);
  stream.reset();
  EXPECT_TRUE(net.RunUntil([&] { return server_closed; }));
}

TEST(HttpClient, APausedStreamHoldsItsPeerBack) {
  TestNet net;
  std::unique_ptr<ByteStream> server_side;
  auto server = net.Serve(
      [&](const Request&, const ResponseWriterPtr& writer) { server_side = writer->Upgrade({}); },
      net.TlsOptions());
  auto client = net.Client();
  std::unique_ptr<ByteStream> stream;
  auto handle = client->Upgrade(net.EndpointOf(*server, true), {.method = "GET", .target = "/"},
                                [&](Result<UpgradeAnswer> answer) {
                                  ASSERT_TRUE(answer.has_value()) << answer.error().ToString();
                                  stream = std::move(answer->stream);
                                });
  ASSERT_TRUE(net.RunUntil([&] { return stream != nullptr && server_side != nullptr; }));
  size_t received = 0;
  int drained = 0;
  stream->OnData([&](std::string_view bytes) {
    if (received == 0) stream->PauseReading(true);
    received += bytes.size();
  });
  server_side->OnDrained([&] { ++drained; });
  const size_t total = 48 * 1024 * 1024;  // more than the kernel keeps for both ends
  server_side->Write(std::string(total, 'z'));
  ASSERT_TRUE(net.RunUntil([&] { return received > 0; }));
  net.RunFor(milliseconds(300));
  EXPECT_LT(received, 2 * kMaxUndeliveredBytes);
  EXPECT_GT(server_side->BufferedBytes(), kStreamDrainedBytes);
  EXPECT_EQ(drained, 0);
  stream->PauseReading(false);
  EXPECT_TRUE(net.RunUntil([&] { return received == total && drained == 1; }));
  EXPECT_EQ(server_side->BufferedBytes(), 0u);
}

TEST(HttpClient, HandsOverTheAnswerOfARefusedUpgrade) {
  TestNet net;
  auto server = net.Serve([](const Request&, const ResponseWriterPtr& writer) {
    Response response = Text("no");
    response.status = 403;
    writer->Send(std::move(response));
  });
  auto client = net.Client();
  bool done = false;
  auto handle = client->Upgrade(net.EndpointOf(*server, false), {.method = "GET", .target = "/"},
                                [&](Result<UpgradeAnswer> answer) {
                                  done = true;
                                  ASSERT_TRUE(answer.has_value());
                                  EXPECT_EQ(answer->response.status, 403);
                                  EXPECT_EQ(answer->response.body, "no");
                                  EXPECT_EQ(answer->stream, nullptr);
                                });
  EXPECT_TRUE(net.RunUntil([&] { return done; }));
}

TEST(HttpServer, TalksToCurl) {
  if (system("curl --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "curl is not installed";
  namespace fs = std::filesystem;
  TestNet net;
  fs::path dir = fs::temp_directory_path() / ("muster-net-test-" + std::to_string(getpid()));
  fs::create_directory(dir);
  KeyPair admin = *net.pki.IssueClient("admin", {"system:masters"}, RealClock().Wall());
  std::ofstream(dir / "ca.crt") << net.pki.ca_pem();
  std::ofstream(dir / "admin.crt") << admin.certificate_pem;
  std::ofstream(dir / "admin.key") << admin.key_pem;
  std::string user;
  auto server = net.Serve(
      [&](const Request& request, const ResponseWriterPtr& writer) {
        user = request.peer.user;
        writer->Send(Text("body of " + std::to_string(request.body.size())));
      },
      net.TlsOptions());
  std::string command = fmt::format(
      "cd {} && head -c 2000000 /dev/zero | curl -s --http1.1 --cacert ca.crt --cert admin.crt "
      "--key admin.key "
      "-H 'Transfer-Encoding: chunked' --data-binary @- https://127.0.0.1:{}/x > out & ",
      dir.string(), server->port());
  ASSERT_EQ(system(command.c_str()), 0);
  std::string out;
  EXPECT_TRUE(net.RunUntil([&] {
    out.clear();
    std::getline(std::ifstream(dir / "out") >> std::ws, out);
    return out == "body of 2000000";
  })) << out;
  EXPECT_EQ(user, "admin");
  fs::remove_all(dir);
}

}  // namespace
}  // namespace muster::net
