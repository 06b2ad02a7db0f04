// Any bytes as a DNS question to a table with Services and pods, and as another server's answer:
// the parser and the answers must neither crash nor read outside, and a reply is a reply to this
// question, within its size.

#include <vector>

#include "agent/network/dns_answer.h"
#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "json/parse.h"

namespace {

using muster::agent::DnsAnswer;
using muster::agent::DnsInput;
using muster::agent::DnsQuery;
using muster::agent::DnsTable;
using muster::agent::Ipv4Prefix;

constexpr size_t kHeaderBytes = 12;

std::shared_ptr<const DnsTable> MakeTable() {
  DnsInput input;
  input.services = *muster::json::ParseYaml(R"(
metadata: {name: web, namespace: ns}
spec: {clusterIP: 10.43.0.9, ports: [{name: http, port: 80, protocol: TCP}]}
---
metadata: {name: db, namespace: ns}
spec: {type: ExternalName, externalName: db.example.com}
---
metadata: {name: gang, namespace: ns}
spec: {clusterIP: None, selector: {job: gang}, ports: [{name: rdzv, port: 29500}]}
)");
  input.local_pods = *muster::json::ParseYaml(R"(
metadata: {name: gang-0, namespace: ns, labels: {job: gang}}
spec: {hostname: gang-0, subdomain: gang, containers: [{name: c}]}
status: {phase: Running, podIP: 10.42.0.5}
)");
  return DnsTable::Build(input);
}

uint16_t ShortAt(std::string_view bytes, size_t at) {
  return static_cast<uint16_t>(static_cast<uint8_t>(bytes[at]) << 8 |
                               static_cast<uint8_t>(bytes[at + 1]));
}

void CheckReply(const DnsQuery& query, std::string_view reply, size_t max_bytes) {
  CHECK(reply.size() <= max_bytes || ShortAt(reply, 6) == 0);  // truncated: no answers
  CHECK(reply.size() >= kHeaderBytes + query.question.size());
  CHECK(ShortAt(reply, 0) == query.id);
  CHECK((ShortAt(reply, 2) & 0x8000) != 0);
  CHECK(!muster::agent::ParseDnsQuery(reply));  // or two servers would talk for ever
  CHECK(ShortAt(reply, 4) == (query.question.empty() ? 0 : 1));
  CHECK(reply.substr(kHeaderBytes, query.question.size()) == query.question);
  CHECK(ShortAt(reply, 10) == (query.edns ? 1 : 0));
}

}  // namespace

FUZZ_TARGET(dns, input) {
  static const auto table = MakeTable();
  static const muster::agent::DnsRanges ranges{*Ipv4Prefix::Parse("10.42.0.0/16"),
                                               *Ipv4Prefix::Parse("10.43.0.0/16")};
  const std::string question = muster::agent::MakeDnsQuestion(7, "db.ns.svc.cluster.local", 1);
  const DnsQuery alias = *muster::agent::ParseDnsQuery(question);
  CheckReply(alias, muster::agent::AnswerAlias(alias, "db.example.com", input, 512), 512);
  const auto query = muster::agent::ParseDnsQuery(input);
  if (!query) return;
  if (query->error == muster::agent::DnsCode::kNoError) {
    CHECK(query->name.size() <= muster::agent::kMaxDnsNameBytes);
    CHECK(!query->question.empty());
  }
  const size_t max_bytes = query->udp_reply_bytes;
  const DnsAnswer answer = muster::agent::AnswerDns(*query, *table, ranges, max_bytes);
  CHECK((answer.kind == DnsAnswer::Kind::kForward) == answer.reply.empty());
  if (answer.kind != DnsAnswer::Kind::kForward) CheckReply(*query, answer.reply, max_bytes);
  if (answer.kind == DnsAnswer::Kind::kForward) CHECK(!table->InDomain(query->name));
}
