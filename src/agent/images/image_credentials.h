// src/agent/images/image_credentials.h
//
// Which credentials of a pod's imagePullSecrets are for an image.
//
// Thread: any (pure).
// Source: the kubelet's credential provider: the longest matching key first.

#pragma once

#include <string>
#include <vector>

#include "agent/images/image_reference.h"
#include "json/value.h"

namespace muster::agent {

// base64("user:password") of every matching entry in Secrets of the types
// kubernetes.io/dockerconfigjson and kubernetes.io/dockercfg, the most specific first.
std::vector<std::string> CredentialsFor(const ImageReference& reference,
                                        const std::vector<json::Value>& secrets);

// A docker configuration with one entry, for skopeo's --authfile.
std::string AuthFile(const ImageReference& reference, const std::string& auth);

}  // namespace muster::agent
