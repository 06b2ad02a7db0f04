#include "schema/device_plugin.h"

#include <algorithm>

namespace muster::schema {
namespace {

bool IsPluginDir(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return path == kDevicePluginDir;
}

bool IsPlugin(const json::Value& container) {
  const std::string_view image = container["image"].AsString();
  return LastPartOfImage(image) == "k8s-device-plugin" &&
         (IsImageOfNvidia(image) ||
          container["name"].AsString().starts_with("nvidia-device-plugin"));
}

}  // namespace

std::string_view LastPartOfImage(std::string_view image) {
  image = image.substr(0, image.find('@'));
  image.remove_prefix(image.rfind('/') + 1);
  return image.substr(0, image.find(':'));
}

bool IsImageOfNvidia(std::string_view image) {
  constexpr std::string_view kFolder = "nvidia/";
  const size_t at = image.find(kFolder);
  return at != std::string_view::npos && (at == 0 || image[at - 1] == '/');
}

bool IsNvidiaDevicePlugin(const json::Value& pod_spec) {
  const json::Array& containers = pod_spec["containers"].items();
  const json::Array& volumes = pod_spec["volumes"].items();
  return std::any_of(containers.begin(), containers.end(), IsPlugin) &&
         std::any_of(volumes.begin(), volumes.end(), [](const json::Value& volume) {
           return IsPluginDir(volume["hostPath"]["path"].AsString());
         });
}

}  // namespace muster::schema
