// src/agent/images/image_reference.h
//
// ImageReference: an image's name taken apart and made whole, as docker and containerd do it:
// "nginx" is docker.io/library/nginx:latest.
//
// Thread: any (a value).
// Source: the grammar of distribution/reference.

#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::agent {

inline constexpr size_t kMaxImageNameBytes = 255;  // of registry and repository, as upstream
inline constexpr size_t kMaxImageTagBytes = 128;   // as upstream

// The names that mean the machine itself: a container of them sees the node's `/` (docs/adr/0007).
// `muster run` writes "host"; charts write a tag behind every name.
inline constexpr std::string_view kMachineImage = "none";
inline bool IsMachineImage(std::string_view name) {
  return name.substr(0, name.find(':')) == kMachineImage || name == "host";
}

struct ImageReference {
  std::string repository;  // with its registry: "docker.io/library/nginx", "localhost:5000/a"
  std::string tag;         // "" when the name has a digest, which then counts alone
  std::string digest;      // "sha256:<64 hexadecimal digits>" or ""

  std::string Registry() const { return repository.substr(0, repository.find('/')); }
  // "docker.io/library/nginx:latest", or with "@sha256:..."
  std::string Name() const { return digest.empty() ? repository + ":" + tag : AtDigest(digest); }
  std::string AtDigest(std::string_view of) const { return repository + "@" + std::string(of); }
  // A registry on this machine's loopback is spoken to in plain HTTP, too, as docker does.
  bool OnLoopback() const;
};

// Invalid: "couldn't parse image name ...", as upstream.
Result<ImageReference> ParseImageReference(std::string_view name);

// "sha256:" and 64 lower-case hexadecimal digits.
bool IsImageDigest(std::string_view text);

}  // namespace muster::agent
