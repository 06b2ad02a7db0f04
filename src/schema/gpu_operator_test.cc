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
  EXPECT_TRUE(IsOne("host:5000/mirror/gpu-operator@sha256:1"));
  EXPECT_FALSE(IsOne("nvcr.io/nvidia/cloud-native/gpu-operator-validator:v24.9.0"));
  EXPECT_FALSE(IsOne("amd/my-gpu-operator"));
  EXPECT_FALSE(IsGpuOperator(json::Value()));
}

}  // namespace
}  // namespace muster::schema
