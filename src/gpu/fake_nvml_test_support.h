// src/gpu/fake_nvml_test_support.h
//
// For tests with tests/fake_nvml: the file that drives it.
//
// Thread: the test's.

#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/check.h"
#include "base/files.h"
#include "gpu/probe_process.h"

namespace muster::gpu {

// Two GPUs of one NVLink pair and a third without links.
inline constexpr const char* kThreeGpus =
    "driver 580.159.04\n"
    "cuda 13000\n"
    "gpu GPU-a\nmodel NVIDIA H200\nlink GPU-b 18\nutil 37\nmemutil 12\nused 1048576\ntemp "
    "41\npower 123456\n"
    "gpu GPU-b\nlink GPU-a 18\nnuma 1\n"
    "gpu GPU-c\nmodel NVIDIA L4\nminor 7\ncompute 8.9\n";

class FakeDriver {
 public:
  FakeDriver() {
    char path[] = "/tmp/fake-nvml-XXXXXX";
    const int fd = mkstemp(path);
    close(fd);
    path_ = path;
    setenv("MUSTER_FAKE_NVML", path_.c_str(), 1);
    setenv(kNvmlLibraryVariable, Library().c_str(), 1);
  }
  ~FakeDriver() {
    unsetenv("MUSTER_FAKE_NVML");
    unsetenv(kNvmlLibraryVariable);
    unlink(path_.c_str());
  }
  void Says(const std::string& text) { ASSERT_TRUE(WriteFileAtomic(path_, text, 0644).ok()); }

  // Where the build puts it, beside this program.
  static std::string Library() {
    const auto program = std::filesystem::read_symlink("/proc/self/exe");
    return program.parent_path() / "tests/fake_nvml/libfake-nvml.so";
  }

 private:
  std::string path_;
};

}  // namespace muster::gpu
