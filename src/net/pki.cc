#include "net/pki.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/check.h"
#include "base/files.h"
#include "base/strings.h"
#include "net/openssl_deleter.h"
#include "net/openssl_error.h"

namespace muster::net {
namespace {

using KeyPtr = std::unique_ptr<EVP_PKEY, OpensslDeleter<EVP_PKEY_free>>;
using BioPtr = std::unique_ptr<BIO, OpensslDeleter<BIO_free_all>>;
using X509Ptr = std::unique_ptr<X509, OpensslDeleter<X509_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, OpensslDeleter<X509_EXTENSION_free>>;

constexpr Duration kBackdate = minutes(5);  // for machines whose clocks differ a little

std::string TakeText(BIO* bio) {
  char* data = nullptr;
  long size = BIO_get_mem_data(bio, &data);  // NOLINT(google-runtime-int): OpenSSL's type
  return std::string(data, static_cast<size_t>(size));
}

std::string ToPem(X509* certificate) {
  BioPtr bio(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_X509(bio.get(), certificate) == 1);
  return TakeText(bio.get());
}

std::string ToPem(EVP_PKEY* key) {
  BioPtr bio(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return TakeText(bio.get());
}

X509Ptr CertificateFromPem(std::string_view pem) {
  BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return X509Ptr(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

KeyPtr KeyFromPem(std::string_view pem) {
  BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return KeyPtr(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
}

time_t Seconds(Time time) {
  return std::chrono::duration_cast<seconds>(time.time_since_epoch()).count();
}

struct Template {
  std::string common_name;
  std::vector<std::string> organizations;
  std::vector<std::pair<int, std::string>> extensions;  // NID -> OpenSSL's notation
  Duration lifetime{};
};

void AddName(X509_NAME* name, const char* field, const std::string& value) {
  X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(value.data()),
                             static_cast<int>(value.size()), -1, 0);
}

Status SetSerial(X509* certificate) {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof bytes) != 1)
    return Error(Reason::kInternalError, "random numbers: {}", OpenSslError());
  bytes[0] = (bytes[0] & 0x7f) | 0x40;  // positive, and always of the same length
  BIGNUM* number = BN_bin2bn(bytes, sizeof bytes, nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
  BN_free(number);
  return Status::Ok();
}

// Signed by `issuer`, or by itself if that is null.
Result<KeyPair> Issue(const Template& wanted, const KeyPair* issuer, Time now) {
  KeyPtr key(EVP_EC_gen("P-256"));
  X509Ptr certificate(X509_new());
  if (!key || !certificate)
    return Error(Reason::kInternalError, "certificate {:?}: {}", wanted.common_name,
                 OpenSslError());
  X509Ptr issuer_certificate =
      issuer != nullptr ? CertificateFromPem(issuer->certificate_pem) : nullptr;
  KeyPtr issuer_key = issuer != nullptr ? KeyFromPem(issuer->key_pem) : nullptr;
  if (issuer != nullptr && (!issuer_certificate || !issuer_key)) {
    return Error(Reason::kInternalError, "certificate authority: {}", OpenSslError());
  }
  X509* made = certificate.get();
  X509_set_version(made, X509_VERSION_3);
  RETURN_IF_ERROR(SetSerial(made));
  ASN1_TIME_set(X509_getm_notBefore(made), Seconds(now - kBackdate));
  ASN1_TIME_set(X509_getm_notAfter(made), Seconds(now + wanted.lifetime));
  X509_NAME* subject = X509_get_subject_name(made);
  for (const std::string& organization : wanted.organizations) AddName(subject, "O", organization);
  AddName(subject, "CN", wanted.common_name);
  X509_set_issuer_name(
      made, issuer_certificate ? X509_get_subject_name(issuer_certificate.get()) : subject);
  X509_set_pubkey(made, key.get());

  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer_certificate ? issuer_certificate.get() : made, made, nullptr,
                 nullptr, 0);
  for (const auto& [nid, text] : wanted.extensions) {
    ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, text.c_str()));
    if (!extension || X509_add_ext(made, extension.get(), -1) != 1) {
      return Error(Reason::kInvalid, "certificate {:?}: extension {:?}: {}", wanted.common_name,
                   text, OpenSslError());
    }
  }
  if (X509_sign(made, issuer_key ? issuer_key.get() : key.get(), EVP_sha256()) == 0) {
    return Error(Reason::kInternalError, "certificate {:?}: {}", wanted.common_name,
                 OpenSslError());
  }
  return KeyPair{ToPem(made), ToPem(key.get())};
}

// nullopt if neither file exists.
Result<std::optional<KeyPair>> LoadPair(const std::string& base) {
  Result<std::string> certificate = ReadSmallFile(base + ".crt");
  Result<std::string> key = ReadSmallFile(base + ".key");
  bool no_certificate = !certificate && certificate.error().reason() == Reason::kNotFound;
  bool no_key = !key && key.error().reason() == Reason::kNotFound;
  // The key is written first: a certificate without its key cannot come from a crash of ours.
  if (no_certificate && (no_key || key)) return std::optional<KeyPair>();
  if (!certificate) return Error(certificate.error());
  if (!key) return Error(key.error());
  return std::optional<KeyPair>(KeyPair{*std::move(certificate), *std::move(key)});
}

Status SavePair(const std::string& base, const KeyPair& pair) {
  RETURN_IF_ERROR(WriteFileAtomic(base + ".key", pair.key_pem, 0600, true));
  return WriteFileAtomic(base + ".crt", pair.certificate_pem, 0600, true);
}

bool KeyFits(const KeyPair& pair) {
  X509Ptr certificate = CertificateFromPem(pair.certificate_pem);
  KeyPtr key = KeyFromPem(pair.key_pem);
  bool fits = certificate && key && X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  return fits;
}

bool IssuedBy(const KeyPair& pair, const KeyPair& authority) {
  X509Ptr certificate = CertificateFromPem(pair.certificate_pem);
  X509Ptr issuer = CertificateFromPem(authority.certificate_pem);
  if (!certificate || !issuer) return false;
  KeyPtr key(X509_get_pubkey(issuer.get()));
  bool fits = X509_verify(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  return fits;
}

// A usable pair from disk, or a new one from `issue`.
Result<KeyPair> LoadOrIssue(const std::string& dir, std::string_view file_name,
                            const KeyPair& authority, Time now,
                            const std::function<bool(const CertificateInfo&)>& fits,
                            const std::function<Result<KeyPair>()>& issue) {
  if (dir.empty()) return issue();
  std::string base = fmt::format("{}/{}", dir, file_name);
  ASSIGN_OR_RETURN(std::optional<KeyPair> loaded, LoadPair(base));
  if (loaded && KeyFits(*loaded) && IssuedBy(*loaded, authority)) {
    ASSIGN_OR_RETURN(CertificateInfo info, ReadCertificate(loaded->certificate_pem));
    if (info.not_after - now >= kRenewBefore && fits(info)) return *std::move(loaded);
  }
  ASSIGN_OR_RETURN(KeyPair made, issue());
  RETURN_IF_ERROR(SavePair(base, made));
  return made;
}

Result<KeyPair> IssueAuthority(Time now) {
  Template wanted;
  wanted.common_name = fmt::format("muster-ca@{}", Seconds(now));
  wanted.lifetime = kAuthorityLifetime;
  wanted.extensions = {{NID_basic_constraints, "critical,CA:TRUE"},
                       {NID_key_usage, "critical,keyCertSign,cRLSign,digitalSignature"},
                       {NID_subject_key_identifier, "hash"}};
  return Issue(wanted, nullptr, now);
}

std::vector<std::string> Sorted(std::vector<std::string> list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

// IPv6 addresses have many spellings.
std::string CanonicalIp(const std::string& ip) {
  unsigned char bytes[16];
  char text[INET6_ADDRSTRLEN] = "";
  if (inet_pton(AF_INET6, ip.c_str(), bytes) == 1)
    return inet_ntop(AF_INET6, bytes, text, sizeof text);
  return ip;
}

std::vector<std::string> CanonicalIps(const std::vector<std::string>& ips) {
  std::vector<std::string> out;
  for (const std::string& ip : ips) out.push_back(CanonicalIp(ip));
  return Sorted(std::move(out));
}

Time FromAsn1(const ASN1_TIME* time) {
  tm parts{};
  ASN1_TIME_to_tm(time, &parts);
  return Time(seconds(timegm(&parts)));
}

std::string NameText(ASN1_STRING* text) {
  unsigned char* utf8 = nullptr;
  int size = ASN1_STRING_to_UTF8(&utf8, text);
  if (size < 0) return "";
  std::string out(reinterpret_cast<char*>(utf8), static_cast<size_t>(size));
  OPENSSL_free(utf8);
  return out;
}

}  // namespace

ServerNames DefaultServerNames(std::string_view host, const std::vector<std::string>& ips) {
  ServerNames names;
  names.dns = {"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
               "kubernetes.default.svc.cluster.local"};
  if (!host.empty()) names.dns.emplace_back(host);
  names.ips = {"127.0.0.1", "::1", "10.43.0.1"};
  names.ips.insert(names.ips.end(), ips.begin(), ips.end());
  names.dns = Sorted(std::move(names.dns));
  names.ips = CanonicalIps(names.ips);
  return names;
}

Result<Pki> Pki::Create(Time now) {
  ASSIGN_OR_RETURN(KeyPair authority, IssueAuthority(now));
  return Pki("", std::move(authority));
}

Result<Pki> Pki::LoadOrCreate(const std::string& dir, Time now) {
  if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
    return Error(Reason::kInternalError, "{}: {}", dir, strerror(errno));
  }
  ASSIGN_OR_RETURN(std::optional<KeyPair> loaded, LoadPair(dir + "/ca"));
  if (!loaded) {
    ASSIGN_OR_RETURN(KeyPair authority, IssueAuthority(now));
    RETURN_IF_ERROR(SavePair(dir + "/ca", authority));
    return Pki(dir, std::move(authority));
  }
  if (!KeyFits(*loaded)) {
    return Error(Reason::kInternalError,
                 "{}/ca.crt and ca.key: not a certificate and its key; restore both, or remove "
                 "both to make a new authority (all kubeconfigs must then be made again)",
                 dir);
  }
  return Pki(dir, *std::move(loaded));
}

Result<KeyPair> Pki::IssueServer(std::string_view common_name, const ServerNames& names,
                                 Time now) const {
  Template wanted;
  wanted.common_name = std::string(common_name);
  wanted.lifetime = kCertificateLifetime;
  std::vector<std::string> alternatives;
  for (const std::string& dns : names.dns) {
    // Commas and colons are separators in OpenSSL's notation; no host name has them.
    if (dns.find_first_of(",:\n ") != std::string::npos) {
      return Error(Reason::kInvalid, "server name {:?}: not a host name", dns);
    }
    alternatives.push_back("DNS:" + dns);
  }
  for (const std::string& ip : names.ips) {
    unsigned char bytes[16];
    if (inet_pton(AF_INET, ip.c_str(), bytes) != 1 && inet_pton(AF_INET6, ip.c_str(), bytes) != 1) {
      return Error(Reason::kInvalid, "server address {:?}: not an IP address", ip);
    }
    alternatives.push_back("IP:" + ip);
  }
  wanted.extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                       {NID_key_usage, "critical,digitalSignature"},
                       {NID_ext_key_usage, "serverAuth"},
                       {NID_authority_key_identifier, "keyid"}};
  if (!alternatives.empty())
    wanted.extensions.emplace_back(NID_subject_alt_name, Join(alternatives, ","));
  return Issue(wanted, &authority_, now);
}

Result<KeyPair> Pki::IssueClient(std::string_view user, const std::vector<std::string>& groups,
                                 Time now) const {
  Template wanted;
  wanted.common_name = std::string(user);
  wanted.organizations = groups;
  wanted.lifetime = kCertificateLifetime;
  wanted.extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                       {NID_key_usage, "critical,digitalSignature"},
                       {NID_ext_key_usage, "clientAuth"},
                       {NID_authority_key_identifier, "keyid"}};
  return Issue(wanted, &authority_, now);
}

Result<KeyPair> Pki::LoadOrIssueServer(std::string_view file_name, const ServerNames& names,
                                       Time now) const {
  auto fits = [&names](const CertificateInfo& info) {
    return Sorted(info.dns) == Sorted(names.dns) &&
           CanonicalIps(info.ips) == CanonicalIps(names.ips);
  };
  return LoadOrIssue(dir_, file_name, authority_, now, fits,
                     [&] { return IssueServer("muster", names, now); });
}

Result<KeyPair> Pki::LoadOrIssueClient(std::string_view file_name, std::string_view user,
                                       const std::vector<std::string>& groups, Time now) const {
  auto fits = [&](const CertificateInfo& info) {
    return info.common_name == user && Sorted(info.organizations) == Sorted(groups);
  };
  return LoadOrIssue(dir_, file_name, authority_, now, fits,
                     [&] { return IssueClient(user, groups, now); });
}

Result<CertificateInfo> ReadCertificate(std::string_view certificate_pem) {
  X509Ptr certificate = CertificateFromPem(certificate_pem);
  if (!certificate) return Error(Reason::kInvalid, "not a PEM certificate: {}", OpenSslError());
  CertificateInfo info;
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  for (int i = 0; i < X509_NAME_entry_count(subject); ++i) {
    X509_NAME_ENTRY* entry = X509_NAME_get_entry(subject, i);
    int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
    if (nid == NID_commonName) info.common_name = NameText(X509_NAME_ENTRY_get_data(entry));
    if (nid == NID_organizationName)
      info.organizations.push_back(NameText(X509_NAME_ENTRY_get_data(entry)));
  }
  auto* names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    if (name->type == GEN_DNS) info.dns.push_back(NameText(name->d.dNSName));
    if (name->type != GEN_IPADD) continue;
    char text[INET6_ADDRSTRLEN] = "";
    int family = name->d.iPAddress->length == 4 ? AF_INET : AF_INET6;
    inet_ntop(family, name->d.iPAddress->data, text, sizeof text);
    info.ips.emplace_back(text);
  }
  GENERAL_NAMES_free(names);
  info.not_before = FromAsn1(X509_get0_notBefore(certificate.get()));
  info.not_after = FromAsn1(X509_get0_notAfter(certificate.get()));
  return info;
}

}  // namespace muster::net
