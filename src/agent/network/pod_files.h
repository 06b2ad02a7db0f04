// src/agent/network/pod_files.h
//
// The three files that tell a pod who and where it is: /etc/hostname, /etc/hosts, /etc/resolv.conf
// (pure text).
//
// Thread:     any (pure).
// Invariants: /etc/hosts has the pod's own address with its own name: distributed training looks
//             itself up and times out without it.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/network/ipv4.h"
#include "json/value.h"

namespace muster::agent {

inline constexpr std::string_view kDefaultClusterDomain = "cluster.local";
inline constexpr size_t kMaxHostnameBytes = 63;
inline constexpr size_t kMaxNameservers = 3;         // what resolv.conf(5) reads
inline constexpr size_t kMaxSearchDomains = 32;      // the API's limit
inline constexpr size_t kMaxSearchListBytes = 2048;  // the API's limit

// resolv.conf(5), as far as it matters here.
struct ResolvConf {
  std::vector<std::string> nameservers;
  std::vector<std::string> search;
  std::vector<std::string> options;
};
ResolvConf ParseResolvConf(std::string_view text);
std::string FormatResolvConf(const ResolvConf& conf);

// spec.hostname, or the pod's name cut to 63 bytes.
std::string PodHostname(const json::Value& pod);
// HOST.SUBDOMAIN.NAMESPACE.svc.DOMAIN when spec.subdomain is set, otherwise "".
std::string PodFullyQualifiedName(const json::Value& pod,
                                  std::string_view cluster_domain = kDefaultClusterDomain);

std::string EtcHostname(const json::Value& pod);
// `address` unset: a pod without a network of its own lookup line. hostAliases are appended.
std::string EtcHosts(const json::Value& pod, Ipv4 address,
                     std::string_view cluster_domain = kDefaultClusterDomain);
// For hostNetwork pods: the host's own file and the hostAliases.
std::string EtcHostsOfHostNetwork(const json::Value& pod, std::string_view host_file);
// By spec.dnsPolicy (ClusterFirst, ClusterFirstWithHostNet, Default, None) and spec.dnsConfig.
// `host` is the node's own resolv.conf.
std::string EtcResolvConf(const json::Value& pod, Ipv4 dns_address, const ResolvConf& host,
                          std::string_view cluster_domain = kDefaultClusterDomain);

}  // namespace muster::agent
