#include "app/simulate_command.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/console.h"
#include "json/parse.h"
#include "simulator/trace_reader.h"

namespace muster::app {
namespace {

class SimulateCommandTest : public ::testing::Test {
 protected:
  SimulateCommandTest()
      : jobs_(std::filesystem::temp_directory_path() /
              ("muster-simulate-" + std::to_string(getpid()))) {
    std::ofstream file(jobs_);
    file << "timestamp,duration,num_gpus,gpu_time,cluster\n";
    for (int i = 0; i < 40; ++i) file << "2017-10-09 07:00:00,10.0,8,1,a\n";
    file << "2017-10-09 07:00:00,10.0,24,1,a\n";
  }
  ~SimulateCommandTest() override { std::filesystem::remove(jobs_); }

  // What it prints, or the error.
  std::string Run(std::vector<std::string> words) {
    const cli::Command command = SimulateCommand();
    cli::Console console{cli::Console::Capture{}};
    const auto arguments = cli::ParseArguments(command, words);
    if (!arguments) return arguments.error().message();
    const auto code = command.run_offline(*arguments, console);
    return code ? console.out : code.error().message();
  }

  std::filesystem::path jobs_;
};

TEST_F(SimulateCommandTest, PrintsWaitsAndWhatNeverFits) {
  const std::string text = Run({"--nodes", "2x8", "--jobs", jobs_});
  // 40 jobs, two at a time: waits 0, 0, 10, 10, ..., 190, 190.
  EXPECT_NE(text.find("wait          95.0        90.0       180.0       190.0"), std::string::npos)
      << text;
  EXPECT_NE(text.find("JCT          105.0"), std::string::npos) << text;
  EXPECT_NE(text.find("GPUs used 100.0 %"), std::string::npos) << text;
  EXPECT_NE(text.find("never placed: job-42: "), std::string::npos) << text;
}

TEST_F(SimulateCommandTest, JsonAndSample) {
  const std::vector<std::string> words = {"--nodes", "2x8",      "--jobs", jobs_,    "-o",
                                          "json",    "--sample", "50",     "--seed", "3"};
  const std::string text = Run(words);
  const auto json = json::Parse(text);
  ASSERT_TRUE(json.has_value()) << text;
  EXPECT_GT((*json)["jobs"].AsInt(), 5);
  EXPECT_LT((*json)["jobs"].AsInt(), 36);
  EXPECT_EQ((*json)["gpus"].AsInt(), 16);
  EXPECT_EQ(Run(words), text);
}

TEST_F(SimulateCommandTest, SaysWhatIsMissing) {
  EXPECT_NE(Run({"--jobs", jobs_}).find("--nodes"), std::string::npos);
  EXPECT_NE(Run({"--nodes", "2x8"}).find("--jobs"), std::string::npos);
  EXPECT_NE(Run({"--nodes", "2x8", "--jobs", "/nowhere"}).find("/nowhere"), std::string::npos);
  std::filesystem::resize_file(jobs_, simulator::kMaxTraceBytes + 1);
  EXPECT_NE(Run({"--nodes", "2x8", "--jobs", jobs_}).find(jobs_), std::string::npos);
  EXPECT_NE(Run({"--nodes", "2x8", "--jobs", jobs_, "--sample", "0"}).find("sample"),
            std::string::npos);
}

}  // namespace
}  // namespace muster::app
