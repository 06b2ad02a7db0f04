// src/agent/pod_workers/environment.h
//
// The environment and command line of a container.
//
// Thread:     any (pure).
// Errors:     NotFound / Invalid with the message that the kubelet puts into
// CreateContainerConfigError. Source:     the kubelet's makeEnvironmentVariables and
// envvars.FromServices; PATH as the OCI images' default.

#pragma once

#include <string>
#include <vector>

#include "agent/images/image_record.h"
#include "agent/pod_workers/expansion.h"
#include "agent/pod_workers/pod_inputs.h"
#include "base/status.h"
#include "json/value.h"

namespace muster::agent {

inline constexpr std::string_view kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// Variables of Services with a cluster address: {NAME}_SERVICE_HOST, {NAME}_PORT_80_TCP_ADDR, ...
// Those of default/kubernetes always; those of `ns` only if `links`.
EnvironmentMap ServiceEnvironment(const std::vector<json::Value>& services, std::string_view ns,
                                  bool links);

// What the API says (services, envFrom, env), without the runtime's own.
Result<EnvironmentMap> ContainerEnvironment(const json::Value& pod, const json::Value& container,
                                            const PodInputs& inputs, const PodFacts& facts);

// Adds what every container has (PATH, HOSTNAME, HOME), where the pod does not say otherwise:
// "NAME=value". What the image sets comes after the pod and before the defaults. No HOME if `home`
// is "".
std::vector<std::string> FinishEnvironment(EnvironmentMap variables, std::string_view hostname,
                                           const ImageConfig& image, std::string_view home);

// As upstream: `command` stands for the image's entrypoint and cmd, `args` for its cmd; both are
// expanded, the image's are not. Empty when neither the pod nor the image names a program.
std::vector<std::string> ContainerArguments(const json::Value& container,
                                            const EnvironmentMap& variables,
                                            const ImageConfig& image);

}  // namespace muster::agent
