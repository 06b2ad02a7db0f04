// src/cluster/images.h
//
// Which images a pod needs and a node has: what it takes to prefer nodes that need not pull.
// Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/imagelocality.
//
// An image is known by a hash of its normalised name: a node lists up to a hundred names, which are
// looked up and never shown. Two names with one hash would count as one image.
//
// Thread: any (values and pure functions).

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace muster::cluster {

using ImageHash = uint64_t;

struct NodeImage {
  ImageHash name = 0;
  int64_t bytes = 0;
  bool operator==(const NodeImage&) const = default;
};

// Names without tag and digest get ":latest".
ImageHash HashOfImage(std::string_view name);
// One for each container that names an image, init containers too; sorted.
std::vector<ImageHash> PodImages(const json::Value& pod_spec);
inline constexpr int64_t kMaxImageBytes = int64_t{1} << 40;  // a larger one counts as this

// Each name of each image of status.images; sorted by hash.
std::vector<NodeImage> NodeImages(const json::Value& node);
// The size of the image on the node; 0 if it is not there.
int64_t BytesOf(const std::vector<NodeImage>& images, ImageHash name);

}  // namespace muster::cluster
