// src/agent/shim/pod_layer.h
//
// PodLayer: the overlay layer between the node's `/` and a container's own writes. It hides what a
// pod must not see (opaque folders, whiteouts) and holds the pod's own files (/etc/hosts, ...). It
// lives on a tmpfs of the shim's mount namespace, because overlayfs refuses two lower layers of
// which one contains the other.
//
// Life cycle: Build() once per pod; gone with the shim.
// Thread:     the shim.
// Invariants: folders above a hidden path keep the node's mode and owner; nothing outside `layer`
// is written.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/shim/user_root.h"
#include "base/status.h"

namespace muster::agent {

struct PodLayerContents {
  std::vector<std::string> hidden;   // absolute folders of the node, beside the standard ones
  std::vector<std::string> secrets;  // absolute files and folders of the node, without links
  std::vector<std::pair<std::string, std::string>> files;  // "/etc/hosts" -> text
  std::optional<UserRootPlan> user_root;  // in a user namespace: the layer is also the root folder
};

// The folders and files that are not shown to a container, contents.secrets included.
std::vector<std::string> HiddenFolders(const PodLayerContents& contents);

// `node_root` is "/" (tests give another). Without user_root needs CAP_SYS_ADMIN for the
// trusted.overlay attributes.
Status BuildPodLayer(const std::string& layer, const PodLayerContents& contents,
                     const std::string& node_root = "/");

}  // namespace muster::agent
