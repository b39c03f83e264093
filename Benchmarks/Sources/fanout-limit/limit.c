// The limit: what any relay would cost that does nothing but the work itself.
//
// Downward: reads the same WebSocket frames as the bridge (RFC 6455, server to client), takes sender and text out of the same JSON,
// writes the same IRC lines, with exactly one send for each client and everything that one upstream read brought. No
// allocation once everybody has joined. Upward: reads the same IRC lines and writes the same masked frames, one send for
// everything that one read brought. Knows no members, order, echoes or errors: it is a yardstick, not a relay.
//
//   fanout-limit LISTEN_PORT UPSTREAM_PORT      prints "ready", then counts at SIGTERM:
//   {"sends":…,"reads":…,"waits":…,"bytes":…,"deliveries":…,"upward":…,"user_instructions":…}

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_FD = 65536, LOG_BYTES = 8 << 20, READ_BYTES = 64 << 10 };

// Lines since the start, in a ring; each client has a cursor into it.
static char ring[LOG_BYTES];
static uint64_t head;
static struct client {
    uint64_t cursor;
    char joined, waiting;
    uint16_t held;
    char line[512];
} *clients[MAX_FD];
static int joined[MAX_FD], joined_count;
static uint64_t sends, reads, waits, bytes_sent, deliveries;
static int epoll, instructions = -1;
static volatile sig_atomic_t stopping;

static void on_stop(int s) { (void)s; stopping = 1; }

static void die(const char *what) { perror(what); exit(1); }

static void watch(int fd, uint32_t events, int op) {
    struct epoll_event e = {.events = events, .data.fd = fd};
    if (epoll_ctl(epoll, op, fd, &e) < 0) die("epoll_ctl");
}

static void append(const char *from, size_t count) {
    size_t at = head % LOG_BYTES, first = count < LOG_BYTES - at ? count : LOG_BYTES - at;
    memcpy(ring + at, from, first);
    memcpy(ring, from + first, count - first);
    head += count;
}

static void flush(int fd) {
    struct client *c = clients[fd];
    while (c->cursor < head) {
        size_t at = c->cursor % LOG_BYTES, left = head - c->cursor;
        if (left > LOG_BYTES - at) left = LOG_BYTES - at;
        ssize_t n = send(fd, ring + at, left, MSG_NOSIGNAL);
        sends++;
        if (n < 0) {
            if (errno == EAGAIN && !c->waiting) {
                c->waiting = 1;
                watch(fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
            }
            return;
        }
        bytes_sent += n;
        c->cursor += n;
    }
    if (c->waiting) {
        c->waiting = 0;
        watch(fd, EPOLLIN, EPOLL_CTL_MOD);
    }
}

// Copies the JSON string behind `key` into `out`; the frames of the benchmark hold no escapes.
static size_t field(const char *json, size_t count, const char *key, size_t key_count, char *out) {
    const char *found = memmem(json, count, key, key_count);
    if (!found) return 0;
    found += key_count;
    const char *end = memchr(found, '"', json + count - found);
    if (!end) return 0;
    memcpy(out, found, end - found);
    return end - found;
}

static void frame(const char *json, size_t count) {
    static char line[READ_BYTES + 64];
    if (!memmem(json, count, "\"message\"", 9)) return;
    size_t n = 0;
    line[n++] = ':';
    n += field(json, count, "\"sender_name\":\"", 15, line + n);
    memcpy(line + n, "!chat@lobby PRIVMSG #lobby :", 28);
    n += 28;
    n += field(json, count, "\"body\":\"", 8, line + n);
    line[n++] = '\r';
    line[n++] = '\n';
    append(line, n);
    deliveries += joined_count;
}

// A function of its own, so that callgrind can count what happens inside.
__attribute__((noinline)) static void upstream_readable(int fd) {
    static unsigned char buffer[2 * READ_BYTES];
    static size_t held;
    ssize_t n = recv(fd, buffer + held, READ_BYTES, 0);
    reads++;
    if (n <= 0) { stopping = 1; return; }
    held += n;
    size_t at = 0;
    for (;;) {
        size_t left = held - at, header = 2;
        if (left < 2) break;
        size_t length = buffer[at + 1] & 127;
        if (length == 126) {
            if (left < 4) break;
            length = buffer[at + 2] << 8 | buffer[at + 3];
            header = 4;
        }
        if (left < header + length) break;
        if ((buffer[at] & 15) == 1) frame((const char *)buffer + at + header, length);
        at += header + length;
    }
    memmove(buffer, buffer + at, held - at);
    held -= at;
    for (int i = 0; i < joined_count; i++)
        if (!clients[joined[i]]->waiting) flush(joined[i]);
}

static int upstream_fd;
static uint64_t upward;

// Writes a masked text frame for the words behind "PRIVMSG #lobby :".
static size_t up_frame(const char *text, size_t count, unsigned char *out) {
    static uint64_t number, state = 88172645463325252ull;
    char json[1024];
    number++;
    int length = snprintf(json, sizeof json,
                          "{\"event\":\"message\",\"message_id\":\"6B29FC40-CA47-1067-B31D-%012lX\",\"sender_id\":"
                          "\"9E107D9D-372B-4B68-A1D8-2542A4190001\",\"sender_name\":\"c0\",\"body\":\"%.*s\","
                          "\"sent_at\":1795272379.547}", number, (int)count, text);
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    unsigned char key[4];
    memcpy(key, &state, 4);
    out[0] = 0x81;
    out[1] = 0x80 | 126;
    out[2] = length >> 8;
    out[3] = length;
    memcpy(out + 4, key, 4);
    for (int i = 0; i < length; i++) out[8 + i] = json[i] ^ key[i & 3];
    return 8 + length;
}

// A client that speaks: each read becomes frames, and they leave in one send.
static ssize_t speaker_readable(int fd) {
    static char in[READ_BYTES];
    static size_t held;
    static unsigned char out[8 * READ_BYTES];
    ssize_t n = recv(fd, in + held, sizeof in - held, 0);
    if (n <= 0) return n;
    reads++;
    held += n;
    size_t at = 0, filled = 0;
    for (char *end; (end = memchr(in + at, '\n', held - at)) && filled < sizeof out - 2048;) {
        size_t length = end - (in + at);
        if (length > 17 && !memcmp(in + at, "PRIVMSG #lobby :", 16)) {
            filled += up_frame(in + at + 16, length - 17, out + filled);
            upward++;
        }
        at += length + 1;
    }
    memmove(in, in + at, held - at);
    held -= at;
    for (size_t sent = 0; sent < filled;) {
        ssize_t w = send(upstream_fd, out + sent, filled - sent, MSG_NOSIGNAL);
        // The load is over; what was counted is still to be told.
        if (w < 0) { stopping = 1; break; }
        sends++;
        sent += w;
    }
    return n;
}

__attribute__((noinline)) static void client_readable(int fd) {
    struct client *c = clients[fd];
    ssize_t n;
    if (c->joined && (n = speaker_readable(fd)) > 0) return;
    if (!c->joined) n = recv(fd, c->line + c->held, sizeof c->line - 1 - c->held, 0);
    if (n <= 0) {
        for (int i = 0; i < joined_count; i++)
            if (joined[i] == fd) {
                joined[i] = joined[--joined_count];
                break;
            }
        close(fd);
        return;
    }
    c->held += n;
    c->line[c->held] = 0;
    if (!c->joined && strstr(c->line, "JOIN")) {
        const char *answer = ":limit 001 me :Welcome\r\n:me!u@h JOIN #lobby\r\n:limit 366 me #lobby :End of /NAMES list\r\n";
        if (send(fd, answer, strlen(answer), MSG_NOSIGNAL) < 0) die("send");
        c->joined = 1;
        c->cursor = head;
        joined[joined_count++] = fd;
    }
    if (c->joined) c->held = 0;
}

static int connect_upstream(int port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0) die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const char *request = "GET /lobby HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    if (send(fd, request, strlen(request), 0) < 0) die("send");
    char answer[4096];
    size_t n = 0;
    while (n < sizeof answer - 1) {
        if (recv(fd, answer + n, 1, 0) <= 0) die("handshake");
        answer[++n] = 0;
        if (n >= 4 && !memcmp(answer + n - 4, "\r\n\r\n", 4)) return fd;
    }
    exit(1);
}

int main(int argc, char **argv) {
    if (argc < 3) return 64;
    signal(SIGTERM, on_stop);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    struct perf_event_attr attr = {
        .type = PERF_TYPE_HARDWARE, .size = sizeof attr, .config = PERF_COUNT_HW_INSTRUCTIONS, .exclude_kernel = 1};
    instructions = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    epoll = epoll_create1(0);
    int upstream = upstream_fd = connect_upstream(atoi(argv[2])), listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(listener, (struct sockaddr *)&a, sizeof a) < 0 || listen(listener, 4096) < 0) die("listen");
    watch(upstream, EPOLLIN, EPOLL_CTL_ADD);
    watch(listener, EPOLLIN, EPOLL_CTL_ADD);
    puts("ready");
    fflush(stdout);
    while (!stopping) {
        struct epoll_event events[512];
        int n = epoll_wait(epoll, events, 512, -1);
        waits++;
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == upstream) {
                upstream_readable(fd);
            } else if (fd == listener) {
                int client;
                while ((client = accept4(listener, 0, 0, SOCK_NONBLOCK)) >= 0) {
                    if (!clients[client]) clients[client] = malloc(sizeof(struct client));
                    memset(clients[client], 0, sizeof(struct client));
                    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                    watch(client, EPOLLIN, EPOLL_CTL_ADD);
                }
            } else {
                if (events[i].events & EPOLLOUT) flush(fd);
                if (events[i].events & (EPOLLIN | EPOLLHUP)) client_readable(fd);
            }
        }
    }
    uint64_t count = 0;
    char counted[32] = "null";
    // Virtual machines often count no instructions: null then, not a wrong number.
    if (instructions >= 0 && read(instructions, &count, sizeof count) == sizeof count && count)
        snprintf(counted, sizeof counted, "%lu", count);
    printf("{\"sends\":%lu,\"reads\":%lu,\"waits\":%lu,\"bytes\":%lu,\"deliveries\":%lu,\"upward\":%lu,\"user_instructions\":%s}\n",
           sends, reads, waits, bytes_sent, deliveries, upward, counted);
    return 0;
}
