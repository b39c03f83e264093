#ifndef CHATBRIDGE_CSYSTEM_H
#define CHATBRIDGE_CSYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Wrappers over calls that Swift's Glibc module does not import, and the three memory calls that the cores may use
// without importing a platform. No logic here.
//
// System headers stay in system.c: including them here makes Swift see two definitions of the same structures.
// Unless a comment says otherwise, a call returns a value of zero or more, or the negated errno.

/// Finds `byte` in `count` bytes at `base`; NULL when absent.
static inline const void *cb_memchr(const void *base, int byte, size_t count) { return memchr(base, byte, count); }
static inline void cb_memmove(void *to, const void *from, size_t count) { memmove(to, from, count); }
static inline int cb_memcmp(const void *a, const void *b, size_t count) { return memcmp(a, b, count); }

/// Sixteen bytes at once. The compiler's own vectors: a few instructions, where Swift's take them byte by byte.
typedef signed char cb_bytes16 __attribute__((vector_size(16)));

/// One bit for each of the sixteen bytes at `bytes`, the first one's the lowest: set for a quote, a backslash, a control
/// and a byte beyond ASCII. All others may stand in a JSON string as they are.
static inline uint64_t cb_json_marks16(const uint8_t *bytes) {
    cb_bytes16 word;
    __builtin_memcpy(&word, bytes, sizeof word);
    // Signed, bytes beyond ASCII are below the controls.
    cb_bytes16 marks = (cb_bytes16)((word < 0x20) | (word == '"') | (word == '\\'));
#if defined(__SSE2__)
    typedef char chars16 __attribute__((vector_size(16)));
    return (unsigned)__builtin_ia32_pmovmskb128((chars16)marks);
#else
    uint64_t bits = 0;
    for (int index = 0; index < 16; index++) bits |= (uint64_t)(marks[index] & 1) << index;
    return bits;
#endif
}

/// The same of 64 bytes.
static inline uint64_t cb_json_marks64(const uint8_t *bytes) {
    return cb_json_marks16(bytes) | cb_json_marks16(bytes + 16) << 16 | cb_json_marks16(bytes + 32) << 32
        | cb_json_marks16(bytes + 48) << 48;
}

/// The same of fewer, and as if controls came after them.
static inline uint64_t cb_json_marks(const uint8_t *bytes, size_t count) {
    uint8_t room[64] = {0};
    memcpy(room, bytes, count < sizeof room ? count : sizeof room);
    return cb_json_marks64(room);
}

/// How many of the sixteen bytes at `bytes` come before the first that is marked.
static inline long cb_json_plain16(const uint8_t *bytes) {
    return __builtin_ctz((unsigned)cb_json_marks16(bytes) | 0x10000);
}

/// Not zero where one of sixteen bytes has to be escaped in a JSON string: a quote, a backslash or a control.
static inline cb_bytes16 cb_json_escapes16(cb_bytes16 word) {
    typedef unsigned char bytes16 __attribute__((vector_size(16)));
    return (cb_bytes16)(((bytes16)word < 0x20) | (word == '"') | (word == '\\'));
}

/// Copies bytes that may stand in a JSON string as they are. Returns whether all may: otherwise the copy is invalid.
/// As many bytes as fit into a word of some size are a first and a last one, which may overlap.
static inline bool cb_json_copy_plain(uint8_t *to, const uint8_t *from, size_t count) {
    cb_bytes16 word, escapes = {0};
    uint64_t halves[2];
    if (count >= 16) {
        for (size_t offset = 0; offset < count - 16; offset += 16) {
            __builtin_memcpy(&word, from + offset, 16);
            __builtin_memcpy(to + offset, &word, 16);
            escapes |= cb_json_escapes16(word);
        }
        __builtin_memcpy(&word, from + count - 16, 16);
        __builtin_memcpy(to + count - 16, &word, 16);
    } else {
        if (count >= 8) {
            __builtin_memcpy(&halves[0], from, 8);
            __builtin_memcpy(&halves[1], from + count - 8, 8);
            __builtin_memcpy(to, &halves[0], 8);
            __builtin_memcpy(to + count - 8, &halves[1], 8);
        } else if (count >= 4) {
            uint32_t first, last;
            __builtin_memcpy(&first, from, 4);
            __builtin_memcpy(&last, from + count - 4, 4);
            __builtin_memcpy(to, &first, 4);
            __builtin_memcpy(to + count - 4, &last, 4);
            halves[0] = halves[1] = (uint64_t)first << 32 | last;
        } else if (count > 0) {
            uint8_t first = from[0], middle = from[count / 2], last = from[count - 1];
            to[0] = first;
            to[count / 2] = middle;
            to[count - 1] = last;
            // The rest is letters.
            halves[0] = halves[1] = 0x6161616161000000 | (uint64_t)last << 16 | (uint64_t)middle << 8 | first;
        } else {
            return true;
        }
        __builtin_memcpy(&word, halves, sizeof word);
    }
    escapes |= cb_json_escapes16(word);
    __builtin_memcpy(halves, &escapes, sizeof halves);
    return (halves[0] | halves[1]) == 0;
}

// Base64, sixteen digits at a time, as far as that goes. All values are in the order of their lowest byte first; on
// machines of the other order these return that nothing was done.

/// Writes the digits of the standard alphabet for the bytes at `from`, sixteen for each twelve of them.
/// Returns how many bytes that are; at most fifteen are left.
size_t cb_base64_encode(const uint8_t *from, size_t count, uint8_t *to);
/// Writes the bytes for the digits of either alphabet at `from`, twelve for each sixteen of them, and behind those a
/// byte to be ignored. Returns how many digits that are: at most 23 are left, or one of the next sixteen is no digit.
size_t cb_base64_decode(const uint8_t *from, size_t count, uint8_t *to);

// Readiness.

/// The kernel's `struct epoll_event`, which is packed on x86-64 only.
#if defined(__x86_64__)
typedef struct __attribute__((packed)) {
#else
typedef struct {
#endif
    uint32_t events;
    uint64_t tag;
} cb_epoll_event;

static const uint32_t CB_EPOLLIN = 0x001;
static const uint32_t CB_EPOLLPRI = 0x002;
static const uint32_t CB_EPOLLOUT = 0x004;
static const uint32_t CB_EPOLLERR = 0x008;
static const uint32_t CB_EPOLLHUP = 0x010;
static const uint32_t CB_EPOLLRDHUP = 0x2000;
static const uint32_t CB_EPOLLET = 1u << 31;

int cb_epoll_create(void);
int cb_epoll_add(int epoll, int descriptor, uint32_t events, uint64_t tag);
int cb_epoll_modify(int epoll, int descriptor, uint32_t events, uint64_t tag);
int cb_epoll_delete(int epoll, int descriptor);
/// `timeout` is in milliseconds, negative for ever.
int cb_epoll_wait(int epoll, cb_epoll_event *events, int capacity, int timeout);

int cb_eventfd(void);
void cb_eventfd_signal(int descriptor);

// Sockets. All descriptors are made non-blocking and close-on-exec.

/// The kernel's `struct iovec`.
typedef struct {
    const void *base;
    size_t count;
} cb_span;

int cb_socket(int family);
int cb_accept(int listener, void *address, uint32_t *length);
int cb_connect(int descriptor, const void *address, uint32_t length);
int cb_bind(int descriptor, const void *address, uint32_t length);
int cb_listen(int descriptor, int backlog);
int cb_set_option(int descriptor, int level, int option, int value);
/// The pending error of a socket, as a positive errno, or 0.
int cb_socket_error(int descriptor);
/// The user of the process at the other end of a Unix socket, as of its connect. Source: unix(7), SO_PEERCRED.
int cb_peer_user(int descriptor, uint32_t *user);
/// Makes the coming close() send a reset and drop what is queued in the kernel.
void cb_close_with_reset(int descriptor);
void cb_close(int descriptor);
int cb_set_nonblocking(int descriptor);
int64_t cb_receive(int descriptor, void *buffer, size_t capacity);
int64_t cb_send(int descriptor, const void *bytes, size_t count);
int64_t cb_send_spans(int descriptor, const cb_span *spans, int count);

// Threads.

/// Starts a thread whose name is the first 15 bytes of `name`. Signals are blocked in it, except those that a fault of
/// its own raises. 0, or a positive error number.
int cb_thread_start(const char *name, void *(*body)(void *), void *argument, unsigned long *thread);
void cb_thread_join(unsigned long thread);
void cb_thread_detach(unsigned long thread);
/// A mark of the calling thread, by which an event loop checks that it is on its own thread.
const void *cb_thread_mark(void);
void cb_set_thread_mark(const void *mark);

// Signals.

/// Catches `signals` from now on and returns a descriptor from which one byte, the signal's number, can be read for
/// each that arrives. One pipe a process: every call returns the same descriptor.
int cb_signal_watch(const int *signals, int count);
/// Restores the default action of `signals`.
void cb_signal_unwatch(const int *signals, int count);
void cb_signal_ignore(int signal);

// The process and its machine.

int64_t cb_monotonic_nanoseconds(void);
int64_t cb_realtime_nanoseconds(void);
// Of local time at that second since 1970, in seconds east of UTC.
int64_t cb_local_offset(int64_t seconds);
/// The argument at `index` of this process, its name the first; NULL behind the last. Valid for ever.
const char *cb_argument(int index);
/// The version that the build was given (see `CHATBRIDGE_VERSION` in Package.swift), empty without one; never NULL.
const char *cb_build_version(void);
/// Gives freed memory that the allocator holds back to the kernel.
void cb_memory_trim(void);
int64_t cb_getrandom(void *buffer, size_t count);
int cb_isatty(int descriptor);
/// Raises the soft limit of open files to the hard one; returns the soft limit then in force.
int64_t cb_raise_open_files(void);
int64_t cb_open_file_limit(void);
/// Writes the machine's name, always terminated by NUL.
int cb_hostname(char *buffer, size_t capacity);
/// The text of an error number, in English; never NULL.
const char *cb_error_text(int error);

#endif
