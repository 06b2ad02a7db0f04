#include "base/files.h"

#include <sys/stat.h>

#include <filesystem>

#include <gtest/gtest.h>

namespace muster {
namespace {

namespace fs = std::filesystem;

class FilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "files_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { fs::remove_all(dir_); }

  fs::path dir_;
};

TEST_F(FilesTest, WritesWholeOrNotAtAll) {
  const std::string path = dir_ / "file";
  ASSERT_TRUE(WriteFileAtomic(path, "one", 0644).ok());
  ASSERT_TRUE(WriteFileAtomic(path, "two", 0600, true).ok());
  EXPECT_EQ(*ReadSmallFile(path), "two");
  struct stat info = {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(WriteFileAtomic(dir_ / "none" / "file", "x").reason(), Reason::kNotFound);
  // A folder cannot be replaced by a file: nothing is left behind.
  fs::create_directory(dir_ / "folder");
  EXPECT_FALSE(WriteFileAtomic(dir_ / "folder", "x").ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()), 2);
}

TEST_F(FilesTest, ReadsUpToALimit) {
  const std::string path = dir_ / "file";
  ASSERT_TRUE(WriteFileAtomic(path, std::string(100'000, 'x')).ok());
  EXPECT_EQ(ReadSmallFile(path, 100'000)->size(), 100'000u);
  EXPECT_EQ(ReadSmallFile(path, 99'999).error().reason(), Reason::kRequestEntityTooLarge);
  EXPECT_EQ(ReadSmallFile(dir_).error().reason(), Reason::kInternalError) << "a folder";
  const Status missing = ReadSmallFile(dir_ / "none").error();
  EXPECT_EQ(missing.reason(), Reason::kNotFound);
  EXPECT_NE(missing.message().find((dir_ / "none").string()), std::string::npos);
}

}  // namespace
}  // namespace muster
