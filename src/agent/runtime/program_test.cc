#include "agent/runtime/program.h"

#include <gtest/gtest.h>

#include "agent/network/host_network.h"

namespace muster::agent {
namespace {

TEST(RunProgram, GivesInputOutputAndExitCode) {
  const auto result =
      RunProgram("/bin/sh", {"-c", "cat; echo $LC_ALL$HOME >&2; exit 3"}, "in ", 99);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->output, "in C\n");
  const auto killed = RunProgram("/bin/sh", {"-c", "kill -9 $$"}, "", 99);
  ASSERT_TRUE(killed.has_value());
  EXPECT_EQ(killed->exit_code, 128);
  const auto missing = RunProgram("/nowhere/tool", {}, "", 99);
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().message().find("/nowhere/tool"), std::string::npos);
}

TEST(RunProgram, KeepsTheFirstBytesOfLongOutput) {
  const std::string bytes = std::to_string(kMaxNftListBytes + 1);
  const auto result = RunProgram("/usr/bin/head", {"-c", bytes, "/dev/zero"}, "", kMaxNftListBytes);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->exit_code, 0);
  EXPECT_EQ(result->output.size(), kMaxNftListBytes);
}

}  // namespace
}  // namespace muster::agent
