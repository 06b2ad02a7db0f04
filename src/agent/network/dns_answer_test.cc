// dns_table.h and dns_answer.h together: what a client hears about which objects.

#include "agent/network/dns_answer.h"

#include <gtest/gtest.h>

#include "agent/network/dns_test_support.h"

namespace muster::agent {
namespace {

using json::List;
using json::Obj;

class DnsAnswerTest : public ::testing::Test {
 protected:
  std::string Ask(std::string_view name, uint16_t type = dns::kTypeA) {
    const auto table = DnsTable::Build(input_);
    const DnsQuery query = *ParseDnsQuery(MakeQuery(name, type));
    const DnsAnswer answer = AnswerDns(query, *table, ranges_, kMaxDnsMessageBytes);
    if (answer.kind == DnsAnswer::Kind::kForward) return "forward";
    std::string first;
    if (answer.kind == DnsAnswer::Kind::kHold) first = "hold, then ";
    if (answer.kind == DnsAnswer::Kind::kAlias) first = "ask for " + answer.alias + ", else ";
    return first + ReadReply(answer.reply);
  }

  DnsInput input_;
  const DnsRanges ranges_{*Ipv4Prefix::Parse("10.42.0.0/16"), *Ipv4Prefix::Parse("10.43.0.0/16")};
};

TEST_F(DnsAnswerTest, ClusterIpServiceHasItsAddressAndNamedPorts) {
  input_.services = {ServiceObject(
      "web", Obj({{"clusterIP", "10.43.0.10"},
                  {"ports", List({Obj({{"name", "http"}, {"port", 80}}), Obj({{"port", 81}})})}}))};
  EXPECT_EQ(Ask("web.ml.svc.cluster.local"), "NOERROR A 10.43.0.10");
  EXPECT_EQ(Ask("WEB.ML.SVC.CLUSTER.LOCAL"), "NOERROR A 10.43.0.10");
  EXPECT_EQ(Ask("_http._tcp.web.ml.svc.cluster.local", dns::kTypeSrv),
            "NOERROR SRV 80 web.ml.svc.cluster.local");
  EXPECT_EQ(Ask("10.0.43.10.in-addr.arpa", dns::kTypePtr), "NOERROR PTR web.ml.svc.cluster.local");
  EXPECT_EQ(Ask("web.ml.svc.cluster.local", dns::kTypeAaaa), "NOERROR SOA cluster.local");
  EXPECT_EQ(Ask("ml.svc.cluster.local"), "NOERROR SOA cluster.local");
  EXPECT_EQ(Ask("web.other.svc.cluster.local"), "NXDOMAIN SOA cluster.local");
  EXPECT_EQ(Ask("x.web.ml.svc.cluster.local"), "NXDOMAIN SOA cluster.local");
}

TEST_F(DnsAnswerTest, HeadlessServiceHasItsReadyPods) {
  input_.services = {HeadlessService("job")};
  input_.endpoint_slices = {SliceObject(
      "job", List({EndpointObject("10.42.0.6", true, "worker-0"), EndpointObject("10.42.0.5", true),
                   EndpointObject("10.42.0.7", false, "worker-1")}))};
  EXPECT_EQ(Ask("job.ml.svc.cluster.local"), "NOERROR A 10.42.0.5, A 10.42.0.6");
  EXPECT_EQ(Ask("worker-0.job.ml.svc.cluster.local"), "NOERROR A 10.42.0.6");
  EXPECT_EQ(Ask("10-42-0-5.job.ml.svc.cluster.local"), "NOERROR A 10.42.0.5");
  EXPECT_EQ(Ask("_rdzv._tcp.job.ml.svc.cluster.local", dns::kTypeSrv),
            "NOERROR SRV 23456 10-42-0-5.job.ml.svc.cluster.local, SRV 23456 "
            "worker-0.job.ml.svc.cluster.local");
  EXPECT_EQ(Ask("6.0.42.10.in-addr.arpa", dns::kTypePtr),
            "NOERROR PTR worker-0.job.ml.svc.cluster.local");
  EXPECT_EQ(Ask("worker-1.job.ml.svc.cluster.local"), "hold, then NXDOMAIN SOA cluster.local");
  input_.services = {HeadlessService("job", true)};
  EXPECT_EQ(Ask("worker-1.job.ml.svc.cluster.local"), "NOERROR A 10.42.0.7");
}

TEST_F(DnsAnswerTest, HeadlessServiceWithoutAddressesIsHeldForA) {
  input_.services = {HeadlessService("job")};
  EXPECT_EQ(Ask("job.ml.svc.cluster.local"), "hold, then NXDOMAIN SOA cluster.local");
  // glibc asks both at once: the AAAA answer must not deny the name meanwhile.
  EXPECT_EQ(Ask("job.ml.svc.cluster.local", dns::kTypeAaaa), "NOERROR SOA cluster.local");
  EXPECT_EQ(Ask("worker-0.job.ml.svc.cluster.local", dns::kTypeAaaa), "NOERROR SOA cluster.local");
  EXPECT_EQ(Ask("_none._tcp.job.ml.svc.cluster.local", dns::kTypeSrv),
            "NXDOMAIN SOA cluster.local");
}

TEST_F(DnsAnswerTest, LocalPodIsFoundBeforeAnySliceSaysSo) {
  input_.services = {HeadlessService("job")};
  input_.local_pods = {PodObject("job", "10.42.0.5")};
  EXPECT_EQ(Ask("job.ml.svc.cluster.local"), "NOERROR A 10.42.0.5");
  EXPECT_EQ(Ask("5.0.42.10.in-addr.arpa", dns::kTypePtr),
            "NOERROR PTR 10-42-0-5.job.ml.svc.cluster.local");
  input_.local_pods = {
      PodObject("job", "10.42.0.5", Obj({{"hostname", "Rank0"}, {"subdomain", "job"}}))};
  EXPECT_EQ(Ask("rank0.job.ml.svc.cluster.local"), "NOERROR A 10.42.0.5");
}

TEST_F(DnsAnswerTest, LocalPodThatMayBeUnreadyWaitsForItsSlice) {
  input_.services = {HeadlessService("job")};
  const json::Value probed = Obj({{"containers", List({Obj({{"readinessProbe", Obj()}})})}});
  const json::Value pod = PodObject("job", "10.42.0.5", probed);
  input_.local_pods = {pod};
  EXPECT_EQ(Ask("job.ml.svc.cluster.local"), "hold, then NXDOMAIN SOA cluster.local");
  const json::Value ready = List({Obj({{"type", "Ready"}, {"status", "True"}})});
  input_.local_pods = {pod.SetPath({"status", "conditions"}, ready)};
  EXPECT_EQ(Ask("job.ml.svc.cluster.local"), "NOERROR A 10.42.0.5");
  for (const json::Value& gone :
       {PodObject("other", "10.42.0.5"),
        PodObject("job", "10.42.0.5").SetPath({"status", "phase"}, "Failed"),
        PodObject("job", "10.42.0.5")
            .SetPath({"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z"),
        PodObject("job", "")}) {
    input_.local_pods = {gone};
    EXPECT_EQ(Ask("job.ml.svc.cluster.local"), "hold, then NXDOMAIN SOA cluster.local");
  }
}

TEST_F(DnsAnswerTest, ExternalNamesAreAliases) {
  const auto alias = [](std::string_view name, std::string_view target) {
    return ServiceObject(name, Obj({{"type", "ExternalName"}, {"externalName", target}}));
  };
  input_.services = {alias("db", "DB.example.com."),
                     alias("near", "web.ml.svc.cluster.local"),
                     alias("far", "db.ml.svc.cluster.local"),
                     alias("a", "b.ml.svc.cluster.local"),
                     alias("b", "a.ml.svc.cluster.local"),
                     alias("odd", "x..y"),
                     ServiceObject("web", Obj({{"clusterIP", "10.43.0.10"}}))};
  EXPECT_EQ(Ask("db.ml.svc.cluster.local"),
            "ask for db.example.com, else NOERROR CNAME db.example.com");
  EXPECT_EQ(Ask("db.ml.svc.cluster.local", dns::kTypeAaaa),
            "ask for db.example.com, else NOERROR CNAME db.example.com");
  EXPECT_EQ(Ask("db.ml.svc.cluster.local", dns::kTypeCname), "NOERROR CNAME db.example.com");
  EXPECT_EQ(Ask("far.ml.svc.cluster.local"),
            "ask for db.example.com, else NOERROR CNAME db.example.com");
  EXPECT_EQ(Ask("near.ml.svc.cluster.local"),
            "NOERROR CNAME web.ml.svc.cluster.local, web.ml.svc.cluster.local A 10.43.0.10");
  EXPECT_EQ(Ask("near.ml.svc.cluster.local", dns::kTypeAaaa),
            "NOERROR CNAME web.ml.svc.cluster.local");
  EXPECT_TRUE(Ask("a.ml.svc.cluster.local").starts_with("NOERROR CNAME "));  // and it ends
  EXPECT_EQ(Ask("odd.ml.svc.cluster.local"), "NXDOMAIN SOA cluster.local");
}

TEST_F(DnsAnswerTest, AnAliasHasWhatTheOtherServerSaid) {
  const DnsQuery query = *ParseDnsQuery(MakeQuery("db.ml.svc.cluster.local", dns::kTypeA));
  const DnsQuery theirs = *ParseDnsQuery(MakeDnsQuestion(7, "db.example.com", dns::kTypeA));
  EXPECT_EQ(theirs.name, "db.example.com");
  const auto answer = [&](const std::string& reply) {
    return ReadReply(AnswerAlias(query, "db.example.com", reply, kPlainUdpReplyBytes));
  };
  DnsReply reply(theirs, DnsCode::kNoError, true);
  reply.AddCname("real.example.com", 60);
  reply.AddRecordOf("real.example.com", dns::kTypeA, 60, DnsAddress(*Ipv4::Parse("192.0.2.1")));
  EXPECT_EQ(answer(reply.Finish(512)), "NOERROR CNAME db.example.com, db.example.com A 192.0.2.1");
  EXPECT_EQ(answer(reply.Finish(0)), "NOERROR truncated");
  EXPECT_EQ(answer(FailDns(theirs, DnsCode::kNameError)), "NXDOMAIN CNAME db.example.com");
  const std::string whole = reply.Finish(512);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(answer(whole.substr(0, size)), "SERVFAIL") << size;
  EXPECT_EQ(answer(MakeDnsQuestion(7, "db.example.com", dns::kTypeA)), "SERVFAIL");
}

TEST_F(DnsAnswerTest, PodAddressesAreNames) {
  EXPECT_EQ(Ask("10-42-0-5.ml.pod.cluster.local"), "NOERROR A 10.42.0.5");
  EXPECT_EQ(Ask("10-42-0-5.ml.pod.cluster.local", dns::kTypeAaaa), "NOERROR SOA cluster.local");
  EXPECT_EQ(Ask("10-50-0-5.ml.pod.cluster.local"), "NXDOMAIN SOA cluster.local");
  EXPECT_EQ(Ask("nonsense.ml.pod.cluster.local"), "NXDOMAIN SOA cluster.local");
}

TEST_F(DnsAnswerTest, OnlyWhatIsNotOursGoesOutside) {
  EXPECT_EQ(Ask("example.com"), "forward");
  EXPECT_EQ(Ask("notcluster.local"), "forward");
  EXPECT_EQ(Ask("cluster.local"), "NOERROR SOA cluster.local");
  EXPECT_EQ(Ask("x.cluster.local"), "NXDOMAIN SOA cluster.local");
  EXPECT_EQ(Ask("1.2.0.192.in-addr.arpa", dns::kTypePtr), "forward");
  EXPECT_EQ(Ask("9.9.42.10.in-addr.arpa", dns::kTypePtr), "NXDOMAIN");
}

TEST_F(DnsAnswerTest, OddObjectsAreIgnored) {
  const std::string long_name(300, 'x');
  input_.services = {json::Value(), json::Value("text"), ServiceObject("", Obj()),
                     ServiceObject(long_name, Obj()),
                     ServiceObject("ext", Obj({{"clusterIP", "fd00::1"}, {"ports", "none"}}))};
  input_.endpoint_slices = {json::Value(7),
                            SliceObject("job", List({EndpointObject("x", true, long_name)}))};
  input_.local_pods = {json::Value()};
  EXPECT_EQ(Ask("ext.ml.svc.cluster.local"), "NOERROR SOA cluster.local");
}

}  // namespace
}  // namespace muster::agent
