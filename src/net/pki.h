// src/net/pki.h
//
// Keys and certificates: a certificate authority of our own, P-256 throughout (an RSA key costs
// 0.1-0.5 s at boot).
//
//   ASSIGN_OR_RETURN(Pki pki, Pki::LoadOrCreate(dir + "/pki", loop.Now()));
//   ASSIGN_OR_RETURN(KeyPair server, pki.LoadOrIssueServer("server", DefaultServerNames(host, ips),
//   loop.Now())); ASSIGN_OR_RETURN(KeyPair admin, pki.LoadOrIssueClient("admin", "muster-admin",
//   {"system:masters"}, loop.Now()));
//
// Life cycle: a value. Certificates live on disk as DIR/<name>.crt and DIR/<name>.key and are used
// again at the next
//             start; one that has less than kRenewBefore left, or that does not fit what is asked
//             for, is made anew.
// Thread:     any; reads and writes files, so not the loop thread of a running control plane.
// Invariants: key files have mode 0600 and appear whole or not at all (temporary file, fsync,
// rename).

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace muster::net {

inline constexpr Duration kAuthorityLifetime = hours(24 * 3650);
// A process loads its certificates once, when it starts: with at least kRenewBefore left it can run
// that long.
inline constexpr Duration kCertificateLifetime = hours(24 * 730);
inline constexpr Duration kRenewBefore = hours(24 * 365);

struct KeyPair {
  std::string certificate_pem;
  std::string key_pem;
};

// Subject alternative names of a server certificate.
struct ServerNames {
  std::vector<std::string> dns;
  std::vector<std::string> ips;
};

// localhost, 127.0.0.1, ::1, the names of the `kubernetes` service and its usual address
// 10.43.0.1, `host` and `ips`.
ServerNames DefaultServerNames(std::string_view host, const std::vector<std::string>& ips);

class Pki {
 public:
  // Only in memory: for tests.
  static Result<Pki> Create(Time now);
  // The authority in `dir` (made if absent, with mode 0700). A broken file is an error that names
  // it, never replaced.
  static Result<Pki> LoadOrCreate(const std::string& dir, Time now);

  const std::string& ca_pem() const { return authority_.certificate_pem; }

  Result<KeyPair> IssueServer(std::string_view common_name, const ServerNames& names,
                              Time now) const;
  // CN = user, one O per group: what the API server reads as the identity.
  Result<KeyPair> IssueClient(std::string_view user, const std::vector<std::string>& groups,
                              Time now) const;

  // As above, kept in the directory under `file_name`.
  Result<KeyPair> LoadOrIssueServer(std::string_view file_name, const ServerNames& names,
                                    Time now) const;
  Result<KeyPair> LoadOrIssueClient(std::string_view file_name, std::string_view user,
                                    const std::vector<std::string>& groups, Time now) const;

 private:
  Pki(std::string dir, KeyPair authority)
      : dir_(std::move(dir)), authority_(std::move(authority)) {}

  std::string dir_;  // "" in memory
  KeyPair authority_;
};

// What a certificate says; for status displays and tests.
struct CertificateInfo {
  std::string common_name;
  std::vector<std::string> organizations;
  std::vector<std::string> dns, ips;
  Time not_before, not_after;
};
Result<CertificateInfo> ReadCertificate(std::string_view certificate_pem);

}  // namespace muster::net
