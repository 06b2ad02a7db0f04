#include "agent/network/dns_answer.h"

#include <optional>

#include "base/strings.h"

namespace muster::agent {

namespace {

// "no": NXDOMAIN when the name does not exist, NODATA when it does, with the SOA that says how long
// to remember it.
std::string Negative(const DnsQuery& query, const DnsTable& table, bool exists, size_t max_bytes) {
  DnsReply reply(query, exists ? DnsCode::kNoError : DnsCode::kNameError, true);
  reply.AddSoa(table.domain());
  return reply.Finish(max_bytes);
}

// 10-42-0-5.NAMESPACE.pod.DOMAIN
std::optional<Ipv4> PodNameAddress(std::string_view name, const DnsTable& table,
                                   const DnsRanges& ranges) {
  const std::vector<std::string_view> labels =
      Split(name.substr(0, name.size() - table.domain().size()), '.');
  if (labels.size() != 4 || labels[2] != "pod") return std::nullopt;  // the last one is empty
  const std::optional<Ipv4> address = Ipv4::Parse(ReplaceAll(std::string(labels[0]), "-", "."));
  return address && ranges.pods.Contains(*address) ? address : std::nullopt;
}

std::string AnswerRecords(const DnsQuery& query, const DnsTable& table, const DnsTable::Node& node,
                          size_t max_bytes) {
  DnsReply reply(query, DnsCode::kNoError, true);
  size_t records = 0;
  if (query.type == dns::kTypeA || query.type == dns::kTypeAny) {
    for (const Ipv4 address : node.addresses) reply.AddA(address, kDnsTtlSeconds);
    records += node.addresses.size();
  }
  if (query.type == dns::kTypeSrv || query.type == dns::kTypeAny) {
    for (const DnsTable::Srv& srv : node.services)
      reply.AddSrv(srv.port, srv.target, kDnsTtlSeconds);
    records += node.services.size();
  }
  return records > 0 ? reply.Finish(max_bytes) : Negative(query, table, true, max_bytes);
}

// A Service of type ExternalName may name another one. A client is told the last name only, with
// what that has: one that cannot follow aliases by itself finds everything in the reply.
DnsAnswer AnswerAliasOf(const DnsQuery& query, const DnsTable& table, const DnsTable::Node& node,
                        size_t max_bytes) {
  constexpr int kMaxAliases = 8;
  std::string last = node.alias;
  const DnsTable::Node* target = table.Find(last);
  for (int i = 0; i < kMaxAliases && target != nullptr && !target->alias.empty(); ++i) {
    last = target->alias;
    target = table.Find(last);
  }
  DnsReply reply(query, DnsCode::kNoError, true);
  reply.AddCname(last, kDnsTtlSeconds);
  if (query.type == dns::kTypeA && target != nullptr) {
    for (const Ipv4 address : target->addresses)
      reply.AddRecordOf(last, dns::kTypeA, kDnsTtlSeconds, DnsAddress(address));
  }
  const bool outside = !table.InDomain(last) && query.type != dns::kTypeCname;
  return {.kind = outside ? DnsAnswer::Kind::kAlias : DnsAnswer::Kind::kReply,
          .reply = reply.Finish(max_bytes),
          .alias = outside ? last : ""};
}

DnsAnswer AnswerReverse(const DnsQuery& query, const DnsTable& table, Ipv4 address,
                        size_t max_bytes) {
  const std::string_view target = table.FindReverse(address);
  if (target.empty()) return {.reply = FailDns(query, DnsCode::kNameError)};
  if (query.type != dns::kTypePtr && query.type != dns::kTypeAny)
    return {.reply = FailDns(query, DnsCode::kNoError)};
  DnsReply reply(query, DnsCode::kNoError, true);
  reply.AddPtr(target, kDnsTtlSeconds);
  return {.reply = reply.Finish(max_bytes)};
}

}  // namespace

std::string FailDns(const DnsQuery& query, DnsCode code) {
  return DnsReply(query, code, false).Finish(kPlainUdpReplyBytes);
}

std::string AnswerAlias(const DnsQuery& query, const std::string& alias,
                        std::string_view upstream_reply, size_t max_bytes) {
  const std::optional<DnsRecords> found = ParseDnsRecords(upstream_reply, query.type);
  if (!found) return FailDns(query, DnsCode::kServerFailure);
  DnsReply reply(query, found->code, false);
  reply.AddCname(alias, kDnsTtlSeconds);
  // Data of other types may point into the message that it came in.
  if (query.type == dns::kTypeA || query.type == dns::kTypeAaaa) {
    for (const DnsRecord& record : found->records)
      reply.AddRecordOf(alias, query.type, record.ttl_s, record.data);
  }
  return reply.Finish(found->truncated ? 0 : max_bytes);
}

DnsAnswer AnswerDns(const DnsQuery& query, const DnsTable& table, const DnsRanges& ranges,
                    size_t max_bytes) {
  if (query.error != DnsCode::kNoError) return {.reply = FailDns(query, query.error)};
  if (const std::optional<Ipv4> address = ParseReverseName(query.name); address) {
    if (!ranges.pods.Contains(*address) && !ranges.services.Contains(*address)) {
      return {.kind = DnsAnswer::Kind::kForward};
    }
    return AnswerReverse(query, table, *address, max_bytes);
  }
  if (!table.InDomain(query.name)) return {.kind = DnsAnswer::Kind::kForward};
  if (query.klass != dns::kClassIn) return {.reply = FailDns(query, DnsCode::kRefused)};

  if (const DnsTable::Node* node = table.Find(query.name); node != nullptr) {
    if (!node->alias.empty()) return AnswerAliasOf(query, table, *node, max_bytes);
    DnsAnswer answer{.reply = AnswerRecords(query, table, *node, max_bytes)};
    if (query.type == dns::kTypeA && table.Awaits(query.name)) {
      answer.kind = DnsAnswer::Kind::kHold;
      answer.reply =
          Negative(query, table, false, max_bytes);  // as upstream: no endpoints, no name
    }
    return answer;
  }
  if (const std::optional<Ipv4> address = PodNameAddress(query.name, table, ranges); address) {
    if (query.type != dns::kTypeA) return {.reply = Negative(query, table, true, max_bytes)};
    DnsReply reply(query, DnsCode::kNoError, true);
    reply.AddA(*address, kDnsTtlSeconds);
    return {.reply = reply.Finish(max_bytes)};
  }
  if (!table.Awaits(query.name)) return {.reply = Negative(query, table, false, max_bytes)};
  // The pod's name below a headless Service. An AAAA question must not deny the name that A waits
  // for.
  if (query.type != dns::kTypeA) return {.reply = Negative(query, table, true, max_bytes)};
  return {.kind = DnsAnswer::Kind::kHold, .reply = Negative(query, table, false, max_bytes)};
}

}  // namespace muster::agent
