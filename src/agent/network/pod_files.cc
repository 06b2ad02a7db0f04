#include "agent/network/pod_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace muster::agent {

namespace {

constexpr std::string_view kHostsHeader = "# Kubernetes-managed hosts file.\n";
constexpr std::string_view kHostNetworkHeader = "# Kubernetes-managed hosts file (host network).\n";

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while (at < line.size()) {
    const size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    const size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    at = end;
  }
  return words;
}

// hostAliases, as lines "ADDRESS\tNAME\tNAME".
std::string HostAliases(const json::Value& pod) {
  std::string text;
  for (const json::Value& alias : pod["spec"]["hostAliases"].items()) {
    const std::vector<std::string> names = json::ToStrings(alias["hostnames"]);
    if (names.empty()) continue;
    if (text.empty()) text = "\n# Entries added by HostAliases.\n";
    text += fmt::format("{}\t{}\n", alias["ip"].AsString(), Join(names, "\t"));
  }
  return text;
}

void AddUnique(std::vector<std::string>& list, const std::vector<std::string>& more) {
  for (const std::string& item : more) {
    if (std::ranges::find(list, item) == list.end()) list.push_back(item);
  }
}

std::string_view OptionName(std::string_view option) { return option.substr(0, option.find(':')); }

// spec.dnsConfig over what the policy gave. An option replaces one of the same name.
void ApplyDnsConfig(const json::Value& config, ResolvConf& conf) {
  AddUnique(conf.nameservers, json::ToStrings(config["nameservers"]));
  AddUnique(conf.search, json::ToStrings(config["searches"]));
  for (const json::Value& option : config["options"].items()) {
    const std::string_view name = option["name"].AsString();
    if (name.empty()) continue;
    std::erase_if(conf.options,
                  [&](const std::string& present) { return OptionName(present) == name; });
    const std::string_view value = option["value"].AsString();
    conf.options.push_back(value.empty() ? std::string(name) : fmt::format("{}:{}", name, value));
  }
}

void KeepWithinLimits(ResolvConf& conf) {
  if (conf.nameservers.size() > kMaxNameservers) conf.nameservers.resize(kMaxNameservers);
  if (conf.search.size() > kMaxSearchDomains) conf.search.resize(kMaxSearchDomains);
  while (Join(conf.search, " ").size() > kMaxSearchListBytes) conf.search.pop_back();
}

}  // namespace

ResolvConf ParseResolvConf(std::string_view text) {
  ResolvConf conf;
  for (std::string_view line : SplitNonEmpty(text, '\n')) {
    const std::vector<std::string_view> words = Words(line.substr(0, line.find_first_of("#;")));
    if (words.size() < 2) continue;
    const auto rest = [&] { return std::vector<std::string>(words.begin() + 1, words.end()); };
    if (words[0] == "nameserver") {
      conf.nameservers.emplace_back(words[1]);
    } else if (words[0] == "search" || words[0] == "domain") {
      conf.search = rest();  // the last one counts
    } else if (words[0] == "options") {
      AddUnique(conf.options, rest());
    }
  }
  return conf;
}

std::string FormatResolvConf(const ResolvConf& conf) {
  std::string text;
  if (!conf.search.empty()) text += fmt::format("search {}\n", Join(conf.search, " "));
  for (const std::string& server : conf.nameservers) text += fmt::format("nameserver {}\n", server);
  if (!conf.options.empty()) text += fmt::format("options {}\n", Join(conf.options, " "));
  return text;
}

std::string PodHostname(const json::Value& pod) {
  std::string name = pod["spec"]["hostname"].Str();
  if (name.empty()) name = pod["metadata"]["name"].Str();
  if (name.size() <= kMaxHostnameBytes) return name;
  name.resize(kMaxHostnameBytes);
  while (!name.empty() && (name.back() == '-' || name.back() == '.')) name.pop_back();
  return name;
}

std::string PodFullyQualifiedName(const json::Value& pod, std::string_view cluster_domain) {
  const std::string_view subdomain = pod["spec"]["subdomain"].AsString();
  if (subdomain.empty()) return {};
  return fmt::format("{}.{}.{}.svc.{}", PodHostname(pod), subdomain,
                     pod["metadata"]["namespace"].AsString(), cluster_domain);
}

std::string EtcHostname(const json::Value& pod) {
  if (pod["spec"]["setHostnameAsFQDN"].AsBool()) {
    if (const std::string name = PodFullyQualifiedName(pod); !name.empty()) return name + "\n";
  }
  return PodHostname(pod) + "\n";
}

std::string EtcHosts(const json::Value& pod, Ipv4 address, std::string_view cluster_domain) {
  std::string text(kHostsHeader);
  text +=
      "127.0.0.1\tlocalhost\n"
      "::1\tlocalhost ip6-localhost ip6-loopback\n"
      "fe00::0\tip6-localnet\n"
      "fe00::0\tip6-mcastprefix\n"
      "fe00::1\tip6-allnodes\n"
      "fe00::2\tip6-allrouters\n";
  // Without a network the pod still has to find itself.
  const std::string own = address.IsUnset() ? "127.0.0.1" : address.ToString();
  const std::string full_name = PodFullyQualifiedName(pod, cluster_domain);
  text += full_name.empty() ? fmt::format("{}\t{}\n", own, PodHostname(pod))
                            : fmt::format("{}\t{}\t{}\n", own, full_name, PodHostname(pod));
  return text + HostAliases(pod);
}

std::string EtcHostsOfHostNetwork(const json::Value& pod, std::string_view host_file) {
  std::string text(kHostNetworkHeader);
  text += host_file;
  if (text.back() != '\n') text += '\n';
  return text + HostAliases(pod);
}

std::string EtcResolvConf(const json::Value& pod, Ipv4 dns_address, const ResolvConf& host,
                          std::string_view cluster_domain) {
  const json::Value& spec = pod["spec"];
  std::string_view policy = spec["dnsPolicy"].AsString("ClusterFirst");
  if (policy == "ClusterFirst" && spec["hostNetwork"].AsBool()) policy = "Default";

  ResolvConf conf;
  if (policy == "Default") {
    conf = host;
  } else if (policy != "None") {
    conf.nameservers = {dns_address.ToString()};
    conf.search = {
        fmt::format("{}.svc.{}", pod["metadata"]["namespace"].AsString(), cluster_domain),
        fmt::format("svc.{}", cluster_domain), std::string(cluster_domain)};
    AddUnique(conf.search, host.search);
    conf.options = {"ndots:5"};
  }
  ApplyDnsConfig(spec["dnsConfig"], conf);
  KeepWithinLimits(conf);
  return FormatResolvConf(conf);
}

}  // namespace muster::agent
