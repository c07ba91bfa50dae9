// A server that answers every request with one prepared stream, on a fixed timetable, and keeps its own log.
//
//   replay_server LOG FIRST_US GAP_US CHUNKS
//
// Listens on a free port of 127.0.0.1 and prints it. On SIGTERM it writes LOG, one line per request and per CPU sample:
//   R number kind last_byte_ns headers_ns first_content_ns last_content_ns is_whole x_request_id
//   C now_ns cpu_ns
// All stamps are CLOCK_MONOTONIC; a stamp of sending is taken right before send(). A stamp that never came is 0.
// The number stands in each event's id and is the first word of the answer, so any client that keeps one can be matched.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FD = 8192, IN_BYTES = 1 << 18, MAX_CHUNKS = 4096, MAX_PARTS = 4, ID_BYTES = 8, LABEL_BYTES = 40 };
enum kind { OTHER, CHAT, COMPLETION };
#define ID_MARK "@@@@@@@@"
static const char *WORDS[] = {" ten", " date", " Nord", " taxi", " euro", " total", " five", " is"};

struct piece { char *bytes; int length, id_at[MAX_PARTS], ids; };
struct row { int64_t last_byte, headers, first, last; char label[LABEL_BYTES]; uint8_t kind, whole; };
struct sample { int64_t now, cpu; };
struct conn {
  char *in, *out;
  int in_length, out_length, out_sent, step, closes, waits_for_out;
  int64_t row;
  uint32_t generation;
};
struct due { int64_t at; int fd; uint32_t generation; };

static struct piece stream_pieces[3][MAX_CHUNKS], whole_answer[3];
static struct conn conns[MAX_FD];
static struct due heap[MAX_FD * 2];
static int heap_size, epoll_fd, chunk_count;
static int64_t first_ns, gap_ns;
static struct row *rows;
static int64_t row_count, row_room;
static struct sample *samples;
static int64_t sample_count, sample_room;
static volatile sig_atomic_t stopping;

static int64_t stamp(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static int64_t now_ns(void) { return stamp(CLOCK_MONOTONIC); }
static void on_term(int signal_number) { (void)signal_number; stopping = 1; }
static void die(const char *what) { perror(what); exit(1); }
static void *grown(void *old, int64_t count, int64_t *room, size_t each) {
  if (count < *room) return old;
  *room = *room ? *room * 2 : 65536;
  void *bigger = realloc(old, (size_t)*room * each);
  if (!bigger) die("realloc");
  return bigger;
}

// ---- prepared bytes ----
static struct piece piece_of(const char *text) {
  struct piece made = {.bytes = strdup(text), .length = (int)strlen(text)};
  for (char *at = made.bytes; (at = strstr(at, ID_MARK)) && made.ids < MAX_PARTS; at += ID_BYTES)
    made.id_at[made.ids++] = (int)(at - made.bytes);
  return made;
}
static void add_event(char *into, const char *json) {  // one event, one chunk of the chunked transfer coding
  sprintf(into + strlen(into), "%x\r\ndata: %s\n\n\r\n", (unsigned)strlen(json) + 8, json);
}
static void choice(char *into, enum kind kind, const char *role, const char *text, const char *finish) {
  const char *object = kind == CHAT ? "chat.completion.chunk" : "text_completion";
  int n = sprintf(into, "{\"id\":\"replay-" ID_MARK "\",\"object\":\"%s\",\"created\":1760000000,\"model\":\"replay\","
                  "\"choices\":[{\"index\":0,", object);
  if (kind == CHAT)
    n += sprintf(into + n, "\"delta\":{%s\"content\":\"%s\"},", role, text);
  else
    n += sprintf(into + n, "\"text\":\"%s\",", text);
  sprintf(into + n, "\"logprobs\":null,\"finish_reason\":%s}]}", finish);
}
static void prepare(enum kind kind) {
  char json[1024], text[4096], usage[128];
  sprintf(usage, "\"usage\":{\"prompt_tokens\":64,\"completion_tokens\":%d,\"total_tokens\":%d}", chunk_count, 64 + chunk_count);
  for (int i = 0; i < chunk_count; i++) {
    text[0] = 0;
    if (i == 0 && kind == CHAT) choice(json, kind, "\"role\":\"assistant\",", "", "null"), add_event(text, json);
    choice(json, kind, "", i ? WORDS[i % 8] : ID_MARK, i == chunk_count - 1 ? "\"length\"" : "null");
    add_event(text, json);
    if (i == chunk_count - 1) {
      sprintf(json, "{\"id\":\"replay-" ID_MARK "\",\"object\":\"%s\",\"created\":1760000000,\"model\":\"replay\",\"choices\":[],%s}",
              kind == CHAT ? "chat.completion.chunk" : "text_completion", usage);
      add_event(text, json);
      add_event(text, "[DONE]");
      strcat(text, "0\r\n\r\n");
    }
    stream_pieces[kind][i] = piece_of(text);
  }
  const char *said = kind == CHAT ? "\"message\":{\"role\":\"assistant\",\"content\":\"" ID_MARK "\"}" : "\"text\":\"" ID_MARK "\"";
  sprintf(json, "{\"id\":\"replay-" ID_MARK "\",\"object\":\"%s\",\"created\":1760000000,\"model\":\"replay\",\"choices\":[{\"index\":0,"
          "%s,\"finish_reason\":\"length\"}],%s}", kind == CHAT ? "chat.completion" : "text_completion", said, usage);
  sprintf(text, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s", (int)strlen(json), json);
  whole_answer[kind] = piece_of(text);
}

// ---- connections ----
static void close_conn(int fd) {
  struct conn *c = &conns[fd];
  c->generation++;  // what the timetable still holds for it is void
  c->in_length = c->out_length = c->out_sent = c->closes = c->waits_for_out = 0;
  c->row = -1;
  close(fd);
}
static void watch(int fd, uint32_t events, int how) {
  struct epoll_event event = {.events = events, .data.fd = fd};
  if (epoll_ctl(epoll_fd, how, fd, &event)) die("epoll_ctl");
}
static int flush_out(int fd) {  // 0: the peer is gone
  struct conn *c = &conns[fd];
  while (c->out_sent < c->out_length) {
    ssize_t n = send(fd, c->out + c->out_sent, (size_t)(c->out_length - c->out_sent), MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) {
      if (!c->waits_for_out) watch(fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
      c->waits_for_out = 1;
      return 1;
    }
    if (n < 0) return 0;
    c->out_sent += (int)n;
  }
  if (c->waits_for_out) watch(fd, EPOLLIN, EPOLL_CTL_MOD);
  c->out_length = c->out_sent = c->waits_for_out = 0;
  return 1;
}
static int put(int fd, const struct piece *piece, int64_t number) {
  struct conn *c = &conns[fd];
  if (c->out_length + piece->length > IN_BYTES) return 0;  // the peer does not read
  if (!c->out) c->out = malloc(IN_BYTES);
  char *to = c->out + c->out_length, id[ID_BYTES];
  memcpy(to, piece->bytes, (size_t)piece->length);
  for (int i = ID_BYTES - 1; i >= 0; i--, number /= 10) id[i] = (char)('0' + number % 10);
  for (int i = 0; i < piece->ids; i++) memcpy(to + piece->id_at[i], id, ID_BYTES);
  c->out_length += piece->length;
  return c->waits_for_out || flush_out(fd);
}
static int put_text(int fd, const char *text, int64_t number) {
  struct piece plain = {.bytes = (char *)text, .length = (int)strlen(text)};
  return put(fd, &plain, number);
}

// ---- timetable: a binary heap by due time ----
static void plan(int64_t at, int fd) {
  int i = heap_size++;
  for (; i && heap[(i - 1) / 2].at > at; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
  heap[i] = (struct due){at, fd, conns[fd].generation};
}
static struct due take(void) {
  struct due top = heap[0], last = heap[--heap_size];
  int i = 0;
  for (int child; (child = 2 * i + 1) < heap_size; i = child) {
    if (child + 1 < heap_size && heap[child + 1].at < heap[child].at) child++;
    if (heap[child].at >= last.at) break;
    heap[i] = heap[child];
  }
  heap[i] = last;
  return top;
}

// ---- requests ----
static void read_requests(int fd);
static void send_due(int fd, int64_t due_ns) {
  struct conn *c = &conns[fd];
  for (;;) {
    struct row *row = &rows[c->row];
    int64_t at = now_ns();
    if (c->step == 0) row->first = at;
    if (c->step == chunk_count - 1) row->last = at;
    if (!put(fd, &stream_pieces[row->kind][c->step], c->row)) return close_conn(fd);
    if (++c->step == chunk_count) break;
    if (gap_ns) return plan(due_ns + gap_ns, fd);  // from the timetable, not from now: lateness does not add up
  }
  rows[c->row].whole = 1;
  c->row = -1;
  if (c->closes) return close_conn(fd);
  if (c->in_length) read_requests(fd);
}
static const char *header(const char *head, const char *name, int *length) {
  const char *at = strcasestr(head, name);
  if (!at) return NULL;
  at += strlen(name);
  while (*at == ' ') at++;
  *length = (int)strcspn(at, "\r\n");
  return at;
}
static void answer(int fd, const char *head, const char *body) {
  static const char *MODELS = "{\"object\":\"list\",\"data\":[{\"id\":\"replay\",\"object\":\"model\",\"created\":1760000000,"
                              "\"owned_by\":\"replay\",\"root\":\"replay\",\"max_model_len\":8192}]}";
  struct conn *c = &conns[fd];
  char text[1024], *path = strchr(head, ' ') ? strchr(head, ' ') + 1 : "";
  int length = 0;
  const char *label = header(head, "\r\nx-request-id:", &length);
  const char *connection;
  enum kind kind = !strncmp(path, "/v1/chat/completions", 20) ? CHAT : !strncmp(path, "/v1/completions", 15) ? COMPLETION : OTHER;
  if (kind == OTHER) {
    int known = !strncmp(path, "/v1/models", 10) || !strncmp(path, "/health", 7);
    const char *json = !strncmp(path, "/v1/models", 10) ? MODELS : "{}";
    sprintf(text, "HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s",
            known ? "200 OK" : "404 Not Found", (int)strlen(json), json);
    if (!put_text(fd, text, 0)) close_conn(fd);
    return;
  }
  rows = grown(rows, row_count, &row_room, sizeof *rows);
  c->row = row_count++;
  struct row *row = &rows[c->row];
  *row = (struct row){.last_byte = now_ns(), .kind = (uint8_t)kind};
  if (label) snprintf(row->label, LABEL_BYTES, "%.*s", length < LABEL_BYTES - 1 ? length : LABEL_BYTES - 1, label);
  connection = header(head, "\r\nconnection:", &length);
  c->closes = connection && length == 5 && !strncasecmp(connection, "close", 5);
  row->headers = now_ns();
  if (!strstr(body, "\"stream\":true") && !strstr(body, "\"stream\": true")) {
    int64_t number = c->row;
    row->whole = 1;
    row->first = row->last = row->headers;
    c->row = -1;
    if (!put(fd, &whole_answer[kind], number) || c->closes) close_conn(fd);
    return;
  }
  sprintf(text, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n%s\r\n",
          c->closes ? "connection: close\r\n" : "");
  if (!put_text(fd, text, 0)) return close_conn(fd);
  c->step = 0;
  if (first_ns) plan(row->last_byte + first_ns, fd);
  else send_due(fd, row->last_byte);
}
static void read_requests(int fd) {
  struct conn *c = &conns[fd];
  uint32_t generation = c->generation;
  while (c->generation == generation && c->row < 0 && c->in_length) {
    c->in[c->in_length] = 0;
    char *end = strstr(c->in, "\r\n\r\n"), head[8192];
    if (!end) return;
    int head_bytes = (int)(end - c->in) + 4, length = 0;
    if (head_bytes >= (int)sizeof head) return close_conn(fd);
    memcpy(head, c->in, (size_t)head_bytes);
    head[head_bytes] = 0;
    const char *told = header(head, "\r\ncontent-length:", &length);
    int whole = head_bytes + (told ? atoi(told) : 0);
    if (whole >= IN_BYTES) return close_conn(fd);
    if (c->in_length < whole) return;
    char kept = c->in[whole];
    c->in[whole] = 0;
    // The request leaves the buffer before it is answered, for an answer without gaps may read the next one.
    static char body[IN_BYTES];
    memcpy(body, c->in + head_bytes, (size_t)(whole - head_bytes) + 1);
    c->in[whole] = kept;
    memmove(c->in, c->in + whole, (size_t)(c->in_length - whole));
    c->in_length -= whole;
    answer(fd, head, body);
  }
}
static void receive(int fd) {
  struct conn *c = &conns[fd];
  for (;;) {
    if (c->in_length >= IN_BYTES - 1) return close_conn(fd);
    ssize_t n = recv(fd, c->in + c->in_length, (size_t)(IN_BYTES - 1 - c->in_length), 0);
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) return close_conn(fd);
    c->in_length += (int)n;
    if (c->in_length < IN_BYTES - 1 && n < 4096) break;  // level-triggered: what is left comes again
  }
  read_requests(fd);
}
static void take_connections(int listener) {
  int fd, on = 1;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
    if (fd >= MAX_FD) { close(fd); continue; }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!conns[fd].in) conns[fd].in = malloc(IN_BYTES);
    conns[fd].row = -1;
    watch(fd, EPOLLIN, EPOLL_CTL_ADD);
  }
}
static void write_log(const char *path) {
  static const char *KINDS[] = {"other", "chat", "completion"};
  FILE *log = fopen(path, "w");
  if (!log) die(path);
  for (int64_t i = 0; i < row_count; i++) {
    struct row *r = &rows[i];
    fprintf(log, "R %lld %s %lld %lld %lld %lld %d %s\n", (long long)i, KINDS[r->kind], (long long)r->last_byte,
            (long long)r->headers, (long long)r->first, (long long)r->last, r->whole, r->label[0] ? r->label : "-");
  }
  for (int64_t i = 0; i < sample_count; i++) fprintf(log, "C %lld %lld\n", (long long)samples[i].now, (long long)samples[i].cpu);
  if (fclose(log)) die(path);
}
int main(int argc, char **argv) {
  if (argc != 5) return fprintf(stderr, "replay_server LOG FIRST_US GAP_US CHUNKS\n"), 2;
  first_ns = atoll(argv[2]) * 1000, gap_ns = atoll(argv[3]) * 1000, chunk_count = atoi(argv[4]);
  if (chunk_count < 2 || chunk_count > MAX_CHUNKS) return fprintf(stderr, "CHUNKS: 2 to %d\n", MAX_CHUNKS), 2;
  prepare(CHAT), prepare(COMPLETION);
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files), files.rlim_cur = files.rlim_max, setrlimit(RLIMIT_NOFILE, &files);
  prctl(PR_SET_TIMERSLACK, 1);          // the default of 50 us would stand in every gap
  prctl(PR_SET_PDEATHSIG, SIGTERM);     // ends with the process that started it
  struct sigaction term = {.sa_handler = on_term};
  sigaction(SIGTERM, &term, NULL);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 4096)) die("listen");
  getsockname(listener, (struct sockaddr *)&address, &size);
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  watch(listener, EPOLLIN, EPOLL_CTL_ADD);
  printf("%d\n", ntohs(address.sin_port)), fflush(stdout);
  for (int64_t next_sample = now_ns(); !stopping;) {
    int64_t now = now_ns();
    if (now >= next_sample) {
      samples = grown(samples, sample_count, &sample_room, sizeof *samples);
      samples[sample_count++] = (struct sample){now, stamp(CLOCK_PROCESS_CPUTIME_ID)};
      next_sample = now + 25000000;
    }
    while (heap_size && heap[0].at <= now) {
      struct due due = take();
      if (conns[due.fd].generation == due.generation && conns[due.fd].row >= 0) send_due(due.fd, due.at);
    }
    int64_t wake = heap_size && heap[0].at < next_sample ? heap[0].at : next_sample, left = wake - now_ns();
    struct timespec wait = {left > 0 ? left / 1000000000 : 0, left > 0 ? left % 1000000000 : 0};
    struct epoll_event events[256];
    int n = epoll_pwait2(epoll_fd, events, 256, &wait, NULL);
    for (int i = 0; i < n; i++) {
      int fd = events[i].data.fd;
      if (fd == listener) { take_connections(listener); continue; }
      if (events[i].events & EPOLLOUT && !flush_out(fd)) { close_conn(fd); continue; }
      if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(fd);
    }
  }
  write_log(argv[1]);
  return 0;
}
