// tests/conformance/test_server.h
//
// TestServer: the whole API server over a memory store in simulated time, asked with HTTP messages.
//
// Life cycle: one for each script or row; started when the constructor returns.
// Thread:     the test's; nothing runs but inside these calls.
// Invariants: a request that is refused (4xx, 5xx) stores nothing: Send() checks it.

#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "apiserver/fake_writer.h"
#include "apiserver/server.h"
#include "base/strings.h"
#include "loop/sim_loop.h"
#include "store/memory_store.h"

namespace muster::conformance {

class TestServer {
 public:
  using WriterPtr = std::shared_ptr<apiserver::FakeWriter>;

  TestServer() : store_(store::OpenMemoryStore(loop_, apiserver::MakeDecorator())) {
    apiserver::ServerOptions options;
    options.advertise_address = "10.0.0.1";
    server_ = std::make_unique<apiserver::ApiServer>(loop_, *store_, std::move(options));
    server_->Start([](Status status) { ASSERT_TRUE(status.ok()) << status.ToString(); });
    loop_.RunReady();
  }

  SimLoop& loop() { return loop_; }

  // As the peer "NAME GROUP,GROUP"; "" is an administrator, "anonymous" nobody.
  WriterPtr Send(net::Request request, std::string_view user = "") {
    if (user.empty()) user = "admin system:masters";
    const std::vector<std::string_view> who = SplitNonEmpty(user, ' ');
    if (who[0] != "anonymous") request.peer.user = who[0];
    if (who.size() > 1) {
      for (std::string_view group : Split(who[1], ',')) request.peer.groups.emplace_back(group);
    }
    const store::Revision before = store_->CommittedRevision();
    auto writer = std::make_shared<apiserver::FakeWriter>();
    server_->Handle(std::move(request), writer);
    loop_.RunReady();
    if (writer->status >= 400) {
      EXPECT_EQ(store_->CommittedRevision(), before) << "a refused request stored something";
    }
    return writer;
  }

 private:
  SimLoop loop_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<apiserver::ApiServer> server_;
};

}  // namespace muster::conformance
