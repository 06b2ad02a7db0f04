#include "agent/network/dns_message.h"

#include <gtest/gtest.h>

#include "agent/network/dns_answer.h"
#include "agent/network/dns_test_support.h"
#include "base/rng.h"

namespace muster::agent {
namespace {

TEST(DnsQuery, ReadsNameTypeAndOffer) {
  const DnsQuery query =
      *ParseDnsQuery(MakeQuery("Job-Master-0.ML.svc.cluster.local", dns::kTypeA, 4096));
  EXPECT_EQ(query.id, 0x1234);
  EXPECT_EQ(query.name, "job-master-0.ml.svc.cluster.local");
  EXPECT_EQ(query.type, dns::kTypeA);
  EXPECT_TRUE(query.recursion_desired);
  EXPECT_TRUE(query.edns);
  EXPECT_EQ(query.udp_reply_bytes, kMaxUdpReplyBytes);
  EXPECT_EQ(ParseDnsQuery(MakeQuery("a", dns::kTypeA))->udp_reply_bytes, kPlainUdpReplyBytes);
  EXPECT_EQ(ParseDnsQuery(MakeQuery("a", dns::kTypeA, 100))->udp_reply_bytes, kPlainUdpReplyBytes);
}

TEST(DnsQuery, RepliesAndFragmentsGetNoAnswer) {
  std::string reply = MakeQuery("a", dns::kTypeA);
  reply[2] = static_cast<char>(0x81);
  EXPECT_FALSE(ParseDnsQuery(reply));
  EXPECT_FALSE(ParseDnsQuery(""));
  EXPECT_FALSE(ParseDnsQuery("short"));
}

TEST(DnsQuery, WhatIsMalformedIsAnsweredWithTheReason) {
  const std::string good = MakeQuery("a.b", dns::kTypeA);
  EXPECT_EQ(ParseDnsQuery(good.substr(0, good.size() - 1))->error, DnsCode::kFormatError);
  std::string pointer = good;
  pointer[12] = static_cast<char>(0xC0);
  EXPECT_EQ(ParseDnsQuery(pointer)->error, DnsCode::kFormatError);
  std::string two = good;
  two[5] = 2;
  EXPECT_EQ(ParseDnsQuery(two)->error, DnsCode::kFormatError);
  std::string update = good;
  update[2] = 0x28;
  EXPECT_EQ(ParseDnsQuery(update)->error, DnsCode::kNotImplemented);
  std::string endless = good.substr(0, 12);
  for (int i = 0; i < 10; ++i) endless += std::string(1, 63) + std::string(63, 'a');
  EXPECT_EQ(ParseDnsQuery(endless + std::string(5, '\0'))->error, DnsCode::kFormatError);
}

TEST(DnsQuery, SurvivesRandomBytes) {
  Rng rng(7);
  const auto table = DnsTable::Build({});
  const std::string good = MakeQuery("a.ml.svc.cluster.local", dns::kTypeA, 1232);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = good.substr(0, rng.Below(good.size() + 1));
    for (uint64_t flips = rng.Below(4); flips > 0 && !bytes.empty(); --flips) {
      bytes[rng.Below(bytes.size())] = static_cast<char>(rng.Below(256));
    }
    if (const auto query = ParseDnsQuery(bytes))
      AnswerDns(*query, *table, {}, query->udp_reply_bytes);
  }
}

TEST(DnsReply, IsCutToWhatTheClientTakes) {
  const DnsQuery query = *ParseDnsQuery(MakeQuery("many.cluster.local", dns::kTypeA));
  DnsReply reply(query, DnsCode::kNoError, true);
  for (uint32_t i = 0; i < 100; ++i) reply.AddA(Ipv4{0x0A2A0002 + i}, 5);
  const std::string cut = reply.Finish(kPlainUdpReplyBytes);
  EXPECT_EQ(ReadReply(cut), "NOERROR truncated");
  EXPECT_LE(cut.size(), kPlainUdpReplyBytes);
  EXPECT_TRUE(ReadReply(reply.Finish(kMaxDnsMessageBytes)).ends_with("A 10.42.0.101"));
}

TEST(ParseReverseName, ReadsOnlyWholeAddresses) {
  EXPECT_EQ(ParseReverseName("5.0.42.10.in-addr.arpa")->ToString(), "10.42.0.5");
  for (const char* bad : {"0.42.10.in-addr.arpa", "5.0.42.10.in-addr.arpa.x", "in-addr.arpa",
                          "a.0.42.10.in-addr.arpa"}) {
    EXPECT_FALSE(ParseReverseName(bad)) << bad;
  }
}

}  // namespace
}  // namespace muster::agent
