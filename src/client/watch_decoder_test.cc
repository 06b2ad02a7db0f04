#include "client/watch_decoder.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::client {
namespace {

std::string Deep(int levels) {
  std::string open, close;
  for (int i = 0; i < levels; ++i) {
    open += R"({"a":)";
    close += "}";
  }
  return open + "1" + close;
}

TEST(WatchDecoder, TakesTheDeepestObjectThatAServerKeeps) {
  WatchDecoder decoder;
  decoder.Feed(R"({"type":"ADDED","object":)" + Deep(json::kMaxDepth) + "}\n");
  const Result<std::optional<WatchFrame>> frame = decoder.Next();
  ASSERT_TRUE(frame.has_value()) << frame.error().message();
  EXPECT_EQ((*frame)->type, "ADDED");
}

TEST(WatchDecoder, RefusesWhatNoServerSends) {
  for (const std::string& text :
       {std::string("[]"), std::string("{\"type\":\"ADDED\"}"), std::string("{"),
        R"({"type":"ADDED","object":)" + Deep(json::kMaxAnswerDepth) + "}"}) {
    WatchDecoder decoder;
    decoder.Feed(text + "\n");
    EXPECT_FALSE(decoder.Next().has_value()) << text.substr(0, 50);
  }
}

}  // namespace
}  // namespace muster::client
