#include "schema/gpu_operator.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::schema {
namespace {

bool IsOne(const std::string& image) {
  return IsGpuOperator(*json::Parse(
      fmt::format(R"({{"containers":[{{"image":"none"}},{{"image":"{}"}}]}})", image)));
}

TEST(GpuOperator, IsItsImage) {
  EXPECT_TRUE(IsOne("nvcr.io/nvidia/gpu-operator:v24.9.0"));
  EXPECT_TRUE(IsOne("host:5000/nvidia/gpu-operator@sha256:1"));
  EXPECT_FALSE(IsOne("nvcr.io/nvidia/cloud-native/gpu-operator-validator:v24.9.0"));
  EXPECT_FALSE(IsOne("amd/my-gpu-operator"));
  EXPECT_FALSE(IsGpuOperator(json::Value()));
}

TEST(GpuOperator, OfAMirrorIsKnownByHowItIsStarted) {
  const auto is_one = [](const std::string& command) {
    return IsGpuOperator(*json::Parse(fmt::format(
        R"({{"containers":[{{"name":"gpu-operator","image":"host:5000/mirror/gpu-operator:v1",
             "command":[{}],"env":[{{"name":"OPERATOR_NAMESPACE"}}]}}]}})",
        command)));
  };
  EXPECT_TRUE(is_one("\"gpu-operator\""));
  EXPECT_FALSE(is_one("\"/manager\""));
  EXPECT_FALSE(is_one(""));
}

// It would never run.
TEST(GpuOperator, OfOthersIsNotOne) {
  EXPECT_FALSE(IsOne("docker.io/rocm/gpu-operator:v1.2.0"));
  EXPECT_FALSE(IsOne("ghcr.io/me/gpu-operator"));
  EXPECT_FALSE(IsOne("gpu-operator"));
}

}  // namespace
}  // namespace muster::schema
