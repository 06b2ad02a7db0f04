// src/agent/network/dns_answer.h
//
// What the cluster's DNS says to one question (pure): from the table, or "ask someone else".
//
// Thread:     any (pure).
// Invariants: names of the cluster domain and reverse names of its ranges are never sent outside.

#pragma once

#include <string>

#include "agent/network/dns_message.h"
#include "agent/network/dns_table.h"
#include "agent/network/ipv4.h"

namespace muster::agent {

inline constexpr uint32_t kDnsTtlSeconds = 5;

struct DnsRanges {
  Ipv4Prefix pods;
  Ipv4Prefix services;
};

struct DnsAnswer {
  enum class Kind : uint8_t {
    kReply,
    kHold,     // `reply` says no, but the address may come any moment: wait a little
    kForward,  // not ours; no reply
    kAlias,    // another name outside the cluster, `alias`: ask there, then AnswerAlias()
  };
  Kind kind = Kind::kReply;
  std::string reply;  // kAlias: what is known without asking
  std::string alias;
};

// `max_bytes`: what the transport takes.
DnsAnswer AnswerDns(const DnsQuery& query, const DnsTable& table, const DnsRanges& ranges,
                    size_t max_bytes);

// With what another server answered to a question for `alias`.
std::string AnswerAlias(const DnsQuery& query, const std::string& alias,
                        std::string_view upstream_reply, size_t max_bytes);

// A reply without records.
std::string FailDns(const DnsQuery& query, DnsCode code);

}  // namespace muster::agent
