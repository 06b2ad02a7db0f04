#include "schema/device_plugin.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::schema {
namespace {

bool IsOne(const std::string& image, const std::string& path) {
  return IsNvidiaDevicePlugin(*json::Parse(
      fmt::format(R"({{"containers":[{{"image":"none"}},{{"image":"{}"}}],"volumes":[{{"name":"a"}},
                      {{"hostPath":{{"path":"{}"}}}}]}})",
                  image, path)));
}

TEST(DevicePlugin, IsItsImageAndItsDirectory) {
  const std::string dir = "/var/lib/kubelet/device-plugins";
  EXPECT_TRUE(IsOne("nvcr.io/nvidia/k8s-device-plugin:v0.15.0", dir));
  EXPECT_TRUE(IsOne("k8s-device-plugin", dir + "/"));
  EXPECT_TRUE(IsOne("host:5000/k8s-device-plugin@sha256:1", dir));
  EXPECT_FALSE(IsOne("nvcr.io/nvidia/k8s-device-plugin:v0.15.0", "/etc"));
  EXPECT_FALSE(IsOne("nvcr.io/k8s-device-plugin/other:v1", dir));
  EXPECT_FALSE(IsOne("other-k8s-device-plugin", dir));
  EXPECT_FALSE(IsNvidiaDevicePlugin(json::Value()));
}

}  // namespace
}  // namespace muster::schema
