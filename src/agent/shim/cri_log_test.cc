#include "agent/shim/cri_log.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "agent/kubelet_server/log_reader.h"
#include "agent/runtime/files.h"

namespace muster::agent {
namespace {

constexpr Time kNow = Time(seconds(1767225600));
using Stream = CriLogWriter::Stream;

class CriLog : public testing::Test {
 protected:
  CriLog() {
    char path[] = "/tmp/agent-log-XXXXXX";
    dir_ = mkdtemp(path);
  }
  ~CriLog() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  std::string Path() const { return dir_ + "/main/0.log"; }
  std::string Raw() const { return ReadSmallFile(Path()).value_or(""); }
  std::string Shown(const LogOptions& options = {}) {
    Result<LogReader> reader = LogReader::Open(Path(), options);
    std::string out;
    if (!reader) return "error: " + reader.error().message();
    while (reader->Read(out).value_or(false)) {
    }
    return out;
  }

  std::string dir_;
};

TEST_F(CriLog, WritesOneLineForEach) {
  CriLogWriter log = *CriLogWriter::Open(Path());
  log.Feed(Stream::kStdout, "one\ntw", kNow);
  log.Feed(Stream::kStderr, "err\n", kNow);
  log.Feed(Stream::kStdout, "o\n", kNow + milliseconds(5));
  EXPECT_EQ(Raw(),
            "2026-01-01T00:00:00.000000000Z stdout F one\n"
            "2026-01-01T00:00:00.000000000Z stderr F err\n"
            "2026-01-01T00:00:00.005000000Z stdout F two\n");
}

TEST_F(CriLog, EndsALastLineWithoutANewline) {
  CriLogWriter log = *CriLogWriter::Open(Path());
  log.Feed(Stream::kStdout, "no newline", kNow);
  EXPECT_EQ(Raw(), "");
  log.Finish(kNow);
  EXPECT_EQ(Raw(), "2026-01-01T00:00:00.000000000Z stdout F no newline\n");
}

TEST_F(CriLog, CutsLongLinesIntoPiecesThatReadAsOne) {
  CriLogWriter log = *CriLogWriter::Open(Path());
  const std::string line(2 * kMaxCriLineBytes + 10, 'z');
  log.Feed(Stream::kStdout, line + "\nnext\n", kNow);
  const std::string raw = Raw();
  EXPECT_EQ(std::count(raw.begin(), raw.end(), '\n'), 4);
  EXPECT_NE(Raw().find(" P zzz"), std::string::npos);
  EXPECT_EQ(Shown(), line + "\nnext\n");
  // Exactly the limit is no partial line.
  CriLogWriter exact = *CriLogWriter::Open(dir_ + "/main/1.log");
  exact.Feed(Stream::kStdout, std::string(kMaxCriLineBytes, 'y') + "\n", kNow);
  EXPECT_EQ(ReadSmallFile(dir_ + "/main/1.log")->find(" P "), std::string::npos);
}

TEST_F(CriLog, RotatesAndKeepsAFewFiles) {
  CriLogWriter log = *CriLogWriter::Open(Path(), 1000, 3);
  for (int i = 0; i < 200; ++i) log.Feed(Stream::kStdout, fmt::format("line {}\n", i), kNow);
  EXPECT_EQ(ListDir(dir_ + "/main").size(), 3u);
  EXPECT_LE(Raw().size(), 1000u);
  // What is left reads on without a gap to the last line.
  const std::string shown = Shown();
  const int first = std::stoi(shown.substr(5));
  std::string expected;
  for (int i = first; i < 200; ++i) expected += fmt::format("line {}\n", i);
  EXPECT_EQ(shown, expected);
}

TEST_F(CriLog, GoesOnInTheSameFileAfterARestart) {
  {
    CriLogWriter::Open(Path())->Feed(Stream::kStdout, "a\n", kNow);
  }
  {
    CriLogWriter::Open(Path())->Feed(Stream::kStdout, "b\n", kNow);
  }
  EXPECT_EQ(Shown(), "a\nb\n");
}

TEST_F(CriLog, TailLimitTimestampsAndSince) {
  CriLogWriter log = *CriLogWriter::Open(Path(), 1000, 5);
  for (int i = 0; i < 40; ++i)
    log.Feed(Stream::kStdout, fmt::format("{:02}\n", i), kNow + seconds(i));
  EXPECT_EQ(Shown({.tail_lines = 2}), "38\n39\n");
  EXPECT_EQ(Shown({.tail_lines = 0}), "");
  EXPECT_EQ(Shown({.tail_lines = 1000}).size(), 120u);
  const std::string tail = Shown({.tail_lines = 30});  // reaches into a rotated file
  EXPECT_EQ(tail.substr(0, 6), "10\n11\n");
  EXPECT_EQ(tail.size(), 90u);
  EXPECT_EQ(Shown({.limit_bytes = 4}), "00\n0");
  EXPECT_EQ(Shown({.since = kNow + seconds(38)}), "38\n39\n");
  EXPECT_EQ(Shown({.timestamps = true, .tail_lines = 1}), "2026-01-01T00:00:39.000000000Z 39\n");
}

TEST_F(CriLog, AReaderFollowsThroughARotation) {
  CriLogWriter log = *CriLogWriter::Open(Path(), 200, 5);
  log.Feed(Stream::kStdout, "first\n", kNow);
  Result<LogReader> reader = LogReader::Open(Path(), {.follow = true});
  std::string out;
  EXPECT_FALSE(*reader->Read(out));
  std::string expected = "first\n";
  for (int i = 0; i < 12; ++i) {
    log.Feed(Stream::kStdout, fmt::format("line {}\n", i), kNow);
    expected += fmt::format("line {}\n", i);
  }
  EXPECT_FALSE(*reader->Read(out));
  EXPECT_EQ(out, expected);
}

// Files that appear between two reads stand between those that the reader knew and the current one.
TEST_F(CriLog, AReaderSkipsNothingThatIsRotatedWhileItReads) {
  constexpr int kLines = 3000;
  constexpr size_t kLine = 200;
  CriLogWriter log = *CriLogWriter::Open(Path(), kLogChunkBytes + 50'000, 100);
  std::string expected;
  const auto write = [&](int from) {
    for (int i = from; i < from + kLines; ++i) {
      const std::string line = fmt::format("{:0{}}\n", i, kLine - 1);
      log.Feed(Stream::kStdout, line, kNow);
      expected += line;
    }
  };
  write(0);
  Result<LogReader> reader = LogReader::Open(Path(), {});
  ASSERT_TRUE(reader.has_value());
  std::string out;
  for (int turn = 1; turn < 5; ++turn) {
    ASSERT_TRUE(*reader->Read(out));  // somewhere in the middle
    write(turn * kLines);
  }
  while (*reader->Read(out)) {
  }
  EXPECT_TRUE(out == expected) << out.size() << " of " << expected.size() << " bytes";
}

// The end of a file is not the end of its lines as long as the writer has not turned to the next.
TEST_F(CriLog, AReaderAtTheEndSeesTheLastLinesBeforeARotation) {
  CriLogWriter log = *CriLogWriter::Open(Path(), 200, 100);
  Result<LogReader> reader = LogReader::Open(Path(), {.follow = true});
  std::string out, expected;
  for (int i = 0; i < 40; ++i) {
    log.Feed(Stream::kStdout, fmt::format("{}\n", i), kNow);
    expected += fmt::format("{}\n", i);
    if (i % 3 != 0) continue;
    EXPECT_FALSE(*reader->Read(out));
  }
  EXPECT_FALSE(*reader->Read(out));
  EXPECT_EQ(out, expected);
}

TEST_F(CriLog, ShowsWhatAWriterLeftThatWasKilledWhileItRotated) {
  CriLogWriter log = *CriLogWriter::Open(Path());
  log.Feed(Stream::kStdout, "a\nb\n", kNow);
  ASSERT_EQ(rename(Path().c_str(), RotatedLogPath(Path(), 0).c_str()), 0);
  EXPECT_EQ(LatestLogAttempt(dir_ + "/main"), 0);
  EXPECT_EQ(Shown(), "a\nb\n");
  EXPECT_EQ(Shown({.tail_lines = 1}), "b\n");
}

TEST_F(CriLog, FindsTheLatestAttempt) {
  EXPECT_EQ(LatestLogAttempt(dir_), std::nullopt);
  for (const char* name : {"/0.log", "/2.log", "/10.log", "/10.log.00000000000000000001"}) {
    ASSERT_TRUE(WriteFile(dir_ + name, "").ok());
  }
  EXPECT_EQ(LatestLogAttempt(dir_), 10);
}

TEST_F(CriLog, ItsEndIsAMessageWithinLimits) {
  EXPECT_EQ(LastLogText(Path()), "");
  CriLogWriter log = *CriLogWriter::Open(Path());
  log.Feed(Stream::kStdout, "one\n\ntwo", kNow);
  log.Finish(kNow);
  EXPECT_EQ(LastLogText(Path()), "one\n\ntwo\n");
  for (int i = 0; i < 100; ++i) log.Feed(Stream::kStdout, "x\n", kNow);
  EXPECT_EQ(LastLogText(Path()).size(), 2 * kMaxMessageLogLines);
  log.Feed(Stream::kStderr, std::string(3 * kMaxCriLineBytes, 'x') + "end\n", kNow);
  const std::string text = LastLogText(Path());
  EXPECT_EQ(text.size(), kMaxMessageLogBytes);
  EXPECT_TRUE(text.ends_with("xend\n"));
}

}  // namespace
}  // namespace muster::agent
