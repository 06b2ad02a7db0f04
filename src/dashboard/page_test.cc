#include "dashboard/page.h"

#include <array>
#include <string>

#include <gtest/gtest.h>
#include <zlib.h>

namespace muster::dashboard {
namespace {

std::string Gzip(std::string_view text) {
  std::string out(text.size() + 100, '\0');
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

class PageTest : public testing::Test {
 protected:
  std::optional<net::Response> Ask(std::string target, net::Headers headers = {},
                                   std::string method = "GET") {
    net::Request request{.method = std::move(method), .target = std::move(target)};
    request.headers = std::move(headers);
    return Page(files_).Answer(request);
  }
  static net::Headers With(const std::string& name, const std::string& value) {
    net::Headers headers;
    headers.Add(name, value);
    return headers;
  }

  const std::string html_ = Gzip("<html>"), script_ = Gzip(std::string(100'000, 'x'));
  const std::array<File, 2> files_ = {
      File{"index.html", "text/html; charset=utf-8", "\"1\"", html_},
      File{"assets/index-1.js", "text/javascript; charset=utf-8", "\"2\"", script_}};
};

TEST_F(PageTest, AnswersOnlyBelowItsPath) {
  EXPECT_FALSE(Ask("/").has_value());
  EXPECT_FALSE(Ask("/dashboards").has_value());
  EXPECT_FALSE(Ask("/api/v1/pods").has_value());
  EXPECT_EQ(Ask("/dashboard")->status, 308);
  EXPECT_EQ(Ask("/dashboard")->headers.Get("Location"), "/dashboard/");
  EXPECT_EQ(Ask("/dashboard/nothing.js")->status, 404);
  EXPECT_EQ(Ask("/dashboard/../index.html")->status, 404);
  EXPECT_EQ(Ask("/dashboard/", {}, "POST")->status, 405);
  EXPECT_EQ(Ask("/dashboard/?x=1")->status, 200);
}

TEST_F(PageTest, SendsCompressedWhatMayBe) {
  const auto plain = Ask("/dashboard/");
  EXPECT_EQ(plain->body, "<html>");
  EXPECT_EQ(plain->headers.Get("Content-Type"), "text/html; charset=utf-8");
  EXPECT_FALSE(plain->headers.Has("Content-Encoding"));
  const auto small = Ask("/dashboard/assets/index-1.js", With("Accept-Encoding", "br, gzip;q=0.8"));
  EXPECT_EQ(small->headers.Get("Content-Encoding"), "gzip");
  EXPECT_EQ(small->body, script_);
  for (const char* refused : {"gzip;q=0", "gzip; q=0.0", "br", ""}) {
    const auto whole = Ask("/dashboard/assets/index-1.js", With("Accept-Encoding", refused));
    EXPECT_EQ(whole->body.size(), 100'000U) << refused;
  }
  EXPECT_EQ(small->headers.Get("Vary"), "Accept-Encoding");
}

TEST_F(PageTest, IsAskedAgainOnlyForWhatChanges) {
  EXPECT_EQ(Ask("/dashboard/")->headers.Get("Cache-Control"), "no-cache");
  EXPECT_EQ(Ask("/dashboard/assets/index-1.js")->headers.Get("Cache-Control"),
            "public, max-age=31536000, immutable");
  const auto same = Ask("/dashboard/", With("If-None-Match", "\"0\", \"1\""));
  EXPECT_EQ(same->status, 304);
  EXPECT_EQ(same->headers.Get("ETag"), "\"1\"");
  EXPECT_TRUE(same->body.empty());
  EXPECT_EQ(Ask("/dashboard/", With("If-None-Match", "\"2\""))->status, 200);
}

TEST_F(PageTest, EveryAnswerIsGuarded) {
  for (const char* target : {"/dashboard/", "/dashboard", "/dashboard/nothing"}) {
    const net::Headers headers = Ask(target)->headers;
    const std::string policy(headers.Get("Content-Security-Policy"));
    EXPECT_NE(policy.find("default-src 'none'"), std::string::npos) << target;
    EXPECT_NE(policy.find("frame-ancestors 'none'"), std::string::npos) << target;
    EXPECT_EQ(policy.find("unsafe"), std::string::npos) << target;
    EXPECT_EQ(headers.Get("X-Content-Type-Options"), "nosniff") << target;
    EXPECT_EQ(headers.Get("Referrer-Policy"), "no-referrer") << target;
  }
}

// Whatever the build made: the page, or the one that says how to get it.
TEST(BuiltInFiles, AreWholeAndBeginWithAPage) {
  const Page page;
  for (const File& file : BuiltInFiles()) {
    net::Request request{.method = "GET", .target = "/dashboard/" + std::string(file.path)};
    const auto answer = page.Answer(request);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->status, 200) << file.path;
    EXPECT_FALSE(answer->body.empty()) << file.path;
  }
  const auto index = page.Answer({.method = "GET", .target = "/dashboard/"});
  EXPECT_NE(index->body.find("<title>muster"), std::string::npos);
  EXPECT_EQ(index->body.find("http:"), std::string::npos) << "nothing comes from elsewhere";
  EXPECT_EQ(index->body.find("https:"), std::string::npos) << "nothing comes from elsewhere";
}

}  // namespace
}  // namespace muster::dashboard
