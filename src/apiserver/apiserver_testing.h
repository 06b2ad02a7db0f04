// src/apiserver/apiserver_testing.h
//
// TestServer: an ApiServer in simulated time, over a memory store unless given another, for tests.
//
// Thread: the test's.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "apiserver/fake_writer.h"
#include "apiserver/server.h"
#include "json/parse.h"
#include "loop/sim_loop.h"
#include "store/memory_store.h"

namespace muster::apiserver {

class TestServer {
 public:
  using WriterPtr = std::shared_ptr<FakeWriter>;

  using OpenStore = std::function<std::unique_ptr<store::Store>(Loop&)>;

  explicit TestServer(ServerOptions options = {}, const OpenStore& open = {})
      : store(open ? open(loop) : store::OpenMemoryStore(loop, MakeDecorator())),
        server(std::make_unique<ApiServer>(loop, *store, WithFewKinds(std::move(options)))) {
    server->Start([this](Status status) { started = std::move(status); });
    loop.RunReady();
    EXPECT_TRUE(started.ok()) << started.ToString();
  }

  // All of our own kinds would be most of what a test does.
  static ServerOptions WithFewKinds(ServerOptions options) {
    if (options.own_groups.empty()) options.own_groups = {"kubeflow.org", "scheduling.volcano.sh"};
    return options;
  }

  // Hands the request in and runs what is due.
  WriterPtr Send(std::string method, std::string target, std::string body = "",
                 net::Headers headers = {}) {
    WriterPtr writer =
        Begin(std::move(method), std::move(target), std::move(body), std::move(headers));
    loop.RunReady();
    return writer;
  }
  WriterPtr Begin(std::string method, std::string target, std::string body = "",
                  net::Headers headers = {}, WriterPtr writer = std::make_shared<FakeWriter>()) {
    net::Request request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.body = std::move(body);
    request.headers = std::move(headers);
    request.peer.user = "admin";
    request.peer.groups = {"system:masters"};
    server->Handle(std::move(request), writer);
    return writer;
  }
  static json::Value Json(const FakeWriter& writer) {
    Result<json::Value> value = json::Parse(writer.body);
    EXPECT_TRUE(value.has_value()) << writer.body;
    return value.value_or(json::Value());
  }

  SimLoop loop;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<ApiServer> server;
  Status started;
};

}  // namespace muster::apiserver
