// src/base/fuzz_test_support.h
//
// FUZZ_TARGET: laws that must hold for any bytes. One text, two programs:
//
//   FUZZ_TARGET(quantity, input) { ... CHECK(...) ... }      // src/schema/quantity_fuzz.cc
//
// With MUSTER_FUZZ the file becomes the libFuzzer program quantity_fuzz. In every build it is also
// part of its folder's unit tests, where it runs over the corpus kept in
// tests/fuzz/corpus/quantity. tests/fuzz/run says how to run and to keep.
//
// Life cycle: the body must leave nothing behind that changes what the next input does.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#ifdef MUSTER_FUZZER

#define FUZZ_TARGET(name, input)                                            \
  static void Fuzz_##name(std::string_view input);                          \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) { \
    Fuzz_##name({reinterpret_cast<const char*>(data), size});               \
    return 0;                                                               \
  }                                                                         \
  static void Fuzz_##name(std::string_view input)

#else

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <gtest/gtest.h>

namespace muster {

// Runs `target` over every file of tests/fuzz/corpus/NAME below the working directory.
inline void ReplayCorpus(const char* name, void (*target)(std::string_view)) {
  const std::filesystem::path dir = std::filesystem::path("tests/fuzz/corpus") / name;
  ASSERT_TRUE(std::filesystem::is_directory(dir)) << dir << ": run this from the root of the tree";
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    // A vector: the address sanitizer sees a read past its end, which a string's NUL would hide.
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    target({bytes.data(), bytes.size()});
    ++files;
  }
  EXPECT_GT(files, 0u) << dir << " is empty";
}

}  // namespace muster

#define FUZZ_TARGET(name, input)                                             \
  static void Fuzz_##name(std::string_view input);                           \
  TEST(Fuzz, name##_corpus) { ::muster::ReplayCorpus(#name, &Fuzz_##name); } \
  static void Fuzz_##name(std::string_view input)

#endif

namespace muster {

// Takes an input apart: single bytes that choose, lines, and the rest.
class FuzzInput {
 public:
  explicit FuzzInput(std::string_view bytes) : bytes_(bytes) {}

  // 0 at the end.
  uint8_t Byte() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }
  // Up to and without the next newline, or all that is left.
  std::string_view Line() {
    const size_t end = bytes_.find('\n');
    const std::string_view line = bytes_.substr(0, end);
    bytes_.remove_prefix(end == std::string_view::npos ? bytes_.size() : end + 1);
    return line;
  }
  std::string_view Take(size_t size) {
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view Rest() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

}  // namespace muster
