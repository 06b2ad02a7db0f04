// src/schema/names.h
//
// What Kubernetes accepts as a name, label, key or port, with upstream's messages
// (k8s.io/apimachinery pkg/util/validation).
//
// Thread: any (pure functions). Each check appends its objections to `problems`, nothing if the
// text is fine.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::schema {

inline constexpr size_t kMaxDnsLabelLength = 63;
inline constexpr size_t kMaxDnsSubdomainLength = 253;
inline constexpr size_t kMaxLabelValueLength = 63;
inline constexpr size_t kMaxConfigKeyLength = 253;
inline constexpr size_t kMaxPortNameLength = 15;

using Problems = std::vector<std::string>;
using NameCheck = void (*)(std::string_view text, Problems& problems);

void CheckDns1123Label(std::string_view text, Problems& problems);
void CheckDns1123Subdomain(std::string_view text, Problems& problems);
void CheckDns1035Label(std::string_view text, Problems& problems);
void CheckQualifiedName(std::string_view text,
                        Problems& problems);  // label and annotation keys, resource names
void CheckLabelValue(std::string_view text, Problems& problems);
void CheckConfigKey(std::string_view text, Problems& problems);  // keys of ConfigMaps and Secrets
void CheckEnvName(std::string_view text, Problems& problems);
void CheckPortName(std::string_view text, Problems& problems);
void CheckHttpHeaderName(std::string_view text, Problems& problems);
void CheckIp(std::string_view text, Problems& problems);
void CheckCidr(std::string_view text, Problems& problems);
// An address that others can reach: not unspecified, loopback or link-local.
void CheckOrdinaryIp(std::string_view text, Problems& problems);
// What may stand as one segment of a URL path.
void CheckPathSegment(std::string_view text, Problems& problems);

// Names of resources: Kubernetes' own ("cpu", "kubernetes.io/x") and others' ("nvidia.com/gpu"),
// which are counted in whole units and never overcommitted.
bool IsNativeResource(std::string_view name);
bool IsExtendedResource(std::string_view name);

bool IsIpv4(std::string_view text);
bool IsIpv6(std::string_view text);
inline bool IsIp(std::string_view text) { return IsIpv4(text) || IsIpv6(text); }

}  // namespace muster::schema
