// src/schema/device_plugin.h
//
// How NVIDIA's device plugin is recognised. It offers nvidia.com/gpu to a kubelet; muster's nodes
// offer that themselves and listen to no plugin, which would start again and again.
//
// Thread: any (pure functions).

#pragma once

#include <string_view>

#include "json/value.h"

namespace muster::schema {

inline constexpr std::string_view kDevicePluginDir = "/var/lib/kubelet/device-plugins";

// "k8s-device-plugin" of "registry:5000/nvidia/k8s-device-plugin:v0.15.0".
std::string_view LastPartOfImage(std::string_view image);
// Whether a folder of its path is NVIDIA's: "nvcr.io/nvidia/x". Others call theirs alike
// (rocm/k8s-device-plugin, rocm/gpu-operator).
bool IsImageOfNvidia(std::string_view image);

// Its image, under whatever registry and tag, and the directory in which plugins meet the kubelet.
// Where a mirror's path does not say whose it is, the name of its container does.
bool IsNvidiaDevicePlugin(const json::Value& pod_spec);

}  // namespace muster::schema
