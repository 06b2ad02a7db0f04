// src/agent/pod_workers/plain_pod.h
//
// What pods cannot have on a node without namespaces, where they are plain processes of the user.
// What restricts a pod, or what it would miss, makes it fail with the reason; a container of an
// image waits, as on a node that cannot pull it.
//
// Thread: any (pure).

#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "json/value.h"

namespace muster::agent {

// Invalid with the field and the remedy; Ok if the pod can run so.
Status CheckPlainPod(const json::Value& pod);

// Invalid, with the remedy, where the container is to start from an image.
Status CheckPlainImage(const json::Value& container);

// Names of headless Services lead nowhere without a DNS server of the pod's own: where a variable
// is such a name, with or without a port, the machine itself takes its place (MASTER_ADDR of a
// job).
void UseMachineForNames(std::vector<std::string>& environment, const std::string& pod_namespace,
                        const std::vector<json::Value>& services);

}  // namespace muster::agent
