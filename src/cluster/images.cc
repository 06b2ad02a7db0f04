#include "cluster/images.h"

#include <algorithm>

#include "base/strings.h"

namespace muster::cluster {

ImageHash HashOfImage(std::string_view name) {
  const size_t slash = name.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? name : name.substr(slash + 1);
  if (last.find(':') != std::string_view::npos) return Hash64(name);
  return Hash64(std::string(name) + ":latest");
}

std::vector<ImageHash> PodImages(const json::Value& pod_spec) {
  std::vector<ImageHash> out;
  for (const char* list : {"initContainers", "containers"}) {
    for (const json::Value& container : pod_spec[list].items()) {
      const std::string_view image = container["image"].AsString();
      if (!image.empty()) out.push_back(HashOfImage(image));
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<NodeImage> NodeImages(const json::Value& node) {
  std::vector<NodeImage> out;
  for (const json::Value& image : node["status"]["images"].items()) {
    const int64_t bytes = std::clamp<int64_t>(image["sizeBytes"].AsInt(), 0, kMaxImageBytes);
    for (const json::Value& name : image["names"].items())
      out.push_back({HashOfImage(name.AsString()), bytes});
  }
  std::sort(out.begin(), out.end(),
            [](const NodeImage& a, const NodeImage& b) { return a.name < b.name; });
  return out;
}

int64_t BytesOf(const std::vector<NodeImage>& images, ImageHash name) {
  const auto at = std::lower_bound(
      images.begin(), images.end(), name,
      [](const NodeImage& image, ImageHash wanted) { return image.name < wanted; });
  return at != images.end() && at->name == name ? at->bytes : 0;
}

}  // namespace muster::cluster
