#include "agent/runtime/program.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

Result<ProgramResult> Shell(const std::string& script, Duration limit = minutes(1)) {
  return RunProgram({.arguments = {"/bin/sh", "-c", script}, .time_limit = limit, .input = "in "});
}

TEST(RunProgram, GivesInputOutputAndExitCode) {
  const auto result = Shell("cat; echo out; echo err >&2; exit 3");
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->out, "in out\n");
  EXPECT_EQ(result->err, "err\n");
  const auto killed = Shell("kill -9 $$");
  ASSERT_TRUE(killed.has_value());
  EXPECT_EQ(killed->exit_code, 128 + 9);
}

TEST(RunProgram, EndsWhatTakesTooLong) {
  const auto result = Shell("exec sleep 1000", milliseconds(1));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().reason(), Reason::kTimeout);
}

}  // namespace
}  // namespace muster::agent
