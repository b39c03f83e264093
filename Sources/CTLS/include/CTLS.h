#ifndef CHATBRIDGE_CTLS_H
#define CHATBRIDGE_CTLS_H

// OpenSSL 3 for Swift: its macros, and functions with variable arguments, are not imported, so they stand here as
// functions. No logic.

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// Contexts and connections.

static inline int cb_ssl_ctx_set_min_version(SSL_CTX *context, int version) {
    return SSL_CTX_set_min_proto_version(context, version);
}
static inline void cb_ssl_ctx_set_mode(SSL_CTX *context, long mode) { SSL_CTX_set_mode(context, mode); }
static inline void cb_ssl_ctx_set_session_cache_mode(SSL_CTX *context, long mode) {
    SSL_CTX_set_session_cache_mode(context, mode);
}
/// Takes a reference of its own to `certificate`.
static inline int cb_ssl_ctx_add_chain_certificate(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}
static inline int cb_ssl_set_server_name(SSL *ssl, const char *name) {
    return (int)SSL_set_tlsext_host_name(ssl, name);
}

static const uint64_t CB_SSL_OPTIONS =
    SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA;
static const long CB_SSL_MODES = SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE
    | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER;
static const long CB_SSL_CACHE_OFF = SSL_SESS_CACHE_OFF;
static const long CB_SSL_CACHE_CLIENT_EXTERNAL = SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL;

// Bytes in and out.

static inline void cb_bio_retry_read(BIO *bio) { BIO_set_retry_read(bio); }
static inline void cb_bio_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }
/// The bytes of a memory BIO, valid until it changes.
static inline long cb_bio_memory(BIO *bio, char **bytes) { return BIO_get_mem_data(bio, bytes); }

// Keys and certificates.

/// A new P-256 key.
static inline EVP_PKEY *cb_generate_key(void) { return EVP_EC_gen("P-256"); }

static inline int cb_general_name_count(const GENERAL_NAMES *names) { return sk_GENERAL_NAME_num(names); }
static inline const GENERAL_NAME *cb_general_name(const GENERAL_NAMES *names, int index) {
    return sk_GENERAL_NAME_value(names, index);
}
static inline int cb_general_name_type(const GENERAL_NAME *name) { return name->type; }
/// The bytes of a DNS name or an IP address.
static inline const ASN1_STRING *cb_general_name_string(const GENERAL_NAME *name) { return name->d.ia5; }

#endif
