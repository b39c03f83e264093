#define _GNU_SOURCE
#include "CSystem.h"

#include <errno.h>
#include <malloc.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(cb_epoll_event) == sizeof(struct epoll_event), "epoll_event");
_Static_assert(offsetof(cb_epoll_event, tag) == offsetof(struct epoll_event, data), "epoll_event.data");
_Static_assert(EPOLLIN == 0x001 && EPOLLPRI == 0x002 && EPOLLOUT == 0x004 && EPOLLERR == 0x008, "epoll flags");
_Static_assert(EPOLLHUP == 0x010 && EPOLLRDHUP == 0x2000 && (uint32_t)EPOLLET == 1u << 31, "epoll flags");
_Static_assert(sizeof(cb_span) == sizeof(struct iovec), "iovec");
_Static_assert(offsetof(cb_span, count) == offsetof(struct iovec, iov_len), "iovec.iov_len");
_Static_assert(sizeof(unsigned long) >= sizeof(pthread_t), "pthread_t");

static int answer(int result) { return result < 0 ? -errno : result; }
static int64_t answer64(ssize_t result) { return result < 0 ? -(int64_t)errno : (int64_t)result; }

int cb_epoll_create(void) { return answer(epoll_create1(EPOLL_CLOEXEC)); }

static int epoll_change(int epoll, int operation, int descriptor, uint32_t events, uint64_t tag) {
    struct epoll_event event = {.events = events, .data.u64 = tag};
    return answer(epoll_ctl(epoll, operation, descriptor, &event));
}
int cb_epoll_add(int epoll, int descriptor, uint32_t events, uint64_t tag) {
    return epoll_change(epoll, EPOLL_CTL_ADD, descriptor, events, tag);
}
int cb_epoll_modify(int epoll, int descriptor, uint32_t events, uint64_t tag) {
    return epoll_change(epoll, EPOLL_CTL_MOD, descriptor, events, tag);
}
int cb_epoll_delete(int epoll, int descriptor) { return epoll_change(epoll, EPOLL_CTL_DEL, descriptor, 0, 0); }

int cb_epoll_wait(int epoll, cb_epoll_event *events, int capacity, int timeout) {
    return answer(epoll_wait(epoll, (struct epoll_event *)events, capacity, timeout));
}

int cb_eventfd(void) { return answer(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)); }
void cb_eventfd_signal(int descriptor) {
    int saved = errno;
    (void)eventfd_write(descriptor, 1);
    errno = saved;
}

int cb_socket(int family) { return answer(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }
int cb_accept(int listener, void *address, uint32_t *length) {
    return answer(accept4(listener, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC));
}
int cb_connect(int descriptor, const void *address, uint32_t length) {
    return answer(connect(descriptor, address, length));
}
int cb_bind(int descriptor, const void *address, uint32_t length) { return answer(bind(descriptor, address, length)); }
int cb_listen(int descriptor, int backlog) { return answer(listen(descriptor, backlog)); }
int cb_set_option(int descriptor, int level, int option, int value) {
    return answer(setsockopt(descriptor, level, option, &value, sizeof value));
}
int cb_socket_error(int descriptor) {
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) < 0) return errno;
    return error;
}
int cb_peer_user(int descriptor, uint32_t *user) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0) return -errno;
    *user = peer.uid;
    return 0;
}
void cb_close_with_reset(int descriptor) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    (void)close(descriptor);
}
void cb_close(int descriptor) { (void)close(descriptor); }
int cb_set_nonblocking(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0) return -errno;
    return answer(fcntl(descriptor, F_SETFD, FD_CLOEXEC));
}

// An interrupted call moved nothing and may be repeated at once: signals are blocked on the loop's thread anyway. By the kernel's
// number, since recv and send of glibc are places where a thread can be cancelled: two atomic operations before and behind each.
// The sanitizers look at what the functions read and write, and see nothing of numbers.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CB_RECEIVE(descriptor, buffer, capacity) recv(descriptor, buffer, capacity, 0)
#define CB_SEND(descriptor, bytes, count) send(descriptor, bytes, count, MSG_NOSIGNAL)
#define CB_SEND_SPANS(descriptor, message) sendmsg(descriptor, message, MSG_NOSIGNAL)
#else
#define CB_RECEIVE(descriptor, buffer, capacity) syscall(SYS_recvfrom, descriptor, buffer, capacity, 0, NULL, NULL)
#define CB_SEND(descriptor, bytes, count) syscall(SYS_sendto, descriptor, bytes, count, MSG_NOSIGNAL, NULL, 0)
#define CB_SEND_SPANS(descriptor, message) syscall(SYS_sendmsg, descriptor, message, MSG_NOSIGNAL)
#endif
int64_t cb_receive(int descriptor, void *buffer, size_t capacity) {
    ssize_t result;
    do result = CB_RECEIVE(descriptor, buffer, capacity);
    while (result < 0 && errno == EINTR);
    return answer64(result);
}
int64_t cb_send(int descriptor, const void *bytes, size_t count) {
    ssize_t result;
    do result = CB_SEND(descriptor, bytes, count);
    while (result < 0 && errno == EINTR);
    return answer64(result);
}
int64_t cb_send_spans(int descriptor, const cb_span *spans, int count) {
    struct msghdr message = {.msg_iov = (struct iovec *)spans, .msg_iovlen = (size_t)count};
    ssize_t result;
    do result = CB_SEND_SPANS(descriptor, &message);
    while (result < 0 && errno == EINTR);
    return answer64(result);
}

int cb_thread_start(const char *name, void *(*body)(void *), void *argument, unsigned long *thread) {
    sigset_t blocked, before;
    sigfillset(&blocked);
    const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    pthread_t made;
    int error = pthread_create(&made, NULL, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) return error;
    char shortened[16];
    strncpy(shortened, name, sizeof shortened - 1);
    shortened[sizeof shortened - 1] = 0;
    (void)pthread_setname_np(made, shortened);
    *thread = (unsigned long)made;
    return 0;
}
void cb_thread_join(unsigned long thread) { (void)pthread_join((pthread_t)thread, NULL); }
void cb_thread_detach(unsigned long thread) { (void)pthread_detach((pthread_t)thread); }

static __thread const void *thread_mark;
const void *cb_thread_mark(void) { return thread_mark; }
void cb_set_thread_mark(const void *mark) { thread_mark = mark; }

static pthread_mutex_t signal_lock = PTHREAD_MUTEX_INITIALIZER;
static int signal_pipe[2] = {-1, -1};
static volatile sig_atomic_t signal_writer = -1;

static void note_signal(int signal) {
    int saved = errno;
    unsigned char number = (unsigned char)signal;
    // A full pipe means that thousands already wait to be read; dropping one more is harmless.
    ssize_t ignored = write(signal_writer, &number, 1);
    (void)ignored;
    errno = saved;
}

// The kernel drops a signal to the first process of a container that has no handler for it, so there dying of one takes a
// handler, from the beginning on. Everywhere else the default is the same and needs none.
static void die_of_signal(int signal) { _exit(128 + signal); }
static void (*deadly_action(void))(int) { return getpid() == 1 ? die_of_signal : SIG_DFL; }
__attribute__((constructor)) static void die_of_early_signals(void) {
    if (getpid() != 1) return;
    signal(SIGTERM, die_of_signal);
    signal(SIGINT, die_of_signal);
    // Of processes that lost their parents it becomes the parent; ignored, their ends leave no zombies. Source: wait(2).
    signal(SIGCHLD, SIG_IGN);
}

int cb_signal_watch(const int *signals, int count) {
    pthread_mutex_lock(&signal_lock);
    if (signal_pipe[0] < 0 && pipe2(signal_pipe, O_NONBLOCK | O_CLOEXEC) < 0) {
        int error = errno;
        pthread_mutex_unlock(&signal_lock);
        return -error;
    }
    signal_writer = signal_pipe[1];
    int result = signal_pipe[0];
    for (int i = 0; i < count; i++) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_handler = note_signal;
        action.sa_flags = SA_RESTART;
        sigfillset(&action.sa_mask);
        if (sigaction(signals[i], &action, NULL) < 0) result = -errno;
    }
    pthread_mutex_unlock(&signal_lock);
    return result;
}
void cb_signal_unwatch(const int *signals, int count) {
    for (int i = 0; i < count; i++) signal(signals[i], deadly_action());
}
void cb_signal_ignore(int number) { signal(number, SIG_IGN); }

static int64_t read_clock(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}
int64_t cb_monotonic_nanoseconds(void) { return read_clock(CLOCK_MONOTONIC); }
int64_t cb_local_offset(int64_t seconds) {
    time_t at = (time_t)seconds;
    struct tm local;
    return localtime_r(&at, &local) == NULL ? 0 : (int64_t)local.tm_gmtoff;
}

int64_t cb_realtime_nanoseconds(void) { return read_clock(CLOCK_REALTIME); }

// As glibc gives them to constructors. Swift's own come from /proc, which a chroot need not have.
static int argument_count;
static char **arguments;
__attribute__((constructor)) static void take_arguments(int count, char **values) {
    argument_count = count;
    arguments = values;
}
const char *cb_argument(int index) { return index >= 0 && index < argument_count ? arguments[index] : NULL; }

#ifndef CHATBRIDGE_VERSION
#define CHATBRIDGE_VERSION ""
#endif
const char *cb_build_version(void) { return CHATBRIDGE_VERSION; }

void cb_memory_trim(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

int64_t cb_getrandom(void *buffer, size_t count) { return answer64(getrandom(buffer, count, 0)); }
int cb_isatty(int descriptor) { return isatty(descriptor); }

static int64_t limit_value(rlim_t limit) { return limit > (rlim_t)INT64_MAX ? INT64_MAX : (int64_t)limit; }
int64_t cb_open_file_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return -errno;
    return limit_value(limit.rlim_cur);
}
int64_t cb_raise_open_files(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return -errno;
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0) return -errno;
    }
    return limit_value(limit.rlim_cur);
}

int cb_hostname(char *buffer, size_t capacity) {
    if (capacity == 0) return -EINVAL;
    if (gethostname(buffer, capacity) < 0) return -errno;
    buffer[capacity - 1] = 0;
    return 0;
}

const char *cb_error_text(int error) {
    const char *text = strerrordesc_np(error);
    return text ? text : "unknown error";
}

// Base64

typedef uint32_t words4 __attribute__((vector_size(16)));
typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint16_t halves8 __attribute__((vector_size(16)));

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
size_t cb_base64_encode(const uint8_t *from, size_t count, uint8_t *to) {
    size_t read = 0;
    // Sixteen bytes are read to encode twelve.
    for (; count - read >= 16; read += 12, to += 16) {
        words4 groups;
        for (int i = 0; i < 4; i++) {
            uint32_t group;
            __builtin_memcpy(&group, from + read + 3 * i, sizeof group);
            groups[i] = __builtin_bswap32(group);
        }
        // Four times six bits from the top of each word, the first to the lowest byte.
        words4 digits =
            (groups >> 26) | ((groups >> 12) & 0x3F00) | ((groups << 2) & 0x3F0000) | ((groups << 16) & 0x3F000000);
        cb_bytes16 values = (cb_bytes16)digits;
        // From one range of the alphabet to the next the distance between value and letter changes by as much.
        cb_bytes16 letters = values + 'A';
        letters += (cb_bytes16)(values > 25) & (('a' - 26) - 'A');
        letters += (cb_bytes16)(values > 51) & (('0' - 52) - ('a' - 26));
        letters += (cb_bytes16)(values > 61) & (('+' - 62) - ('0' - 52));
        letters += (cb_bytes16)(values > 62) & (('/' - 63) - ('+' - 62));
        __builtin_memcpy(to, &letters, sizeof letters);
    }
    return read;
}

/// Whether each byte is one of `count` letters from `first` on.
static inline cb_bytes16 within(cb_bytes16 letters, signed char first, signed char count) {
    // Signed: the range is moved to the top of all values, so that one comparison finds it.
    // Unsigned while it is moved: values beyond the top wrap to the bottom.
    bytes16 moved = (bytes16)letters + (unsigned char)(128 - first - count);
    return (cb_bytes16)((cb_bytes16)moved > (signed char)(127 - count));
}

size_t cb_base64_decode(const uint8_t *from, size_t count, uint8_t *to) {
    size_t read = 0;
    // Thirteen bytes are written to decode twelve: there is room for them while more digits follow.
    for (; count - read >= 24; read += 16, to += 12) {
        cb_bytes16 letters;
        __builtin_memcpy(&letters, from + read, sizeof letters);
        cb_bytes16 upper = within(letters, 'A', 26);
        cb_bytes16 lower = within(letters, 'a', 26);
        cb_bytes16 digit = within(letters, '0', 10);
        cb_bytes16 is62 = (letters == '+') | (letters == '-');
        cb_bytes16 is63 = (letters == '/') | (letters == '_');
        cb_bytes16 ranges = upper | lower | digit;
        uint64_t known[2];
        cb_bytes16 any = ranges | is62 | is63;
        __builtin_memcpy(known, &any, sizeof known);
        if ((known[0] & known[1]) != UINT64_MAX) break;
        cb_bytes16 offsets = (upper & -'A') | (lower & (26 - 'a')) | (digit & (52 - '0'));
        cb_bytes16 values = ((letters + offsets) & ranges) | (is62 & 62) | (is63 & 63);
        // Each time twice six bits become twelve, then twice twelve become 24, the first of them on top.
        halves8 twelves = (((halves8)values & 0x3F) << 6) | ((halves8)values >> 8);
        words4 groups = (((words4)twelves & 0xFFF) << 12) | ((words4)twelves >> 16);
        for (int i = 0; i < 4; i++) {
            uint32_t group = __builtin_bswap32(groups[i] << 8);
            __builtin_memcpy(to + 3 * i, &group, sizeof group);
        }
    }
    return read;
}
#else
size_t cb_base64_encode(const uint8_t *from, size_t count, uint8_t *to) { return 0; }
size_t cb_base64_decode(const uint8_t *from, size_t count, uint8_t *to) { return 0; }
#endif
