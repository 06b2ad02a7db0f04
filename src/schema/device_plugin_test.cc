#include "schema/device_plugin.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::schema {
namespace {

constexpr const char* kDir = "/var/lib/kubelet/device-plugins";

bool IsOne(const std::string& image, const std::string& path = kDir,
           const std::string& container = "plugin") {
  return IsNvidiaDevicePlugin(*json::Parse(fmt::format(
      R"({{"containers":[{{"image":"none"}},{{"name":"{}","image":"{}"}}],
           "volumes":[{{"name":"a"}},{{"hostPath":{{"path":"{}"}}}}]}})",
      container, image, path)));
}

TEST(DevicePlugin, IsItsImageAndItsDirectory) {
  EXPECT_TRUE(IsOne("nvcr.io/nvidia/k8s-device-plugin:v0.15.0"));
  EXPECT_TRUE(IsOne("nvidia/k8s-device-plugin", "/var/lib/kubelet/device-plugins/"));
  EXPECT_FALSE(IsOne("nvcr.io/nvidia/k8s-device-plugin:v0.15.0", "/etc"));
  EXPECT_FALSE(IsOne("nvcr.io/k8s-device-plugin/other:v1"));
  EXPECT_FALSE(IsOne("nvidia/other-k8s-device-plugin"));
  EXPECT_FALSE(IsNvidiaDevicePlugin(json::Value()));
}

TEST(DevicePlugin, OfAMirrorIsKnownByItsContainer) {
  constexpr const char* kName = "nvidia-device-plugin-ctr";
  EXPECT_TRUE(IsOne("host:5000/k8s-device-plugin@sha256:1", kDir, kName));
  EXPECT_TRUE(IsOne("k8s-device-plugin", kDir, kName));
  EXPECT_FALSE(IsOne("host:5000/other", kDir, kName));
}

TEST(DevicePlugin, OfOthersIsNotOne) {
  EXPECT_FALSE(IsOne("docker.io/rocm/k8s-device-plugin:1.31.0.0"));
  EXPECT_FALSE(IsOne("notnvidia/k8s-device-plugin"));
  EXPECT_FALSE(IsOne("host:5000/k8s-device-plugin", kDir, "amdgpu-dp-cntr"));
}

}  // namespace
}  // namespace muster::schema
