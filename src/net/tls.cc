#include "net/tls.h"

#include <cerrno>
#include <climits>
#include <cstring>

#include <arpa/inet.h>
#include <sys/socket.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/check.h"
#include "net/client.h"
#include "net/openssl_error.h"
#include "net/server.h"

namespace muster::net {

class TlsContext {
 public:
  explicit TlsContext(SSL_CTX* context) : context_(context) {}
  ~TlsContext() { SSL_CTX_free(context_); }
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  SSL_CTX* get() const { return context_; }
  bool verify_server = true;

 private:
  SSL_CTX* context_;
};

namespace {

struct BioFree {
  void operator()(BIO* bio) const { BIO_free_all(bio); }
};
struct X509Free {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct KeyFree {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using BioPtr = std::unique_ptr<BIO, BioFree>;
using X509Ptr = std::unique_ptr<X509, X509Free>;
using KeyPtr = std::unique_ptr<EVP_PKEY, KeyFree>;

BioPtr MemoryBio(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// A socket BIO that never raises SIGPIPE, as the stock one would.
int SocketWrite(BIO* bio, const char* data, int size) {
  int fd = static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio)));
  BIO_clear_retry_flags(bio);
  ssize_t n = send(fd, data, static_cast<size_t>(size), MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(n);
}

int SocketRead(BIO* bio, char* data, int size) {
  int fd = static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio)));
  BIO_clear_retry_flags(bio);
  ssize_t n = recv(fd, data, static_cast<size_t>(size), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(n);
}

long SocketControl(BIO*, int command, long,
                   void*) {  // NOLINT(google-runtime-int): OpenSSL's signature
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

int SocketCreate(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}

BIO_METHOD* SocketMethod() {
  static BIO_METHOD* method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "muster socket");
    BIO_meth_set_write(made, SocketWrite);
    BIO_meth_set_read(made, SocketRead);
    BIO_meth_set_ctrl(made, SocketControl);
    BIO_meth_set_create(made, SocketCreate);
    return made;
  }();
  return method;
}

class TlsSessionImpl final : public TlsSession {
 public:
  TlsSessionImpl(std::shared_ptr<TlsContext> context, int fd) : context_(std::move(context)) {
    ssl_ = SSL_new(context_->get());
    CHECK(ssl_ != nullptr);
    BIO* bio = BIO_new(SocketMethod());
    CHECK(bio != nullptr);
    BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
    SSL_set_bio(ssl_, bio, bio);
  }
  ~TlsSessionImpl() override { SSL_free(ssl_); }

  SSL* ssl() { return ssl_; }

  IoResult Handshake() override {
    ERR_clear_error();
    return Interpret(SSL_do_handshake(ssl_));
  }
  IoResult Read(char* data, size_t size, size_t& got) override {
    ERR_clear_error();
    return Interpret(SSL_read_ex(ssl_, data, size, &got));
  }
  IoResult Write(const char* data, size_t size, size_t& put) override {
    ERR_clear_error();
    return Interpret(SSL_write_ex(ssl_, data, size, &put));
  }
  void SendCloseNotify() override {
    if (SSL_is_init_finished(ssl_) != 1 || failed_) return;
    ERR_clear_error();
    SSL_shutdown(ssl_);
    ERR_clear_error();
  }
  bool HasPending() const override { return SSL_has_pending(ssl_) == 1; }
  TlsIdentity Identity() const override;
  bool PeerSpokeHttp() const override { return peer_spoke_http_; }
  std::string LastError() const override { return error_; }

 private:
  IoResult Interpret(int result) {
    if (result == 1) return IoResult::kOk;
    int saved_errno = errno;
    switch (SSL_get_error(ssl_, result)) {
      case SSL_ERROR_WANT_READ:
        return IoResult::kWantRead;
      case SSL_ERROR_WANT_WRITE:
        return IoResult::kWantWrite;
      case SSL_ERROR_ZERO_RETURN:
        return IoResult::kClosed;
      default:
        break;
    }
    failed_ = true;
    peer_spoke_http_ = ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_HTTP_REQUEST;
    // OpenSSL 3 reports a peer that left without a close_notify as an error of its own.
    bool unexpected_eof =
        ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
    long verify = SSL_get_verify_result(ssl_);  // NOLINT(google-runtime-int): OpenSSL's type
    if (verify != X509_V_OK && context_->verify_server && SSL_is_server(ssl_) == 0) {
      error_ = fmt::format("certificate: {}", X509_verify_cert_error_string(verify));
      ERR_clear_error();
    } else if (ERR_peek_error() == 0) {
      error_ = saved_errno != 0 ? strerror(saved_errno) : "connection closed";
    } else {
      error_ = OpenSslError();
    }
    return unexpected_eof && SSL_is_init_finished(ssl_) == 1 ? IoResult::kClosed : IoResult::kError;
  }

  std::shared_ptr<TlsContext> context_;
  SSL* ssl_ = nullptr;
  bool failed_ = false;
  bool peer_spoke_http_ = false;
  std::string error_;
};

std::string NameEntry(X509_NAME_ENTRY* entry) {
  unsigned char* utf8 = nullptr;
  int size = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(entry));
  if (size < 0) return "";
  std::string text(reinterpret_cast<char*>(utf8), static_cast<size_t>(size));
  OPENSSL_free(utf8);
  return text;
}

TlsIdentity TlsSessionImpl::Identity() const {
  TlsIdentity identity;
  X509Ptr certificate(SSL_get1_peer_certificate(ssl_));
  if (!certificate) return identity;
  const long verify = SSL_get_verify_result(ssl_);  // NOLINT(google-runtime-int): OpenSSL's type
  if (verify != X509_V_OK) {
    identity.refused = X509_verify_cert_error_string(verify);
    return identity;
  }
  X509_NAME* name = X509_get_subject_name(certificate.get());
  for (int i = 0; i < X509_NAME_entry_count(name); ++i) {
    X509_NAME_ENTRY* entry = X509_NAME_get_entry(name, i);
    int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
    if (nid == NID_commonName) identity.user = NameEntry(entry);
    if (nid == NID_organizationName) identity.groups.push_back(NameEntry(entry));
  }
  return identity;
}

Result<std::shared_ptr<TlsContext>> MakeContext(const SSL_METHOD* method) {
  SSL_CTX* raw = SSL_CTX_new(method);
  if (raw == nullptr) return Error(Reason::kInternalError, "TLS: {}", OpenSslError());
  auto context = std::make_shared<TlsContext>(raw);
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(raw, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_num_tickets(raw, 0);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(raw, 1);  // one read of the socket for many records
  return context;
}

Status UseCertificate(SSL_CTX* context, std::string_view certificate_pem,
                      std::string_view key_pem) {
  BioPtr bio = MemoryBio(certificate_pem);
  X509Ptr leaf(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!leaf || SSL_CTX_use_certificate(context, leaf.get()) != 1) {
    return Error(Reason::kInvalid, "TLS certificate: not a PEM certificate: {}", OpenSslError());
  }
  while (X509* issuer = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    SSL_CTX_add0_chain_cert(context, issuer);
  }
  ERR_clear_error();
  BioPtr key_bio = MemoryBio(key_pem);
  KeyPtr key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr));
  if (!key || SSL_CTX_use_PrivateKey(context, key.get()) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return Error(Reason::kInvalid, "TLS key: not the PEM private key of the certificate: {}",
                 OpenSslError());
  }
  return Status::Ok();
}

Status AddAuthorities(SSL_CTX* context, std::string_view pem, bool name_them) {
  BioPtr bio = MemoryBio(pem);
  int count = 0;
  while (X509* raw = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    X509Ptr certificate(raw);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), raw);
    if (name_them) SSL_CTX_add_client_CA(context, raw);
    ++count;
  }
  ERR_clear_error();
  if (count == 0) return Error(Reason::kInvalid, "TLS authority: no PEM certificate in it");
  return Status::Ok();
}

int ChooseAlpn(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
               unsigned in_size, void*) {
  static constexpr unsigned char kHttp11[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kHttp11, sizeof kHttp11 - 1, in, in_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

// A certificate that does not verify does not end the connection: the API answers 401 with words.
int AcceptAnyClient(int, X509_STORE_CTX*) { return 1; }

}  // namespace

Result<std::shared_ptr<TlsContext>> MakeServerTls(const TlsServerOptions& options) {
  ASSIGN_OR_RETURN(std::shared_ptr<TlsContext> context, MakeContext(TLS_server_method()));
  RETURN_IF_ERROR(UseCertificate(context->get(), options.certificate_pem, options.key_pem));
  if (!options.client_ca_pem.empty()) {
    RETURN_IF_ERROR(AddAuthorities(context->get(), options.client_ca_pem, true));
    SSL_CTX_set_verify(context->get(), SSL_VERIFY_PEER, AcceptAnyClient);
    SSL_CTX_set_purpose(context->get(), X509_PURPOSE_SSL_CLIENT);
  }
  SSL_CTX_set_alpn_select_cb(context->get(), ChooseAlpn, nullptr);
  return context;
}

Result<std::shared_ptr<TlsContext>> MakeClientTls(const ClientOptions& options) {
  ASSIGN_OR_RETURN(std::shared_ptr<TlsContext> context, MakeContext(TLS_client_method()));
  if (!options.certificate_pem.empty()) {
    RETURN_IF_ERROR(UseCertificate(context->get(), options.certificate_pem, options.key_pem));
  }
  context->verify_server = !options.insecure_skip_verify;
  if (context->verify_server) {
    if (options.ca_pem.empty()) {
      SSL_CTX_set_default_verify_paths(context->get());
    } else {
      RETURN_IF_ERROR(AddAuthorities(context->get(), options.ca_pem, false));
    }
    SSL_CTX_set_verify(context->get(), SSL_VERIFY_PEER, nullptr);
  }
  static constexpr unsigned char kHttp11[] = "\x08http/1.1";
  SSL_CTX_set_alpn_protos(context->get(), kHttp11, sizeof kHttp11 - 1);
  return context;
}

std::unique_ptr<TlsSession> MakeServerSession(const std::shared_ptr<TlsContext>& context, int fd) {
  auto session = std::make_unique<TlsSessionImpl>(context, fd);
  SSL_set_accept_state(session->ssl());
  return session;
}

std::unique_ptr<TlsSession> MakeClientSession(const std::shared_ptr<TlsContext>& context, int fd,
                                              const std::string& name) {
  auto session = std::make_unique<TlsSessionImpl>(context, fd);
  SSL_set_connect_state(session->ssl());
  unsigned char address[16];
  bool is_address = inet_pton(AF_INET, name.c_str(), address) == 1 ||
                    inet_pton(AF_INET6, name.c_str(), address) == 1;
  if (!is_address) SSL_set_tlsext_host_name(session->ssl(), name.c_str());
  if (context->verify_server) {
    if (is_address) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session->ssl()), name.c_str());
    } else {
      SSL_set1_host(session->ssl(), name.c_str());
    }
  }
  return session;
}

}  // namespace muster::net
