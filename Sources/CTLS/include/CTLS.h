#ifndef CHATBRIDGE_CTLS_H
#define CHATBRIDGE_CTLS_H

// OpenSSL 3 for Swift: its macros are not imported, so they stand here as functions. No logic.

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#endif
