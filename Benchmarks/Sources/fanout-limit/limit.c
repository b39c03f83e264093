// The limit: what any relay would cost that does nothing but the work itself. A yardstick, not a relay: it knows the load's
// frames and lines (fanout-load) and nothing else, no members, order, echoes or errors.
//
// Downward: one recv of up to 256 KiB; of each frame the body, which begins at a fixed place, behind a constant prefix; then one
// send a client for all that the recv brought. Upward: each line becomes a masked frame of its author's, and one send takes all
// that the clients said in one turn of the loop. Registrations: two fixed answers. No allocation but for who is slow.
//
//   fanout-limit IRC_PORT WS_PORT ROOMS [CERT KEY]      with a certificate, clients speak TLS

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FD = 65536, READ_BYTES = 256 << 10, HELD_BYTES = 1024, BODY_AT = 155, BEHIND_BODY = 26, TEMPLATE_BYTES = 192 };

// What a client did not take at once, and what has come of its last line.
struct client {
    SSL *ssl;
    struct room *room;
    char *waiting;
    uint32_t waiting_count, place; // in room->members
    uint16_t held_count;
    char nick[16], *held;
    // The beginning of each frame of this author's, up to its body.
    char *template;
    uint16_t template_count;
};
struct room {
    int number, upstream, *members, member_count, member_room;
    char prefix[64];
    uint16_t prefix_count, held_count;
    unsigned char held[HELD_BYTES];
};
static struct client *clients[MAX_FD];
static struct room *room_of[MAX_FD], *rooms;
static unsigned char in[HELD_BYTES + READ_BYTES], upward[4 << 20];
static size_t upward_count;
static int epoll, room_count, upstream_of_upward;
// The end of each frame upward, with the time of the turn; empty before its first.
static char end[40];
static size_t end_count;
static SSL_CTX *tls;

static void die(const char *what) { perror(what); exit(1); }

static void watch(int fd, uint32_t events, int op) {
    struct epoll_event e = {.events = events, .data.fd = fd};
    if (epoll_ctl(epoll, op, fd, &e) < 0) die("epoll_ctl");
}

static void leave(int fd) {
    struct client *c = clients[fd];
    if (c->room) {
        int last = c->room->members[--c->room->member_count];
        c->room->members[c->place] = last;
        clients[last]->place = c->place;
    }
    SSL_free(c->ssl);
    free(c->waiting);
    free(c->held);
    free(c->template);
    free(c);
    clients[fd] = 0;
    close(fd);
}

// As send and recv do, through TLS where there is a certificate: -1 is "not now".
static ssize_t give(int fd, struct client *c, const void *from, size_t count) {
    if (!c->ssl) return send(fd, from, count, MSG_NOSIGNAL);
    int n = SSL_write(c->ssl, from, count);
    return n > 0 ? n : -1;
}

static ssize_t take(int fd, struct client *c, void *into, size_t count) {
    if (!c->ssl) return recv(fd, into, count, 0);
    int n = SSL_read(c->ssl, into, count);
    return n > 0 ? n : SSL_get_error(c->ssl, n) == SSL_ERROR_WANT_READ ? -1 : 0;
}

static void keep(int fd, struct client *c, const char *from, size_t count) {
    if (!c->waiting_count) watch(fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
    if (!(c->waiting = realloc(c->waiting, c->waiting_count + count))) die("realloc");
    memcpy(c->waiting + c->waiting_count, from, count);
    c->waiting_count += count;
}

static inline void send_to(int fd, const char *from, size_t count) {
    struct client *c = clients[fd];
    ssize_t n = c->waiting_count ? 0 : give(fd, c, from, count);
    if (n < 0) n = 0;
    if ((size_t)n < count) keep(fd, c, from + n, count - n);
}

static void client_writable(int fd, struct client *c) {
    ssize_t n = give(fd, c, c->waiting, c->waiting_count);
    if (n <= 0) return;
    memmove(c->waiting, c->waiting + n, c->waiting_count - n);
    if (!(c->waiting_count -= n)) watch(fd, EPOLLIN, EPOLL_CTL_MOD);
}

static void upstream_readable(struct room *room) {
    static char out[2 * READ_BYTES];
    memcpy(in, room->held, room->held_count);
    ssize_t n = recv(room->upstream, in + room->held_count, READ_BYTES, 0);
    if (n <= 0) exit(0);
    size_t held = room->held_count + n, at = 0, filled = 0;
    // Every frame has between 126 and 65535 bytes, as the load makes them.
    while (held - at >= 4) {
        size_t length = 4 + (in[at + 2] << 8 | in[at + 3]);
        if (held - at < length) break;
        memcpy(out + filled, room->prefix, room->prefix_count);
        filled += room->prefix_count;
        size_t body = length - 4 - BODY_AT - BEHIND_BODY;
        memcpy(out + filled, in + at + 4 + BODY_AT, body);
        filled += body;
        out[filled++] = '\r';
        out[filled++] = '\n';
        at += length;
    }
    memcpy(room->held, in + at, room->held_count = held - at);
    for (int i = 0; i < room->member_count; i++) send_to(room->members[i], out, filled);
}

// A masked text frame: the author's template with the message's number in its id, the body, the time.
static void up_frame(struct client *c, const char *body, size_t count) {
    static uint64_t number, state = 88172645463325252ull;
    if (sizeof upward - upward_count < 1024) die("upward");
    if (!end_count) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME_COARSE, &t);
        end_count = snprintf(end, sizeof end, "\",\"sent_at\":%ld.%03ld}", t.tv_sec, t.tv_nsec / 1000000);
    }
    unsigned char *out = upward + upward_count;
    size_t length = c->template_count + count + end_count;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    uint32_t key = (uint32_t)state;
    out[0] = 0x81;
    out[1] = 0x80 | 126;
    out[2] = length >> 8;
    out[3] = length;
    memcpy(out + 4, &key, 4);
    out += 8;
    memcpy(out, c->template, c->template_count);
    uint64_t value = number++;
    for (int i = 0; i < 8; i++, value >>= 4) out[68 - i] = "0123456789ABCDEF"[value & 15];
    memcpy(out + c->template_count, body, count);
    memcpy(out + c->template_count + count, end, end_count);
    // The bytes behind the frame are nobody's yet.
    uint64_t wide = (uint64_t)key << 32 | key;
    for (size_t i = 0; i < length; i += 8) {
        uint64_t word;
        memcpy(&word, out + i, 8);
        word ^= wide;
        memcpy(out + i, &word, 8);
    }
    upward_count += 8 + length;
}

static void join(int fd, struct client *c, const char *line) {
    struct room *room = &rooms[atoi(line + 7)];
    if (c->room) return;
    c->room = room;
    if (room->member_count == room->member_room) {
        room->member_room = room->member_room ? 2 * room->member_room : 4;
        if (!(room->members = realloc(room->members, room->member_room * sizeof(int)))) die("realloc");
    }
    c->place = room->member_count;
    room->members[room->member_count++] = fd;
    char answer[128];
    send_to(fd, answer, snprintf(answer, sizeof answer, ":me!u@h JOIN #r%d\r\n:limit 366 me #r%d :End of /NAMES list\r\n",
                                 room->number, room->number));
}

static void line(int fd, struct client *c, const char *text, size_t count) {
    if (!memcmp(text, "PRIVMSG ", 8)) {
        if (!c->template) {
            c->template = malloc(TEMPLATE_BYTES);
            c->template_count = snprintf(c->template, TEMPLATE_BYTES,
                "{\"event\":\"message\",\"message_id\":\"6B29FC40-CA47-1067-B31D-000000000000\",\"sender_id\":"
                "\"9E107D9D-372B-4B68-A1D8-2542%08X\",\"sender_name\":\"%s\",\"body\":\"", fd, c->nick);
        }
        up_frame(c, text + 13, count - 14); // behind "PRIVMSG #r0 :", before the CR
    } else if (!memcmp(text, "NICK ", 5)) {
        snprintf(c->nick, sizeof c->nick, "%.*s", (int)(count - 6 < 15 ? count - 6 : 15), text + 5);
    } else if (!memcmp(text, "USER ", 5)) {
        send_to(fd, ":limit 001 me :Welcome\r\n", 24);
    } else if (!memcmp(text, "JOIN ", 5)) {
        join(fd, c, text);
    } else if (!memcmp(text, "PING ", 5)) {
        send_to(fd, ":limit PONG limit :end\r\n", 24);
    }
}

static void client_readable(int fd, struct client *c) {
    size_t held = c->held_count;
    memcpy(in, c->held, held);
    ssize_t n;
    do {
        n = take(fd, c, in + held, READ_BYTES);
        if (n == 0 || (n < 0 && !c->ssl && errno != EAGAIN)) return leave(fd);
        if (n < 0) return;
        char *at = (char *)in, *stop = at + held + n;
        for (char *newline; (newline = memchr(at, '\n', stop - at)); at = newline + 1) line(fd, c, at, newline - at);
        held = stop - at;
        if (held > HELD_BYTES) return leave(fd);
        memmove(in, at, held);
    } while (c->ssl && SSL_pending(c->ssl));
    if (held && !c->held) c->held = malloc(HELD_BYTES);
    if (held) memcpy(c->held, in, held);
    c->held_count = held;
}

static void send_upward(void) {
    for (size_t sent = 0; sent < upward_count;) {
        ssize_t n = send(upstream_of_upward, upward + sent, upward_count - sent, MSG_NOSIGNAL);
        if (n < 0) exit(0);
        sent += n;
    }
    upward_count = end_count = 0;
}

static void connect_upstream(struct room *room, int number, int port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0) die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    char text[512];
    int n = snprintf(text, sizeof text, "GET /r%d HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n", number);
    if (send(fd, text, n, 0) != n) die("send");
    for (n = 0; n < 4 || memcmp(text + n - 4, "\r\n\r\n", 4); n++)
        if (n == sizeof text || recv(fd, text + n, 1, 0) <= 0) die("handshake");
    room->number = number;
    room->upstream = fd;
    room->prefix_count = snprintf(room->prefix, sizeof room->prefix, ":Linguini!chat@r%d PRIVMSG #r%d :", number, number);
    room_of[fd] = room;
    watch(fd, EPOLLIN, EPOLL_CTL_ADD);
}

static void accept_clients(int listener) {
    for (int fd; (fd = accept4(listener, 0, 0, SOCK_NONBLOCK)) >= 0;) {
        clients[fd] = calloc(1, sizeof(struct client));
        if (tls) {
            clients[fd]->ssl = SSL_new(tls);
            SSL_set_fd(clients[fd]->ssl, fd);
            SSL_set_accept_state(clients[fd]->ssl);
        }
        watch(fd, EPOLLIN, EPOLL_CTL_ADD);
    }
}

int main(int argc, char **argv) {
    if (argc < 4) return 64;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (argc > 5) {
        tls = SSL_CTX_new(TLS_server_method());
        SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
        if (SSL_CTX_use_certificate_file(tls, argv[4], SSL_FILETYPE_PEM) != 1 ||
            SSL_CTX_use_PrivateKey_file(tls, argv[5], SSL_FILETYPE_PEM) != 1) die("certificate");
    }
    epoll = epoll_create1(0);
    room_count = atoi(argv[3]);
    rooms = calloc(room_count, sizeof *rooms);
    for (int i = 0; i < room_count; i++) connect_upstream(&rooms[i], i, atoi(argv[2]));
    upstream_of_upward = rooms[0].upstream;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); // of its connections too
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(listener, (struct sockaddr *)&a, sizeof a) < 0 || listen(listener, 4096) < 0) die("listen");
    watch(listener, EPOLLIN, EPOLL_CTL_ADD);
    for (;;) {
        struct epoll_event events[512];
        int n = epoll_wait(epoll, events, 512, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            struct client *c = clients[fd];
            if (room_of[fd]) {
                upstream_readable(room_of[fd]);
            } else if (fd == listener) {
                accept_clients(fd);
            } else if (c) {
                if (events[i].events & EPOLLOUT) client_writable(fd, c);
                if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) client_readable(fd, c);
            }
        }
        if (upward_count) send_upward();
    }
}
