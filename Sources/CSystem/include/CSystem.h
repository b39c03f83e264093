#ifndef CHATBRIDGE_CSYSTEM_H
#define CHATBRIDGE_CSYSTEM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Wrappers over calls that Swift's Glibc module does not import, and the three memory calls that the cores may use
// without importing a platform. No logic here.

/// Finds `byte` in `count` bytes at `base`; NULL when absent.
static inline const void *cb_memchr(const void *base, int byte, size_t count) { return memchr(base, byte, count); }
static inline void cb_memmove(void *to, const void *from, size_t count) { memmove(to, from, count); }
static inline int cb_memcmp(const void *a, const void *b, size_t count) { return memcmp(a, b, count); }

#endif
