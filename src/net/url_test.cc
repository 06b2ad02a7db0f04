#include "net/url.h"

#include <gtest/gtest.h>

namespace muster::net {
namespace {

TEST(ParseTarget, SplitsAndDecodes) {
  auto target = ParseTarget("/api/v1//pods/a%20b?x=1&x=2&flag&y=a+b%26#fragment");
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->path, "/api/v1//pods/a%20b");
  EXPECT_EQ(target->segments, (std::vector<std::string>{"api", "v1", "pods", "a b"}));
  EXPECT_EQ(target->query.GetAll("x"), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(target->query.Get("y"), "a b&");
  EXPECT_TRUE(target->query.GetBool("flag"));
  EXPECT_FALSE(target->query.GetBool("y"));
  EXPECT_FALSE(target->query.Has("z"));
}

TEST(ParseTarget, RefusesBrokenOnes) {
  for (const char* bad :
       {"", "api", "*", "/%zz", "/%2", "/a%2Fb", "/a%00", "/../x", "/%2e%2e/x", "/a?b=%"}) {
    EXPECT_FALSE(ParseTarget(bad).has_value()) << bad;
  }
  std::string many = "/?";
  for (size_t i = 0; i <= kMaxQueryParameters; ++i) many += "a&";
  EXPECT_FALSE(ParseTarget(many).has_value());
}

TEST(Query, EncodesWhatItDecodes) {
  Query query;
  query.Add("command", "echo a&b");
  query.Add("command", "ü");
  auto back = ParseTarget("/x?" + query.Encode());
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->query.list(), query.list());
}

TEST(ParseUrl, ReadsEndpoints) {
  auto url = ParseUrl("https://127.0.0.1:6443/prefix?x");
  ASSERT_TRUE(url.has_value());
  EXPECT_EQ(url->endpoint.ToString(), "https://127.0.0.1:6443");
  EXPECT_EQ(url->path, "/prefix?x");
  EXPECT_EQ(ParseUrl("https://[::1]:1")->endpoint.ToString(), "https://[::1]:1");
  EXPECT_EQ(ParseUrl("https://host")->endpoint.port, 443);
  EXPECT_EQ(ParseUrl("http://host/")->endpoint.port, 80);
  for (const char* bad : {"", "host:1", "ftp://a", "https://", "https://a:0", "https://a:65536",
                          "https://a:x", "https://[::1", "https://[::1]x", "https://u@h"}) {
    EXPECT_FALSE(ParseUrl(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace muster::net
