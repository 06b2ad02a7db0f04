#include "agent/network/pod_files.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using json::List;
using json::Obj;

json::Value Pod(json::Value spec) {
  return Obj({{"metadata", Obj({{"name", "job-master-0"}, {"namespace", "ml"}})},
              {"spec", std::move(spec)}});
}

const Ipv4 kAddress = *Ipv4::Parse("10.42.0.5");
const Ipv4 kDns = *Ipv4::Parse("10.42.0.1");

bool Contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(PodFiles, HostnameIsThePodsNameUnlessSpecSaysOtherwise) {
  EXPECT_EQ(EtcHostname(Pod(Obj())), "job-master-0\n");
  EXPECT_EQ(EtcHostname(Pod(Obj({{"hostname", "rank0"}}))), "rank0\n");
  EXPECT_EQ(EtcHostname(Pod(
                Obj({{"hostname", "rank0"}, {"subdomain", "job"}, {"setHostnameAsFQDN", true}}))),
            "rank0.job.ml.svc.cluster.local\n");
}

TEST(PodFiles, LongNamesAreCutWithoutATrailingDash) {
  const std::string name = std::string(62, 'a') + "-bcd";
  const json::Value pod = Obj({{"metadata", Obj({{"name", name}})}});
  EXPECT_EQ(PodHostname(pod), std::string(62, 'a'));
}

TEST(PodFiles, HostsHasThePodsOwnNameAtItsOwnAddress) {
  EXPECT_TRUE(Contains(EtcHosts(Pod(Obj()), kAddress), "\n10.42.0.5\tjob-master-0\n"));
  EXPECT_TRUE(Contains(EtcHosts(Pod(Obj({{"hostname", "rank0"}, {"subdomain", "job"}})), kAddress),
                       "\n10.42.0.5\trank0.job.ml.svc.cluster.local\trank0\n"));
  EXPECT_TRUE(EtcHosts(Pod(Obj()), kAddress)
                  .starts_with("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"));
  EXPECT_TRUE(Contains(EtcHosts(Pod(Obj()), Ipv4{}), "\n127.0.0.1\tjob-master-0\n"));
}

TEST(PodFiles, HostAliasesAreAppended) {
  const json::Value aliases =
      List({Obj({{"ip", "192.0.2.7"}, {"hostnames", List({"data", "data.internal"})}}),
            Obj({{"ip", "192.0.2.8"}})});
  const std::string text = EtcHosts(Pod(Obj({{"hostAliases", aliases}})), kAddress);
  EXPECT_TRUE(
      text.ends_with("\n# Entries added by HostAliases.\n192.0.2.7\tdata\tdata.internal\n"));
  EXPECT_EQ(EtcHostsOfHostNetwork(Pod(Obj({{"hostAliases", aliases}})), "127.0.0.1 localhost"),
            "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n"
            "\n# Entries added by HostAliases.\n192.0.2.7\tdata\tdata.internal\n");
}

TEST(PodFiles, ClusterFirstAsksTheClusterAndKeepsTheHostsSearchList) {
  const ResolvConf host = ParseResolvConf("nameserver 192.0.2.53\nsearch corp.example\n");
  EXPECT_EQ(EtcResolvConf(Pod(Obj()), kDns, host),
            "search ml.svc.cluster.local svc.cluster.local cluster.local corp.example\n"
            "nameserver 10.42.0.1\n"
            "options ndots:5\n");
}

TEST(PodFiles, OtherPoliciesAndDnsConfig) {
  const ResolvConf host =
      ParseResolvConf("nameserver 192.0.2.53\nsearch corp.example\noptions timeout:1\n");
  EXPECT_EQ(EtcResolvConf(Pod(Obj({{"dnsPolicy", "Default"}})), kDns, host),
            FormatResolvConf(host));
  EXPECT_EQ(EtcResolvConf(Pod(Obj({{"hostNetwork", true}})), kDns, host), FormatResolvConf(host));
  EXPECT_TRUE(Contains(
      EtcResolvConf(Pod(Obj({{"dnsPolicy", "ClusterFirstWithHostNet"}, {"hostNetwork", true}})),
                    kDns, host),
      "nameserver 10.42.0.1\n"));
  const json::Value config = Obj(
      {{"nameservers", List({"192.0.2.1"})},
       {"searches", List({"ns.example"})},
       {"options", List({Obj({{"name", "ndots"}, {"value", "2"}}), Obj({{"name", "edns0"}})})}});
  EXPECT_EQ(EtcResolvConf(Pod(Obj({{"dnsPolicy", "None"}, {"dnsConfig", config}})), kDns, host),
            "search ns.example\nnameserver 192.0.2.1\noptions ndots:2 edns0\n");
  EXPECT_TRUE(Contains(EtcResolvConf(Pod(Obj({{"dnsConfig", config}})), kDns, host),
                       "options ndots:2 edns0\n"));
}

TEST(PodFiles, ResolvConfKeepsWithinWhatReadersTake) {
  json::Value servers = List();
  json::Value searches = List();
  for (int i = 0; i < 40; ++i) {
    servers = servers.Append(fmt::format("192.0.2.{}", i));
    searches = searches.Append(fmt::format("s{}.example", i));
  }
  const std::string text = EtcResolvConf(
      Pod(Obj({{"dnsConfig", Obj({{"nameservers", servers}, {"searches", searches}})}})), kDns,
      ResolvConf());
  const ResolvConf conf = ParseResolvConf(text);
  EXPECT_EQ(conf.nameservers.size(), kMaxNameservers);
  EXPECT_EQ(conf.search.size(), kMaxSearchDomains);
  const std::string longest(600, 'x');
  const std::string bounded = EtcResolvConf(
      Pod(Obj({{"dnsConfig", Obj({{"searches", List({longest, longest + "1", longest + "2",
                                                     longest + "3"})}})}})),
      kDns, ResolvConf());
  EXPECT_LE(bounded.find('\n'), kMaxSearchListBytes + 7);
}

TEST(ResolvConf, ReadsPastCommentsAndOddSpacing) {
  const ResolvConf conf = ParseResolvConf(
      "# made by hand\n; also a comment\nnameserver\t192.0.2.1 # first\r\nnameserver   192.0.2.2\n"
      "domain old.example\nsearch a.example  b.example\noptions ndots:2 rotate\nnameserver\n");
  EXPECT_EQ(conf.nameservers, (std::vector<std::string>{"192.0.2.1", "192.0.2.2"}));
  EXPECT_EQ(conf.search, (std::vector<std::string>{"a.example", "b.example"}));
  EXPECT_EQ(conf.options, (std::vector<std::string>{"ndots:2", "rotate"}));
}

}  // namespace
}  // namespace muster::agent
