#ifndef CHATBRIDGE_CZLIB_H
#define CHATBRIDGE_CZLIB_H

// zlib for Swift, streams without header and checksum ("raw"): its initialisers are macros and are not imported, so they
// stand here as functions. No logic.

#include <zlib.h>

/// `window_bits` is 8 to 15.
static inline int cz_inflate_init(z_stream *stream, int window_bits) { return inflateInit2(stream, -window_bits); }

/// `window_bits` is 9 to 15: zlib refuses 8 for raw streams. `level` and `memory` are 1 to 9.
static inline int cz_deflate_init(z_stream *stream, int level, int window_bits, int memory) {
    return deflateInit2(stream, level, Z_DEFLATED, -window_bits, memory, Z_DEFAULT_STRATEGY);
}

/// Makes a stream that has come to its end ready for one that follows, which may refer back to it.
static inline int cz_inflate_continue(z_stream *stream) { return inflateResetKeep(stream); }

#endif
