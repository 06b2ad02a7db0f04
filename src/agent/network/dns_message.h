// src/agent/network/dns_message.h
//
// DNS messages as bytes (RFC 1035, 2782, 6891): reading questions, writing replies.
//
// Thread:     any (pure).
// Invariants: reading never looks outside the bytes and follows no compression pointer in a
//             question.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/network/ipv4.h"

namespace muster::agent {

inline constexpr size_t kMaxDnsMessageBytes = 65535;
inline constexpr size_t kMaxDnsNameBytes = 253;  // as text, without the final dot
inline constexpr size_t kMaxDnsLabelBytes = 63;
inline constexpr size_t kPlainUdpReplyBytes = 512;  // without EDNS0
inline constexpr size_t kMaxUdpReplyBytes = 1232;   // with: never fragmented (DNS flag day 2020)

namespace dns {
inline constexpr uint16_t kTypeA = 1;
inline constexpr uint16_t kTypeCname = 5;
inline constexpr uint16_t kTypeSoa = 6;
inline constexpr uint16_t kTypePtr = 12;
inline constexpr uint16_t kTypeAaaa = 28;
inline constexpr uint16_t kTypeSrv = 33;
inline constexpr uint16_t kTypeOpt = 41;
inline constexpr uint16_t kTypeAny = 255;
inline constexpr uint16_t kClassIn = 1;
}  // namespace dns

enum class DnsCode : uint8_t {
  kNoError = 0,
  kFormatError = 1,
  kServerFailure = 2,
  kNameError = 3,  // NXDOMAIN
  kNotImplemented = 4,
  kRefused = 5,
};

struct DnsQuery {
  uint16_t id = 0;
  bool recursion_desired = false;
  std::string question;  // its bytes as received: replies repeat them, upper case included
  std::string name;      // lower case, without the final dot; "" is the root
  uint16_t type = 0;
  uint16_t klass = 0;
  bool edns = false;
  size_t udp_reply_bytes = kPlainUdpReplyBytes;  // what the client takes by UDP
  DnsCode error = DnsCode::kNoError;  // set: answer with this; the fields after the id may be empty
};

// nullopt: not a query at all (too short, or a reply); it gets no answer.
std::optional<DnsQuery> ParseDnsQuery(std::string_view bytes);

// "4.3.2.1.in-addr.arpa" -> 1.2.3.4
std::optional<Ipv4> ParseReverseName(std::string_view name);

// A question that this machine asks.
std::string MakeDnsQuestion(uint16_t id, const std::string& name, uint16_t type);

// What another server answered. nullopt: it cannot be read.
struct DnsRecord {
  uint32_t ttl_s = 0;
  std::string data;
};
struct DnsRecords {
  DnsCode code = DnsCode::kNoError;
  bool truncated = false;
  std::vector<DnsRecord> records;  // those of one type among the answers, whoever's they are
};
std::optional<DnsRecords> ParseDnsRecords(std::string_view bytes, uint16_t type);

// One reply to one query. All records are of the queried name unless said otherwise.
class DnsReply {
 public:
  DnsReply(const DnsQuery& query, DnsCode code, bool authoritative);

  void AddA(Ipv4 address, uint32_t ttl_s);
  void AddSrv(uint16_t port, std::string_view target, uint32_t ttl_s);
  void AddPtr(std::string_view target, uint32_t ttl_s);
  // `target` is the real name of what was asked for; AddRecordOf() adds what that has.
  void AddCname(std::string_view target, uint32_t ttl_s);
  void AddRecordOf(std::string_view owner, uint16_t type, uint32_t ttl_s, std::string_view data);
  // Into the authority section, after all answers: "there is no such record", to be forgotten at
  // once.
  void AddSoa(std::string_view zone);

  // The bytes. When they would be more than `max_bytes`, without records and marked as truncated.
  std::string Finish(size_t max_bytes) const;

 private:
  void AddAnswer(std::string_view owner, uint16_t type, uint32_t ttl_s, std::string_view data);
  std::string Header(bool truncated) const;

  const DnsQuery& query_;
  DnsCode code_;
  bool authoritative_;
  std::string records_;
  uint16_t answers_ = 0;
  uint16_t authorities_ = 0;
};

// The bytes of an A record.
std::string DnsAddress(Ipv4 address);

// The name as length-prefixed labels. REQUIRES: at most kMaxDnsNameBytes, labels within their
// limit.
std::string EncodeDnsName(std::string_view name);
// Whether EncodeDnsName takes it.
bool IsDnsName(std::string_view name);

}  // namespace muster::agent
