#include "cli/run_program.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

TEST(RunProgram, GivesWhatItSaysAndHowItEnds) {
  const auto end = RunProgram({"sh", "-c", "echo out; echo err >&2; exit 3"});
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->code, 3);
  EXPECT_EQ(end->output, "out\nerr\n");
  EXPECT_EQ(RunProgram({"sh", "-c", "kill -9 $$"})->code, 128 + 9);
  EXPECT_EQ(RunProgram({"cat"})->output, "") << "its input is empty";
}

TEST(RunProgram, ChangesItsEnvironment) {
  setenv("MUSTER_TEST_A", "1", 1);
  setenv("MUSTER_TEST_B", "2", 1);
  EXPECT_EQ(RunProgram({"sh", "-c", "echo $MUSTER_TEST_A.$MUSTER_TEST_B.$MUSTER_TEST_C"},
                       {"MUSTER_TEST_B", "MUSTER_TEST_C=3"})
                ->output,
            "1..3\n");
}

TEST(RunProgram, WhatIsNotThereOrDoesNotEnd) {
  const auto missing = RunProgram({"/no/such/program"});
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().message().find("/no/such/program"), std::string::npos);
  const auto hangs = RunProgram({"sleep", "100"}, {}, milliseconds(100));
  ASSERT_FALSE(hangs.has_value());
  EXPECT_NE(hangs.error().message().find("did not end within"), std::string::npos);
}

TEST(RunProgram, TooMuchIsCut) {
  const auto end = RunProgram({"sh", "-c", "head -c 3000000 /dev/zero; exit 0"});
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->output.size(), kMaxProgramOutput);
}

}  // namespace
}  // namespace muster::cli
