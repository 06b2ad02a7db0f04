// Any bytes as a DNS question: the parser and the answers must neither crash nor read outside.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "agent/network/dns_answer.h"

using muster::agent::AnswerDns;
using muster::agent::DnsRanges;
using muster::agent::DnsTable;
using muster::agent::Ipv4Prefix;
using muster::agent::ParseDnsQuery;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto table = DnsTable::Build({});
  const DnsRanges ranges{*Ipv4Prefix::Parse("10.42.0.0/16"), *Ipv4Prefix::Parse("10.43.0.0/16")};
  const auto query = ParseDnsQuery(std::string_view(reinterpret_cast<const char*>(data), size));
  if (query) AnswerDns(*query, *table, ranges, query->udp_reply_bytes);
  return 0;
}
