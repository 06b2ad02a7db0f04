#include "net/http1_parser.h"

#include <gtest/gtest.h>

namespace muster::net {
namespace {

struct Parsed {
  int error = 0;  // 0 = the message was complete
  bool complete = false;
  MessageHead head;
  std::string body;
  std::string rest;
};

Parsed ParseInPieces(Http1Parser::Role role, std::string_view text, size_t piece,
                     bool answers_head = false) {
  Http1Parser parser(role, 1024, 10, 100);
  parser.set_answers_head(answers_head);
  Parsed out;
  std::string pending(text);
  while (true) {
    std::string chunk = pending.substr(0, piece);
    pending.erase(0, piece);
    if (chunk.empty()) return out;
    std::string_view input = chunk;
    bool more = true;
    while (more) {
      auto step = parser.Next(input);
      if (!step) {
        out.error = parser.error_code();
        return out;
      }
      switch (*step) {
        case Http1Parser::Step::kNeedMore:
          more = false;
          break;
        case Http1Parser::Step::kHead:
          out.head = parser.head();
          break;
        case Http1Parser::Step::kData:
          out.body += parser.data();
          break;
        case Http1Parser::Step::kEnd:
          out.complete = true;
          out.rest = std::string(input) + pending;
          return out;
      }
    }
  }
}

Parsed ParseRequest(std::string_view text) {
  Parsed whole = ParseInPieces(Http1Parser::Role::kRequest, text, text.size());
  for (size_t piece : {1, 2, 3, 7}) {
    Parsed split = ParseInPieces(Http1Parser::Role::kRequest, text, piece);
    EXPECT_EQ(split.error, whole.error) << "in pieces of " << piece;
    EXPECT_EQ(split.body, whole.body);
    EXPECT_EQ(split.rest, whole.rest);
    EXPECT_EQ(split.complete, whole.complete);
  }
  return whole;
}

TEST(Http1Parser, ReadsRequestsInAnyPieces) {
  Parsed get =
      ParseRequest("GET /api/v1/pods?limit=5 HTTP/1.1\r\nHost: a\r\nAccept:  x, y \r\n\r\nGET ");
  EXPECT_TRUE(get.complete);
  EXPECT_EQ(get.head.method, "GET");
  EXPECT_EQ(get.head.target, "/api/v1/pods?limit=5");
  EXPECT_EQ(get.head.headers.Get("accept"), "x, y");
  EXPECT_TRUE(get.head.keep_alive);
  EXPECT_EQ(get.rest, "GET ");

  Parsed post = ParseRequest(
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhelloX");
  EXPECT_EQ(post.body, "hello");
  EXPECT_EQ(post.rest, "X");
  EXPECT_FALSE(post.head.keep_alive);
}

TEST(Http1Parser, ReadsChunks) {
  Parsed post = ParseRequest(
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "5;name=value\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: dropped\r\n\r\nNEXT");
  EXPECT_TRUE(post.complete);
  EXPECT_EQ(post.body, "hello!");
  EXPECT_EQ(post.rest, "NEXT");
}

TEST(Http1Parser, RefusesWhatTwoParsersCouldReadDifferently) {
  std::string host = "Host: a\r\n";
  struct Case {
    std::string text;
    int error;
  };
  for (const Case& c : std::vector<Case>{
           {"GET / HTTP/1.1\nHost: a\n\r\n\r\n", 400},
           {"GET / HTTP/1.1\r\nHost: a\r\nA: b\nC: d\r\n\r\n", 400},
           {"GET / HTTP/1.1\r\n" + host + "A: b\r\n folded\r\n\r\n", 400},
           {"GET / HTTP/1.1\r\n" + host + "A : b\r\n\r\n", 400},
           {"GET / HTTP/1.1\r\n" + host + "A b\r\n\r\n", 400},
           {"GET / HTTP/1.1\r\n" + host + "A: b" + std::string(1, '\0') + "\r\n\r\n", 400},
           {"GET / HTTP/1.1\r\n" + host + "A: b\rc\r\n\r\n", 400},
           {"GET / HTTP/1.1\r\n\r\n", 400},
           {"GET / HTTP/1.1\r\n" + host + host + "\r\n", 400},
           {"GET /a b HTTP/1.1\r\n" + host + "\r\n", 400},
           {"GET a HTTP/1.1\r\n" + host + "\r\n", 400},
           {"G@T / HTTP/1.1\r\n" + host + "\r\n", 400},
           {"GET / HTTP/2.0\r\n" + host + "\r\n", 505},
           {"GET / FTP/1.1\r\n" + host + "\r\n", 400},
           {"GET /\r\n" + host + "\r\n", 400},
           {"POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
           {"POST / HTTP/1.1\r\n" + host +
                "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            400},
           {"POST / HTTP/1.1\r\n" + host + "Content-Length: +1\r\n\r\n", 400},
           {"POST / HTTP/1.1\r\n" + host + "Content-Length: 1, 1\r\n\r\n", 400},
           {"POST / HTTP/1.1\r\n" + host + "Content-Length: 99999999999999999999\r\n\r\n", 400},
           {"POST / HTTP/1.1\r\n" + host + "Content-Length: 101\r\n\r\n", 413},
           {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
           {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
           {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n-1\r\n", 400},
           {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello", 400},
           {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n\r\n", 400},
           {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n5\nhello", 400},
           {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloo\r\n",
            400},
           {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n64\r\n" +
                std::string(100, 'x') + "\r\n1\r\n",
            413},
           {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n5;" +
                std::string(300, 'x') + "\r\n",
            400},
           {"POST / HTTP/1.1\r\n" + host + "Expect: miracles\r\n\r\n", 417},
       }) {
    EXPECT_EQ(ParseRequest(c.text).error, c.error) << c.text;
  }
}

TEST(Http1Parser, BoundsTheHead) {
  EXPECT_EQ(
      ParseRequest("GET / HTTP/1.1\r\nHost: a\r\nA: " + std::string(2000, 'x') + "\r\n\r\n").error,
      431);
  EXPECT_EQ(ParseRequest("GET /" + std::string(2000, 'x')).error, 414);
  std::string many = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 10; ++i) many += "A: b\r\n";
  EXPECT_EQ(ParseRequest(many + "\r\n").error, 431);
  EXPECT_EQ(ParseRequest("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" +
                         std::string(2000, 'x'))
                .error,
            400);
}

TEST(Http1Parser, ToleratesBlankLinesBeforeARequest) {
  EXPECT_TRUE(ParseRequest("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n").complete);
}

TEST(Http1Parser, TakesThePathOfAnAbsoluteTarget) {
  EXPECT_EQ(ParseRequest("GET http://a:80/b?c HTTP/1.1\r\nHost: a\r\n\r\n").head.target, "/b?c");
  EXPECT_EQ(ParseRequest("GET https://a HTTP/1.1\r\nHost: a\r\n\r\n").head.target, "/");
}

TEST(Http1Parser, KnowsWhereResponsesEnd) {
  auto response = [](std::string_view text, bool answers_head = false) {
    return ParseInPieces(Http1Parser::Role::kResponse, text, text.size(), answers_head);
  };
  EXPECT_EQ(response("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").body, "hi");
  EXPECT_TRUE(response("HTTP/1.1 204 No Content\r\n\r\n").complete);
  EXPECT_TRUE(response("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n").complete);
  EXPECT_TRUE(response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true).complete);
  EXPECT_TRUE(response("HTTP/1.1 100 Continue\r\n\r\n").complete);
  Parsed until_eof = response("HTTP/1.1 200\r\n\r\nabc");
  EXPECT_EQ(until_eof.body, "abc");
  EXPECT_FALSE(until_eof.complete);
  EXPECT_FALSE(until_eof.head.keep_alive);
  EXPECT_EQ(response("HTTP/1.1 2x0 OK\r\n\r\n").error, 400);
  EXPECT_EQ(response("HTTP/1.1 2000 OK\r\n\r\n").error, 400);
}

TEST(Http1Parser, SaysWhetherAConnectionMayEndHere) {
  Http1Parser parser(Http1Parser::Role::kResponse, 1024, 10, 100);
  EXPECT_TRUE(parser.AtEof().ok());
  std::string_view input = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab";
  while (*parser.Next(input) != Http1Parser::Step::kNeedMore) {
  }
  EXPECT_FALSE(parser.AtEof().ok());
}

}  // namespace
}  // namespace muster::net
