// src/schema/golden_vectors_testing.h
//
// GoldenVectorsTest: upstream's own encodings of its kinds, unpacked by each test from
// ../shared/vectors; tests are skipped where they are not.
//
// Thread: the test's.

#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "schema/protobuf_codec.h"
#include "schema/registry.h"

namespace muster::schema {

class GoldenVectorsTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path archive = "../shared/vectors/k8s-api-testdata.tar.xz";
    if (!std::filesystem::exists(archive))
      GTEST_SKIP() << "golden vectors not present: " << archive;
    directory_ = testing::TempDir() + "muster-golden-vectors-" + std::to_string(getpid());
    std::filesystem::create_directories(directory_);
    const std::string command = "tar -C '" + directory_ + "' -xJf '" + archive.string() + "'";
    if (std::system(command.c_str()) != 0)
      GTEST_SKIP() << "cannot unpack the golden vectors (needs tar and xz)";
  }
  void TearDown() override {
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }

  // Every vector whose kind we have a message for: (name, JSON, protobuf).
  struct Vector {
    std::string name, json, protobuf;
  };
  std::vector<Vector> Known() const {
    std::vector<Vector> known;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
      if (entry.path().extension() != ".pb") continue;
      Vector vector{entry.path().stem().string(), "", ReadFile(entry.path())};
      const Result<ProtobufEnvelope> envelope = ReadProtobufEnvelope(vector.protobuf);
      if (!envelope.has_value()) continue;
      if (Registry::BuiltIn().FindMessage(envelope->api_version, envelope->kind) == nullptr)
        continue;
      vector.json = ReadFile(std::filesystem::path(entry.path()).replace_extension(".json"));
      known.push_back(std::move(vector));
    }
    return known;
  }

 private:
  static std::string ReadFile(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream buffer;
    buffer << in.rdbuf();
    return buffer.str();
  }

  std::string directory_;
};

}  // namespace muster::schema
