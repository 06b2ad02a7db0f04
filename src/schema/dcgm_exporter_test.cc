#include "schema/dcgm_exporter.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::schema {
namespace {

bool IsOne(const std::string& image) {
  return IsDcgmExporter(*json::Parse(
      fmt::format(R"({{"containers":[{{"image":"none"}},{{"image":"{}"}}]}})", image)));
}

TEST(DcgmExporter, IsItsImage) {
  EXPECT_TRUE(IsOne("nvcr.io/nvidia/k8s/dcgm-exporter:4.4.2-4.7.0-distroless"));
  EXPECT_TRUE(IsOne("dcgm-exporter"));
  EXPECT_TRUE(IsOne("host:5000/dcgm-exporter@sha256:1"));
  EXPECT_FALSE(IsOne("nvcr.io/nvidia/dcgm:4.4"));
  EXPECT_FALSE(IsOne("my-dcgm-exporter"));
  EXPECT_FALSE(IsDcgmExporter(json::Value()));
}

}  // namespace
}  // namespace muster::schema
