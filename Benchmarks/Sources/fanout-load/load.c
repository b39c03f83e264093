// The load: a chat backend that speaks, and IRC clients that listen.
//
//   fanout-load WS_PORT IRC_PORT CLIENTS MESSAGES RATE [IDLE_SECONDS [tls]]     downward: the backend speaks
//   fanout-load WS_PORT IRC_PORT 1 MESSAGES up                                  upward: the client speaks, the backend echoes
//   fanout-load WS_PORT IRC_PORT SPEAKERS MESSAGES confirmed                    upward: all speak, another hears all of it
//
// WS_PORT 0 takes any free port; the first line says which. With "tls" the clients speak TLS and trust any certificate.
//
// Waits for one WebSocket connection, joins CLIENTS to #lobby, speaks a warm-up, then MESSAGES: RATE a second, or with
// RATE 0 as fast as everybody receives (64 at most on the way, 16 a write). Prints one JSON line: deliveries, CPU seconds
// of the relay, whose process number comes on standard input, over that time, latencies in microseconds, and its memory a
// client, after IDLE_SECONDS of silence. "all" is false when a client did not get every line exactly once.
//
// "confirmed" counts a message when somebody else in the room hears it, and ends when each speaker has its PONG for a PING
// after its last message: until then the relay may still be at work to keep what it took.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
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

enum { WARM_UP = 200, WINDOW = 64, BATCH = 16, BUCKETS = 4096, MAX_FD = 65536 };

static int epoll, socket_up, *fds, clients, slowest_index;
static uint32_t *received, ready[MAX_FD];
static int index_of[MAX_FD];
static uint64_t *sent_at, histogram[BUCKETS], measured;
static uint32_t sent, first_measured;

// Of the clients that speak TLS, by descriptor.
static SSL *secured[MAX_FD];
static SSL_CTX *tls;

static void die(const char *what) { perror(what); exit(1); }

// As recv and send do, through TLS where the client has it.
static ssize_t take(int fd, char *into, size_t room) {
    if (!secured[fd]) return recv(fd, into, room, MSG_DONTWAIT);
    int n = SSL_read(secured[fd], into, room);
    if (n > 0) return n;
    return SSL_get_error(secured[fd], n) == SSL_ERROR_WANT_READ ? -1 : 0;
}

static void say(int fd, const char *text, int count) {
    if ((secured[fd] ? SSL_write(secured[fd], text, count) : send(fd, text, count, 0)) != count) die("send");
}

static void leave(int fd) {
    SSL_free(secured[fd]);
    secured[fd] = 0;
    close(fd);
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

// Nanoseconds on the processor of all threads of `pid`.
static uint64_t cpu(int pid) {
    char path[300];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *d = opendir(path);
    uint64_t sum = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", pid, e->d_name);
        FILE *f = fopen(path, "r");
        unsigned long run = 0;
        if (f && fscanf(f, "%lu", &run) == 1) sum += run;
        if (f) fclose(f);
    }
    if (d) closedir(d);
    return sum;
}

static long anonymous_kib(int pid) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *f = fopen(path, "r");
    long kib = 0;
    while (f && fgets(line, sizeof line, f)) sscanf(line, "RssAnon: %ld", &kib);
    if (f) fclose(f);
    return kib;
}

static int listen_on(int port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 16) < 0) die("listen");
    return fd;
}

static int accept_websocket(int listener) {
    int fd = accept(listener, 0, 0), on = 1;
    if (fd < 0) die("accept");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    char head[8192] = "";
    size_t n = 0;
    while (!strstr(head, "\r\n\r\n")) {
        ssize_t got = recv(fd, head + n, sizeof head - 1 - n, 0);
        if (got <= 0) die("handshake");
        n += got;
        head[n] = 0;
    }
    char *key = strcasestr(head, "sec-websocket-key:"), joined[128], accept64[64], answer[512];
    if (!key) exit(1);
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
    if (send(fd, answer, length, 0) != length) die("send");
    return fd;
}

static void drain(int fd, int measuring) {
    static char buffer[256 << 10];
    ssize_t n;
    while ((n = take(fd, buffer, sizeof buffer)) > 0) {
        int i = index_of[fd];
        uint64_t t = measuring ? now() : 0;
        for (char *at = buffer, *end = buffer + n; (at = memchr(at, '\n', end - at)); at++) {
            if (!ready[fd]) continue;
            uint32_t number = received[i]++;
            if (!measuring || number < first_measured || number >= sent) continue;
            uint64_t us = (t - sent_at[number]) / 1000;
            // Below 1024 µs a bucket a microsecond, above it one for each 64.
            uint64_t bucket = us < 1024 ? us : 1024 + (us - 1024) / 64;
            histogram[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
            measured++;
        }
        if (!ready[fd] && memmem(buffer, n, " 366 ", 5)) ready[fd] = 1;
    }
    if (n == 0) { fprintf(stderr, "a client was closed\n"); exit(1); }
}

static void poll_clients(int timeout, int measuring) {
    struct epoll_event events[512];
    int n = epoll_wait(epoll, events, 512, timeout);
    for (int i = 0; i < n; i++) drain(events[i].data.fd, measuring);
}

static void discard_upstream(void) {
    char buffer[4096];
    while (recv(socket_up, buffer, sizeof buffer, MSG_DONTWAIT) > 0) {}
}

static void speak(int count) {
    static char out[BATCH * 512];
    size_t n = 0;
    uint64_t t = now();
    for (int i = 0; i < count; i++) {
        char json[400];
        int length = snprintf(json, sizeof json,
                              "{\"event\":\"message\",\"message_id\":\"6B29FC40-CA47-1067-B31D-%012X\",\"sender_id\":"
                              "\"9E107D9D-372B-4B68-A1D8-2542A4190001\",\"sender_name\":\"Linguini\",\"body\":\"message "
                              "number %09u of the benchmark, about as long as people write\",\"sent_at\":%lu.25}",
                              sent, sent, (unsigned long)time(0));
        out[n++] = (char)0x81;
        out[n++] = 126;
        out[n++] = (char)(length >> 8);
        out[n++] = (char)length;
        memcpy(out + n, json, length);
        n += length;
        sent_at[sent++] = t;
    }
    for (size_t at = 0; at < n;) {
        ssize_t w = send(socket_up, out + at, n - at, MSG_NOSIGNAL);
        if (w < 0) die("send");
        at += w;
    }
}

static uint32_t slowest(void) {
    uint32_t least = received[slowest_index];
    for (int i = 0; i < clients; i++)
        if (received[i] < least) { least = received[i]; slowest_index = i; }
    return least;
}

static void run(uint32_t messages, long rate, int measuring) {
    uint32_t target = sent + messages;
    uint64_t start = now(), deadline = start + 120ull * 1000000000;
    while ((sent < target || slowest() < target) && now() < deadline) {
        if (rate) {
            uint64_t due = start + (uint64_t)(sent - (target - messages)) * 1000000000 / rate;
            if (sent < target && now() >= due) speak(1);
            poll_clients(sent < target && now() < due ? (due - now() > 1000000 ? 1 : 0) : (sent < target ? 0 : 10), measuring);
        } else {
            if (sent < target && sent - slowest() + BATCH <= WINDOW)
                speak(target - sent < BATCH ? target - sent : BATCH);
            poll_clients(10, measuring);
        }
        discard_upstream();
    }
}

static uint64_t percentile(double p) {
    uint64_t seen = 0;
    for (int i = 0; i < BUCKETS; i++)
        if ((seen += histogram[i]) >= measured * p) return i < 1024 ? i : 1024 + (i - 1024) * 64;
    return 0;
}

// Takes the bridge's frames and sends them back unmasked, as the backend does. Returns how many messages came.
static uint32_t echo(void) {
    static unsigned char in[512 << 10];
    static size_t held;
    ssize_t n = recv(socket_up, in + held, sizeof in - held, MSG_DONTWAIT);
    if (n <= 0) return 0;
    held += n;
    static unsigned char out[512 << 10];
    size_t at = 0, filled = 0;
    uint32_t count = 0;
    while (held - at >= 6) {
        size_t length = in[at + 1] & 127, header = 6;
        if (length == 126) {
            if (held - at < 8) break;
            length = in[at + 2] << 8 | in[at + 3];
            header = 8;
        }
        if (held - at < header + length) break;
        unsigned char *key = in + at + header - 4, *payload = in + at + header;
        if ((in[at] & 15) == 1) {
            out[filled++] = 0x81;
            if (length > 125) {
                out[filled++] = 126;
                out[filled++] = length >> 8;
            }
            out[filled++] = length;
            for (size_t i = 0; i < length; i++) out[filled + i] = payload[i] ^ key[i & 3];
            filled += length;
            count++;
        }
        at += header + length;
    }
    memmove(in, in + at, held - at);
    held -= at;
    for (size_t w = 0; w < filled;) {
        ssize_t s = send(socket_up, out + w, filled - w, MSG_NOSIGNAL);
        if (s < 0) die("send");
        w += s;
    }
    return count;
}

// One client speaks as fast as the backend gets it, 64 messages on the way at most, 16 a write.
static void run_up(uint32_t messages, int fd, int measuring) {
    uint32_t said = 0, arrived = 0;
    uint64_t when[WINDOW * 2], deadline = now() + 120ull * 1000000000;
    while (arrived < messages && now() < deadline) {
        if (said < messages && said - arrived + BATCH <= WINDOW) {
            char lines[BATCH * 128];
            int n = 0;
            for (int i = 0; i < BATCH && said < messages; i++) {
                when[said % (WINDOW * 2)] = now();
                n += snprintf(lines + n, sizeof lines - n,
                              "PRIVMSG #lobby :message number %09u of the benchmark, about as long as people write\r\n", said++);
            }
            if (send(fd, lines, n, 0) != n) die("send");
        }
        uint32_t came = echo();
        for (uint32_t i = 0; i < came; i++, arrived++) {
            if (!measuring) continue;
            uint64_t us = (now() - when[arrived % (WINDOW * 2)]) / 1000, bucket = us < 1024 ? us : 1024 + (us - 1024) / 64;
            histogram[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
            measured++;
        }
        if (!came) poll_clients(0, 0);
    }
}

enum { SPEAKERS = 16, SPEAKER_WINDOW = 512, SPEAKER_BATCH = 32 };

// What one who only listens has heard of each speaker; false when something came twice, out of order or not at all.
static int hear(int fd, uint32_t *heard, uint32_t *total) {
    static char buffer[1 << 20];
    static size_t held;
    ssize_t n = recv(fd, buffer + held, sizeof buffer - held, MSG_DONTWAIT);
    if (n == 0) { fprintf(stderr, "the listener was closed\n"); exit(1); }
    if (n < 0) return 1;
    held += n;
    char *at = buffer, *end;
    while ((end = memchr(at, '\n', buffer + held - at))) {
        char *text = memmem(at, end - at, " PRIVMSG #lobby :", 17);
        unsigned speaker, number;
        if (text && sscanf(text + 17, "speaker %u number %u", &speaker, &number) == 2) {
            if (speaker >= SPEAKERS || number != heard[speaker]) {
                fprintf(stderr, "number %u of speaker %u came instead of %u\n", number, speaker, heard[speaker % SPEAKERS]);
                return 0;
            }
            heard[speaker]++;
            ++*total;
        }
        at = end + 1;
    }
    held -= at - buffer;
    memmove(buffer, at, held);
    return 1;
}

// All speakers speak as fast as they are heard. Returns how many messages were heard, in order, by the time that all PINGs
// are answered; less than `messages` when something went wrong.
static uint32_t run_confirmed(uint32_t messages, int listener) {
    static uint32_t said[SPEAKERS], heard[SPEAKERS];
    static char replies[SPEAKERS][64];
    uint32_t total = 0, target = messages / clients, answered = 0;
    uint64_t deadline = now() + 120ull * 1000000000;
    static char drained[256 << 10];
    uint32_t base[SPEAKERS];
    memcpy(base, said, sizeof base);
    int anything = epoll_create1(0);
    for (int i = -2; i < clients; i++) {
        int fd = i == -2 ? socket_up : i == -1 ? listener : fds[i];
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(anything, EPOLL_CTL_ADD, fd, &e);
    }
    while ((total < target * clients || answered < (uint32_t)clients) && now() < deadline) {
        for (int i = 0; i < clients; i++) {
            if (said[i] - base[i] == target || said[i] - heard[i] + SPEAKER_BATCH > SPEAKER_WINDOW) continue;
            char lines[SPEAKER_BATCH * 128 + 32];
            int n = 0;
            for (int j = 0; j < SPEAKER_BATCH && said[i] - base[i] < target; j++)
                n += snprintf(lines + n, sizeof lines - n,
                              "PRIVMSG #lobby :speaker %d number %09u of the benchmark, about as long as people write\r\n", i,
                              said[i]++);
            if (said[i] - base[i] == target)
                n += snprintf(lines + n, sizeof lines - n, "PING end%u\r\n", base[i]);
            if (send(fds[i], lines, n, 0) != n) die("send");
        }
        struct epoll_event e;
        epoll_wait(anything, &e, 1, 10);
        echo();
        if (!hear(listener, heard, &total)) break;
        for (int i = 0; i < clients; i++) {
            ssize_t n = recv(fds[i], drained, sizeof drained - 1, MSG_DONTWAIT);
            if (n == 0) { fprintf(stderr, "a speaker was closed\n"); exit(1); }
            if (n < 0) continue;
            // The PONG may come in two parts; everything else that a speaker gets is of no interest.
            char token[32];
            snprintf(token, sizeof token, ":end%u\r", base[i]);
            char seam[128];
            size_t before = strlen(replies[i]), after = n < 40 ? n : 40;
            memcpy(seam, replies[i], before);
            memcpy(seam + before, drained, after);
            size_t width = strlen(token) - 1;
            if (memmem(drained, n, token + 1, width) || memmem(seam, before + after, token + 1, width)) {
                answered++;
                replies[i][0] = 0;
                continue;
            }
            size_t keep = n < 40 ? n : 40;
            memcpy(replies[i], drained + n - keep, keep);
            replies[i][keep] = 0;
        }
    }
    close(anything);
    return answered == (uint32_t)clients ? total : 0;
}

static int join(int port, int number) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0) die("connect");
    if (tls) {
        SSL *s = secured[fd] = SSL_new(tls);
        SSL_set_fd(s, fd);
        if (SSL_connect(s) != 1) { fprintf(stderr, "TLS failed\n"); exit(1); }
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
    char hello[200];
    int n = snprintf(hello, sizeof hello,
                     "CAP REQ :no-implicit-names\r\nCAP END\r\nNICK c%d\r\nUSER c 0 * :c\r\nJOIN #lobby\r\n"
                     "NAMES *\r\n", number);
    say(fd, hello, n);
    return fd;
}

int main(int argc, char **argv) {
    if (argc < 6) return 64;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    clients = atoi(argv[3]);
    uint32_t messages = atoi(argv[4]);
    long rate = atol(argv[5]);
    int pid;
    if (argc > 7 && !strcmp(argv[7], "tls")) {
        tls = SSL_CTX_new(TLS_client_method());
        // The relay's certificate was made for this run.
        SSL_CTX_set_verify(tls, SSL_VERIFY_NONE, 0);
    }
    sent_at = calloc(messages + WARM_UP + 1, sizeof *sent_at);
    received = calloc(clients, sizeof *received);
    fds = calloc(clients, sizeof *fds);
    epoll = epoll_create1(0);
    int listener = listen_on(atoi(argv[1]));
    // The relay is started by whoever started us, once we listen; its number comes on standard input.
    struct sockaddr_in bound;
    socklen_t length = sizeof bound;
    if (getsockname(listener, (struct sockaddr *)&bound, &length) < 0) die("getsockname");
    printf("listening %d\n", ntohs(bound.sin_port));
    fflush(stdout);
    socket_up = accept_websocket(listener);
    if (scanf("%d", &pid) != 1) return 64;
    // What only the first clients cost, such as pages of the program that nobody had touched, is nobody's memory.
    int first[64];
    for (int i = 0; i < 64; i++) first[i] = join(atoi(argv[2]), 100000 + i);
    sleep(1);
    for (int i = 0; i < 64; i++) leave(first[i]);
    sleep(1);
    long before = anonymous_kib(pid);
    for (int i = 0; i < clients; i++) {
        int fd = fds[i] = join(atoi(argv[2]), i);
        index_of[fd] = i;
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
        if (i % 16 == 15) poll_clients(0, 0);
    }
    for (;;) {
        int waiting = 0;
        poll_clients(50, 0);
        for (int i = 0; i < clients; i++) waiting += !ready[fds[i]];
        if (!waiting) break;
    }
    // The joins of others still arrive; what counts begins when nothing has come for a while.
    for (int quiet = 0; quiet < 5;) {
        struct epoll_event e;
        if (epoll_wait(epoll, &e, 1, 100) == 0) quiet++; else { quiet = 0; poll_clients(0, 0); }
    }
    // Idle means idle: the bridge gives memory back once it has been quiet for some seconds.
    if (argc > 6) sleep(atoi(argv[6]));
    long idle = anonymous_kib(pid);
    if (!strcmp(argv[5], "up")) {
        run_up(WARM_UP, fds[0], 0);
        uint64_t cpu0 = cpu(pid), t0 = now();
        run_up(messages, fds[0], 1);
        double seconds = (now() - t0) / 1e9, used = (cpu(pid) - cpu0) / 1e9;
        printf("{\"all\":%s,\"deliveries\":%lu,\"cpu_seconds\":%.6f,\"cpu_per_million\":%.4f,\"wall\":%.3f,"
               "\"p50_us\":%lu,\"p99_us\":%lu,\"idle_bytes_per_client\":%ld}\n",
               measured == messages ? "true" : "false", (unsigned long)measured, used, used / measured * 1e6, seconds,
               (unsigned long)percentile(0.5), (unsigned long)percentile(0.99), (idle - before) * 1024 / clients);
        return measured == messages ? 0 : 1;
    }
    if (!strcmp(argv[5], "confirmed")) {
        if (clients > SPEAKERS) return 64;
        int listener = join(atoi(argv[2]), 90000);
        for (int quiet = 0; quiet < 5;) {
            char buffer[4096];
            poll_clients(100, 0);
            if (recv(listener, buffer, sizeof buffer, MSG_DONTWAIT) < 0) quiet++; else quiet = 0;
        }
        uint32_t warm_up = WARM_UP * clients;
        int well = run_confirmed(warm_up, listener) == warm_up;
        uint64_t cpu0 = cpu(pid), t0 = now();
        messages -= messages % clients;
        uint32_t heard = well ? run_confirmed(messages, listener) : 0;
        double seconds = (now() - t0) / 1e9, used = (cpu(pid) - cpu0) / 1e9;
        printf("{\"all\":%s,\"deliveries\":%u,\"cpu_seconds\":%.6f,\"wall\":%.3f}\n", heard == messages ? "true" : "false",
               heard, used, seconds);
        return heard == messages ? 0 : 1;
    }
    memset(received, 0, clients * sizeof *received);
    // The first message makes the bridge announce the speaker: one line more.
    speak(1);
    for (int quiet = 0; quiet < 3;) {
        struct epoll_event e;
        if (epoll_wait(epoll, &e, 1, 100) == 0) quiet++; else { quiet = 0; poll_clients(0, 0); }
    }
    for (int i = 0; i < clients; i++) received[i] = 1;
    run(WARM_UP - 1, 0, 0);
    first_measured = sent;
    uint64_t cpu0 = cpu(pid), t0 = now();
    run(messages, rate, 1);
    double seconds = (now() - t0) / 1e9, used = (cpu(pid) - cpu0) / 1e9;
    int all = 1;
    for (int i = 0; i < clients; i++) all &= received[i] == sent;
    printf("{\"all\":%s,\"deliveries\":%lu,\"cpu_seconds\":%.6f,\"cpu_per_million\":%.4f,\"wall\":%.3f,\"p50_us\":%lu,"
           "\"p99_us\":%lu,\"idle_bytes_per_client\":%ld}\n",
           all ? "true" : "false", (unsigned long)measured, used, used / measured * 1e6, seconds,
           (unsigned long)percentile(0.5), (unsigned long)percentile(0.99), (idle - before) * 1024 / clients);
    return all ? 0 : 1;
}
