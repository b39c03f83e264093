// The load: a chat backend with one WebSocket a room, and IRC clients.
//
//   fanout-load KEY=VALUE...            prints "listening PORT", the port for the relay's WebSockets; then one line of JSON
//
//   mode=down     the backend speaks, all clients hear each message, byte for byte and in order
//   mode=up       the clients speak, the backend hears each message of each in order, echoes nothing, and nobody hears anything;
//                 ends when each speaker has the PONG of a PING after its last message
//   mode=join     registrations: connect, NICK and USER, 001, JOIN, 366, close
//   mode=idle     memory of a client
//   mode=stop     as down at a rate, before and after one client stops reading
//
// irc=PORT of the relay, rooms, clients (client i is in room i modulo rooms), messages, body bytes of each, rate a second (0: as fast as they are
// heard), window of messages or registrations under way together, refilled when half of it is empty, tls=1, idle seconds.
// The relay's process number comes on standard input once its IRC port is open. CPU is that of all its threads.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WARM_UP = 200, LEAST_BODY = 40, MOST_BODY = 400, BUCKETS = 4096, MAX_FD = 65536, TAIL = 1024, STOPPED_RECEIVE_BYTES = 4096 };

struct room {
    int upstream;
    // What each client of the room gets: lines of one length, from the second message on, since the first is preceded by news of
    // its sender and shows the lines' beginning.
    char *lines;
    uint32_t line_bytes, client_count, sent, heard, *missing; // of each message: how many clients have not heard it
    uint64_t *sent_at;
};
struct client {
    SSL *ssl;
    struct room *room;
    int fd, number;
    uint64_t heard_bytes;
    char tail[TAIL];   // the last that came before the measured lines
    uint32_t tail_count, said, arrived;
    enum { CONNECTED, WELCOME, JOINED, LISTENING, ANSWERED } state;
};

static struct { char mode[8]; int irc, rooms, clients, messages, rate, window, tls, idle, body; } with = {
    .mode = "down", .rooms = 1, .clients = 1, .messages = 1, .window = 64, .body = 100};
static struct room *rooms;
static struct client *clients, *client_of[MAX_FD];
static struct room *room_of[MAX_FD];
static int epoll, relay;
static SSL_CTX *tls;
static uint32_t under_way, first_measured;
// How often a client read something of what it was to hear: the more messages a read, the less work each.
static uint64_t hearings;
static uint64_t deliveries, histogram[BUCKETS], measured;

static void fail(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    exit(1);
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

// Nanoseconds on the processor of all of the relay's threads, ended ones too.
static uint64_t cpu(void) {
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(relay, &clock) || clock_gettime(clock, &t)) fail("the relay has ended");
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

// Seconds of that in the kernel, as it counts them: by ticks.
static double kernel_seconds(void) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", relay);
    FILE *f = fopen(path, "r");
    size_t count = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[count] = 0;
    // Fields are counted behind the name of the program: the time in the kernel is the thirteenth.
    char *at = strrchr(text, ')');
    for (int field = 0; at && field < 13; field++) at = strchr(at + 1, ' ');
    if (!at) fail("the relay has ended");
    return (double)atol(at) / sysconf(_SC_CLK_TCK);
}

// A value of the relay's status, such as RssAnon, its own memory, or VmHWM, the most that it ever had.
static long kib(const char *field) {
    char path[64], line[256];
    size_t width = strlen(field);
    snprintf(path, sizeof path, "/proc/%d/status", relay);
    FILE *f = fopen(path, "r");
    long value = 0;
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, field, width) && line[width] == ':') value = atol(line + width + 1);
    if (f) fclose(f);
    return value;
}

// As recv and send do, through TLS where the client has it; 0 is the end, -1 "not now".
static ssize_t take(struct client *c, char *into, size_t room) {
    if (!c->ssl) return recv(c->fd, into, room, MSG_DONTWAIT);
    int n = SSL_read(c->ssl, into, room);
    return n > 0 ? n : SSL_get_error(c->ssl, n) == SSL_ERROR_WANT_READ ? -1 : 0;
}

static void say(struct client *c, const char *text, int count) {
    int n = c->ssl ? SSL_write(c->ssl, text, count) : send(c->fd, text, count, MSG_NOSIGNAL);
    if (n != count) fail("client %d could not send", c->number);
}

static void watch(int fd) {
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) < 0) fail("epoll_ctl");
}

static int listen_on_any_port(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof a;
    if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 4096) < 0) fail("listen");
    getsockname(fd, (struct sockaddr *)&a, &length);
    printf("listening %d\n", ntohs(a.sin_port));
    fflush(stdout);
    return fd;
}

// The path is /rN for room N.
static void accept_websocket(int listener) {
    int fd = accept(listener, 0, 0), on = 1;
    if (fd < 0) fail("accept");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    char head[8192] = "";
    size_t n = 0;
    while (!strstr(head, "\r\n\r\n")) {
        ssize_t got = recv(fd, head + n, sizeof head - 1 - n, 0);
        if (got <= 0) fail("handshake");
        n += got;
        head[n] = 0;
    }
    int number = -1;
    sscanf(head, "GET /r%d ", &number);
    char *key = strcasestr(head, "sec-websocket-key:"), joined[128], accept64[64], answer[512];
    if (!key || number < 0 || number >= with.rooms) fail("handshake");
    key += 18;
    while (*key == ' ') key++;
    *strchr(key, '\r') = 0;
    unsigned char digest[20];
    snprintf(joined, sizeof joined, "%.60s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
    EVP_Digest(joined, strlen(joined), digest, 0, EVP_sha1(), 0);
    EVP_EncodeBlock((unsigned char *)accept64, digest, 20);
    int length = snprintf(answer, sizeof answer,
                          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                          "Sec-WebSocket-Accept: %s\r\n\r\n", accept64);
    if (send(fd, answer, length, 0) != length) fail("handshake");
    rooms[number].upstream = fd;
    room_of[fd] = &rooms[number];
    watch(fd);
}

// The bytes of a message's text: its number, and as many words as are asked for.
static void body(char *out, uint32_t number) {
    static const char beginning[] = "message number 000000000 of the benchmark, ", words[] = "with as many words as people use, and ";
    memcpy(out, beginning, LEAST_BODY);
    for (int i = LEAST_BODY; i < with.body; i++) out[i] = words[(i - LEAST_BODY) % (sizeof words - 1)];
    for (int i = 23; i > 14; i--, number /= 10) out[i] = '0' + number % 10;
    out[with.body - 1] = '.';
}

// Each message is a send of its own, as a backend's are.
static void speak(struct room *room) {
    char out[1024], text[MOST_BODY + 1] = "";
    body(text, room->sent);
    int length = snprintf(out + 4, sizeof out - 4,
                          "{\"event\":\"message\",\"message_id\":\"6B29FC40-CA47-1067-B31D-%012X\",\"sender_id\":"
                          "\"9E107D9D-372B-4B68-A1D8-2542A4190001\",\"sender_name\":\"Linguini\",\"body\":\"%s\","
                          "\"sent_at\":%lu.25}", room->sent, text, (unsigned long)time(0));
    out[0] = (char)0x81;
    out[1] = 126;
    out[2] = (char)(length >> 8);
    out[3] = (char)length;
    room->sent_at[room->sent++] = now();
    under_way++;
    for (int at = 0, n; at < length + 4; at += n)
        if ((n = send(room->upstream, out + at, length + 4 - at, MSG_NOSIGNAL)) < 0) fail("the relay left a room");
}

static void note_latency(uint64_t microseconds) {
    // Below 1024 µs a bucket a microsecond, above it one for each 64.
    uint64_t bucket = microseconds < 1024 ? microseconds : 1024 + (microseconds - 1024) / 64;
    histogram[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
    measured++;
}

static uint64_t percentile(double p) {
    uint64_t seen = 0;
    for (int i = 0; i < BUCKETS; i++)
        if ((seen += histogram[i]) >= measured * p) return i < 1024 ? i : 1024 + (i - 1024) * 64;
    return 0;
}

// What came must be the lines that were sent, from where this client has got to.
static void hear(struct client *c, const char *bytes, size_t count) {
    struct room *room = c->room;
    uint32_t line = c->heard_bytes / room->line_bytes;
    if (c->heard_bytes + count > (uint64_t)(room->sent - 1) * room->line_bytes)
        fail("client %d got more than was sent: %.*s", c->number, (int)(count < 400 ? count : 400), bytes);
    if (memcmp(room->lines + c->heard_bytes, bytes, count))
        fail("client %d got something else than line %u: %.*s", c->number, line, (int)(count < 400 ? count : 400), bytes);
    c->heard_bytes += count;
    hearings++;
    uint64_t t = with.rate ? now() : 0;
    for (uint32_t end = c->heard_bytes / room->line_bytes; line < end; line++) {
        uint32_t number = line + 1;
        deliveries++;
        if (with.rate && number >= first_measured) note_latency((t - room->sent_at[number]) / 1000);
        if (!--room->missing[number]) {
            room->heard++;
            under_way--;
        }
    }
}

// In whole lines, without those that say who has left: the stopped client is ended in the midst of the messages.
static void hear_but_quits(struct client *c, const char *bytes, size_t count) {
    for (const char *end = bytes + count, *next; bytes < end; bytes = next) {
        const char *newline = memchr(bytes, '\n', end - bytes);
        next = newline ? newline + 1 : end;
        if (c->tail_count + (next - bytes) > TAIL) fail("client %d got a long line: %.*s", c->number, (int)c->tail_count, c->tail);
        memcpy(c->tail + c->tail_count, bytes, next - bytes);
        c->tail_count += next - bytes;
        if (!newline) return;
        if (!memmem(c->tail, c->tail_count, " QUIT :", 7)) hear(c, c->tail, c->tail_count);
        c->tail_count = 0;
    }
}

// Before the measured lines: registration, and the news of others, of which only the end matters.
static void get_ready(struct client *c, const char *bytes, size_t count) {
    size_t fresh = count < TAIL / 2 ? count : TAIL / 2, old = c->tail_count < TAIL / 2 ? c->tail_count : TAIL / 2;
    memmove(c->tail, c->tail + c->tail_count - old, old);
    char seam[TAIL];
    memcpy(seam, c->tail, old);
    memcpy(seam + old, bytes, fresh);
    if (c->state == CONNECTED && (memmem(seam, old + fresh, " 001 ", 5) || memmem(bytes, count, " 001 ", 5))) c->state = WELCOME;
    if (c->state == WELCOME && (memmem(seam, old + fresh, " 366 ", 5) || memmem(bytes, count, " 366 ", 5))) c->state = JOINED;
    memcpy(c->tail + old, bytes + count - fresh, fresh);
    c->tail_count = old + fresh;
}

static void client_readable(struct client *c) {
    static char buffer[256 << 10];
    ssize_t n;
    while ((n = take(c, buffer, sizeof buffer)) > 0) {
        if (c->state != LISTENING) get_ready(c, buffer, n);
        else if (!strcmp(with.mode, "stop")) hear_but_quits(c, buffer, n);
        else hear(c, buffer, n);
        if (!c->ssl && n < (ssize_t)sizeof buffer) return;
    }
    if (n == 0) fail("client %d was closed: %.*s", c->number, (int)c->tail_count, c->tail);
}

static void backend_readable(struct room *room);

// Returns how many descriptors had something.
static int turn(int milliseconds) {
    struct epoll_event events[512];
    int n = epoll_wait(epoll, events, 512, milliseconds);
    for (int i = 0; i < n; i++) {
        int fd = events[i].data.fd;
        if (room_of[fd]) backend_readable(room_of[fd]); else if (client_of[fd]) client_readable(client_of[fd]);
    }
    return n;
}

// Until nothing has come for a while.
static void settle(void) {
    for (int quiet = 0; quiet < 4;) quiet = turn(100) ? 0 : quiet + 1;
}

static void connect_client(struct client *c, int number, int receive_bytes) {
    // Many addresses, so that closed connections leave ports enough.
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(with.irc), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + number % 16)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (receive_bytes) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    if (bind(fd, (struct sockaddr *)&own, sizeof own) || connect(fd, (struct sockaddr *)&a, sizeof a) < 0) fail("connect");
    memset(c, 0, sizeof *c);
    c->fd = fd;
    c->number = number;
    c->room = &rooms[number % with.rooms];
    if (tls) {
        c->ssl = SSL_new(tls);
        SSL_set_fd(c->ssl, fd);
        if (SSL_connect(c->ssl) != 1) fail("TLS failed");
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
    client_of[fd] = c;
    watch(fd);
}

static void close_client(struct client *c) {
    SSL_free(c->ssl);
    close(c->fd);
    client_of[c->fd] = 0;
}

static void join_all(struct client *them, int count, int first_number, int receive_bytes_of_last) {
    for (int i = 0; i < count; i++) {
        struct client *c = &them[i];
        connect_client(c, first_number + i, i == count - 1 ? receive_bytes_of_last : 0);
        char hello[200];
        // NAMES for its 366: without the names of all, a room of many is joined in reasonable time.
        say(c, hello, snprintf(hello, sizeof hello,
            "CAP REQ :no-implicit-names\r\nCAP END\r\nNICK c%d\r\nUSER c 0 * :c\r\nJOIN #r%d\r\nNAMES *\r\n", first_number + i,
            (first_number + i) % with.rooms));
        if (i % 16 == 15) turn(0);
    }
    uint64_t deadline = now() + 300ull * 1000000000;
    for (int waiting = 1; waiting;) {
        turn(50);
        waiting = 0;
        for (int i = 0; i < count; i++) waiting += them[i].state < JOINED;
        if (now() > deadline) fail("%d clients could not join", waiting);
    }
    settle();
}

// The first message of each room shows what a line looks like; from the next on, every byte is known.
static void prepare_lines(uint32_t messages_a_room) {
    for (int i = 0; i < with.rooms; i++) {
        struct room *room = &rooms[i];
        room->sent_at = calloc(messages_a_room + 1, sizeof(uint64_t));
        room->missing = calloc(messages_a_room + 1, sizeof(uint32_t));
        speak(room);
    }
    char first[MOST_BODY];
    body(first, 0);
    // Under callgrind, and beside others, the first one takes its time.
    uint64_t deadline = now() + 60ull * 1000000000;
    for (int waiting = 1; waiting && now() < deadline;) {
        turn(100);
        waiting = 0;
        for (int i = 0; i < with.clients; i++) waiting += !memmem(clients[i].tail, clients[i].tail_count, first, with.body);
    }
    settle();
    for (int i = 0; i < with.clients; i++) {
        struct client *c = &clients[i];
        struct room *room = c->room;
        char *end = c->tail + c->tail_count, *text = memmem(c->tail, c->tail_count, first, with.body);
        char *line = text ? memrchr(c->tail, '\n', text - c->tail) : 0;
        if (!line || text + with.body + 2 != end) fail("client %d got no first message: %.*s", i, (int)c->tail_count, c->tail);
        line++;
        if (!room->lines) {
            room->line_bytes = end - line;
            room->lines = malloc((size_t)room->line_bytes * messages_a_room);
            for (uint32_t n = 0; n < messages_a_room; n++) {
                char *at = room->lines + (size_t)n * room->line_bytes;
                memcpy(at, line, room->line_bytes);
                body(at + (text - line), n + 1);
            }
        }
        c->state = LISTENING;
        c->tail_count = 0;
        room->client_count++;
    }
    for (int i = 0; i < with.rooms; i++)
        for (uint32_t n = 1; n <= messages_a_room; n++) rooms[i].missing[n] = rooms[i].client_count;
    under_way = 0;
}

// Speaks so many messages, in the rooms in turn, and ends when everybody has heard them.
static void run_down(uint32_t messages, int rate) {
    static int next;
    uint32_t said = 0;
    uint64_t start = now(), deadline = start + 120ull * 1000000000;
    while (said < messages || under_way) {
        if (now() > deadline) fail("%u messages are missing", under_way);
        uint64_t due = start + (rate ? said * 1000000000ull / rate : 0);
        if (said == messages) {
            turn(10);
        } else if (rate && due > now()) {
            turn(due - now() > 1000000 ? 1 : 0);
        } else if (rate) {
            speak(&rooms[next++ % with.rooms]);
            said++;
            turn(0);
        } else {
            if (under_way <= (uint32_t)with.window / 2)
                for (; said < messages && under_way < (uint32_t)with.window; said++) speak(&rooms[next++ % with.rooms]);
            turn(10);
        }
    }
}

static uint32_t backend_heard;

// Upward: every text frame must be the next message of its author's.
static void backend_readable(struct room *room) {
    static unsigned char in[1 << 20];
    static size_t held;
    ssize_t n = recv(room->upstream, in + held, sizeof in - held, MSG_DONTWAIT);
    if (n == 0) fail("the relay left a room");
    if (n < 0) return;
    if (strcmp(with.mode, "up")) return;
    held += n;
    size_t at = 0;
    while (held - at >= 8) {
        size_t length = in[at + 1] & 127, header = 6;
        if (length == 126) {
            length = in[at + 2] << 8 | in[at + 3];
            header = 8;
        }
        if (held - at < header + length) break;
        unsigned char *key = in + at + header - 4;
        char *payload = (char *)in + at + header;
        at += header + length;
        if ((in[at - header - length] & 15) != 1) continue;
        for (size_t i = 0; i < length; i++) payload[i] ^= key[i & 3];
        char *text = memmem(payload, length, "\"body\":\"", 8), *name = memmem(payload, length, "\"sender_name\":\"c", 16);
        if (!text || !name) continue; // news of clients
        uint32_t author = strtoul(name + 16, 0, 10);
        char wanted[MOST_BODY];
        if (author >= (uint32_t)with.clients) fail("nobody is client %u", author);
        body(wanted, clients[author].arrived++);
        if (memcmp(text + 8, wanted, with.body)) fail("client %u: %.*s came instead of %.*s", author, with.body, text + 8, with.body, wanted);
        under_way--;
        backend_heard++;
    }
    memmove(in, in + at, held - at);
    held -= at;
}

static void run_up(uint32_t messages) {
    static int next;
    uint32_t said = 0;
    uint64_t deadline = now() + 120ull * 1000000000;
    while (said < messages || under_way) {
        if (now() > deadline) fail("%u messages are missing", under_way);
        if (under_way <= (uint32_t)with.window / 2)
            for (; said < messages && under_way < (uint32_t)with.window; said++, under_way++) {
                struct client *c = &clients[next++ % with.clients];
                char line[MOST_BODY + 16] = "PRIVMSG #r0 :";
                body(line + 13, c->said++);
                memcpy(line + 13 + with.body, "\r\n", 2);
                say(c, line, 15 + with.body);
            }
        turn(10);
    }
    // Until a PING is answered the relay may be at work to keep what it took.
    for (int i = 0; i < with.clients; i++) {
        clients[i].tail_count = 0;
        say(&clients[i], "PING end\r\n", 10);
    }
    for (int waiting = 1; waiting;) {
        turn(10);
        if (now() > deadline) fail("%d PINGs have no answer", waiting);
        waiting = 0;
        for (int i = 0; i < with.clients; i++) {
            struct client *c = &clients[i];
            char *pong = memmem(c->tail, c->tail_count, " PONG ", 6);
            waiting += !pong || c->tail[c->tail_count - 1] != '\n';
            if (c->tail_count && memmem(c->tail, c->tail_count, " PRIVMSG ", 9))
                fail("client %d heard what nobody should: %.*s", i, (int)c->tail_count, c->tail);
        }
    }
}

static void run_join(int count, int first_number) {
    int begun = 0, ended = 0;
    uint64_t deadline = now() + 120ull * 1000000000;
    while (ended < count) {
        if (now() > deadline) fail("%d of %d registrations ended", ended, count);
        for (int i = 0; i < with.window; i++) {
            struct client *c = &clients[i];
            char line[100];
            if (c->room && c->state == JOINED) {
                close_client(c);
                c->room = 0;
                ended++;
            } else if (c->room && c->state == WELCOME && !c->said++) {
                say(c, "JOIN #r0\r\n", 10);
            }
            if (!c->room && begun < count) {
                connect_client(c, first_number + begun, 0);
                say(c, line, snprintf(line, sizeof line, "NICK r%d\r\nUSER r 0 * :r\r\n", first_number + begun++));
            }
        }
        turn(10);
    }
}

static void run_stop(void) {
    // The room's memory of messages is filled first, so that growth is the stopped client's.
    run_down(4000, 0);
    settle();
    first_measured = rooms->sent;
    run_down(with.messages, with.rate);
    uint64_t p50 = percentile(0.5), p99 = percentile(0.99);
    long before = kib("RssAnon"), most = 0;
    struct client *stopped = &clients[with.clients - 1];
    epoll_ctl(epoll, EPOLL_CTL_DEL, stopped->fd, 0);
    client_of[stopped->fd] = 0;
    for (uint32_t n = rooms->sent; n < WARM_UP + 2u * with.messages + 34001; n++) rooms->missing[n]--;
    run_down(4000, 0);
    settle();
    memset(histogram, 0, sizeof histogram);
    measured = 0;
    first_measured = rooms->sent;
    run_down(with.messages, with.rate);
    uint64_t stopped_p50 = percentile(0.5), stopped_p99 = percentile(0.99);
    first_measured = UINT32_MAX;
    // The kernel has taken what the client does not read until now, mostly. What the relay gave back of its own meanwhile would hide
    // as much of the client's.
    long here = kib("RssAnon");
    if (here < before) before = here;
    for (int i = 0; i < 20; i++) {
        run_down(1000, 0);
        here = kib("RssAnon");
        if (here > most) most = here;
    }
    // What it reads now is the beginning of what it missed; then the relay has ended it.
    uint64_t heard = 0;
    char buffer[4096];
    ssize_t n;
    struct timeval patience = {.tv_sec = 5};
    setsockopt(stopped->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    while ((n = recv(stopped->fd, buffer, sizeof buffer, 0)) > 0) heard += n;
    printf("{\"p50_us\":%lu,\"p99_us\":%lu,\"stopped_p50_us\":%lu,\"stopped_p99_us\":%lu,\"growth_kib\":%ld,\"ended\":%s,"
           "\"heard_bytes\":%lu}\n", p50, p99, stopped_p50, stopped_p99, most - before,
           n == 0 || errno == ECONNRESET ? "true" : "false", heard);
}

int main(int argc, char **argv) {
    struct { const char *key; int *value; } keys[] = {
        {"irc", &with.irc}, {"rooms", &with.rooms}, {"clients", &with.clients}, {"messages", &with.messages},
        {"rate", &with.rate}, {"window", &with.window}, {"tls", &with.tls}, {"idle", &with.idle}, {"body", &with.body}};
    for (int i = 1; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value++) return 64;
        if (!strncmp(argv[i], "mode=", 5)) snprintf(with.mode, sizeof with.mode, "%s", value);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (!strncmp(argv[i], keys[k].key, value - argv[i] - 1)) *keys[k].value = atoi(value);
    }
    int down = !strcmp(with.mode, "down"), up = !strcmp(with.mode, "up"), joins = !strcmp(with.mode, "join");
    if (with.body < LEAST_BODY || with.body > MOST_BODY) return 64;
    int idle = !strcmp(with.mode, "idle"), stop = !strcmp(with.mode, "stop");
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    rooms = calloc(with.rooms, sizeof *rooms);
    clients = calloc(with.clients + with.window + 64, sizeof *clients);
    epoll = epoll_create1(0);
    int listener = listen_on_any_port();
    for (int i = 0; i < with.rooms; i++) accept_websocket(listener);
    if (scanf("%d", &relay) != 1) return 64;
    if (with.tls) {
        tls = SSL_CTX_new(TLS_client_method());
        // The relay's certificate was made for this run. One cipher, so that all do the same work.
        SSL_CTX_set_verify(tls, SSL_VERIFY_NONE, 0);
        SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION);
        SSL_CTX_set_ciphersuites(tls, "TLS_AES_128_GCM_SHA256");
    }
    uint64_t cpu0, start, used;
    double kernel;
    if (joins) {
        run_join(WARM_UP, 0);
        settle();
        cpu0 = cpu(), kernel = kernel_seconds(), start = now();
        run_join(with.messages, WARM_UP);
        double wall = (now() - start) / 1e9;
        settle();
        used = cpu() - cpu0, kernel = kernel_seconds() - kernel;
        printf("{\"deliveries\":%d,\"cpu_seconds\":%.6f,\"kernel_seconds\":%.2f,\"wall\":%.3f}\n", with.messages, used / 1e9, kernel, wall);
        return 0;
    }
    long linked = 0, before = 0, after = 0;
    if (idle) {
        // What only the first clients cost, such as pages of the program that nobody had touched, is nobody's memory.
        join_all(clients, 64, 100000 * with.rooms, 0);
        for (int i = 0; i < 64; i++) close_client(&clients[i]);
    }
    settle();
    if (with.idle) sleep(with.idle);
    linked = before = kib("RssAnon");
    cpu0 = cpu(), start = now();
    join_all(clients, with.clients, 0, stop ? STOPPED_RECEIVE_BYTES : 0);
    double join_cpu = (cpu() - cpu0) / 1e9, join_wall = (now() - start) / 1e9;
    long join_peak = kib("VmHWM") - kib("VmRSS");
    if (idle) {
        sleep(with.idle);
        after = kib("RssAnon");
        printf("{\"bytes_per_client\":%ld}\n", (after - before) * 1024 / with.clients);
        return 0;
    }
    if (up) {
        run_up(WARM_UP);
        settle();
        cpu0 = cpu(), kernel = kernel_seconds(), start = now();
        run_up(with.messages);
        used = cpu() - cpu0, kernel = kernel_seconds() - kernel;
        deliveries = with.messages;
    } else {
        prepare_lines(stop ? WARM_UP + 2 * with.messages + 34000 : (WARM_UP + with.messages) / with.rooms + 2);
        first_measured = UINT32_MAX;
        run_down(WARM_UP, 0);
        if (stop) return run_stop(), 0;
        settle();
        first_measured = with.rooms == 1 ? rooms->sent : 0;
        deliveries = hearings = 0;
        cpu0 = cpu(), kernel = kernel_seconds(), start = now();
        run_down(with.messages, down ? with.rate : 0);
        used = cpu() - cpu0, kernel = kernel_seconds() - kernel;
    }
    double wall = (now() - start) / 1e9;
    printf("{\"deliveries\":%lu,\"cpu_seconds\":%.6f,\"kernel_seconds\":%.2f,\"wall\":%.3f,\"p50_us\":%lu,\"p99_us\":%lu,\"linked_kib\":%ld,"
           "\"join_cpu_seconds\":%.3f,\"join_wall\":%.3f,\"join_peak_kib\":%ld,\"messages_a_read\":%.1f}\n", deliveries, used / 1e9, kernel, wall, percentile(0.5), percentile(0.99),
           linked, join_cpu, join_wall, join_peak,
           hearings ? (double)deliveries / hearings : 0);
    return 0;
}
