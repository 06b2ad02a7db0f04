// Both ends of tests/live/traffic.sh.
//
//   traffic serve PORT
//     Answers every request 200; /ready is 503 while the file /tmp/unready is there. Ends at
//     SIGTERM without further ado, as most programs do. While /tmp/drain is there (a preStop hook
//     makes it), it says `Connection: close`, so that clients go elsewhere by themselves.
//   traffic load ADDRESS PORT STOP_FILE
//     Requests, over connections that are kept and over one for each, until STOP_FILE is there.
//     Prints how many, and what went wrong; exit code 1 if anything did.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/core.h>

namespace {

constexpr int kThreadsOfEachKind = 2;
constexpr int kPauseMs = 1;  // between two requests of a thread
constexpr int kLookMs = 20;  // for the stop file
constexpr timeval kPatience{.tv_sec = 10, .tv_usec = 0};
constexpr std::string_view kEndOfHead = "\r\n\r\n";

bool Exists(const char* path) { return access(path, F_OK) == 0; }

bool SendAll(int fd, std::string_view bytes) {
  return send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

// Up to the end of a head; what follows it stays away (there are no bodies). False: the peer is
// gone.
bool ReadHead(int fd, std::string& head) {
  head.clear();
  std::array<char, 4096> buffer;
  while (!head.ends_with(kEndOfHead)) {
    const ssize_t size = recv(fd, buffer.data(), buffer.size(), 0);
    if (size <= 0) return false;
    head.append(buffer.data(), static_cast<size_t>(size));
  }
  return true;
}

void ServeConnection(int fd) {
  std::string head;
  while (ReadHead(fd, head)) {
    const bool refuse = head.starts_with("GET /ready") && Exists("/tmp/unready");
    const bool last = Exists("/tmp/drain") || head.find("Connection: close") != head.npos;
    const std::string reply = fmt::format("HTTP/1.1 {}\r\nContent-Length: 0\r\n{}\r\n",
                                          refuse ? "503 Service Unavailable" : "200 OK",
                                          last ? "Connection: close\r\n" : "");
    if (!SendAll(fd, reply) || last) break;
  }
  close(fd);
}

int Serve(uint16_t port) {
  signal(SIGTERM, [](int) { _exit(0); });  // PID 1 has no default
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_port = htons(port);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 ||
      listen(listener, 1024) != 0) {
    fmt::print(stderr, "traffic: listen: {}\n", std::strerror(errno));
    return 1;
  }
  while (true) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) std::thread(ServeConnection, fd).detach();
  }
}

struct Counts {
  std::atomic<int64_t> kept = 0, single = 0;
  std::atomic<int64_t> refused = 0, cut = 0, failed = 0;  // connect(), no answer, not 200
};

class Client {
 public:
  Client(sockaddr_in server, Counts& counts) : server_(server), counts_(counts) {}
  ~Client() { Close(); }

  void Request(bool keep) {
    if (fd_ < 0 && !Connect()) {
      ++counts_.refused;
      return;
    }
    const bool sent = SendAll(fd_, keep ? "GET / HTTP/1.1\r\nHost: t\r\n\r\n"
                                        : "GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
    ++(keep ? counts_.kept : counts_.single);
    if (!sent || !ReadHead(fd_, head_)) {
      ++counts_.cut;
      return Close();
    }
    if (!head_.starts_with("HTTP/1.1 200")) ++counts_.failed;
    if (!keep || head_.find("Connection: close") != head_.npos) Close();
  }

 private:
  bool Connect() {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&server_), sizeof server_) == 0) return true;
    Close();
    return false;
  }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  const sockaddr_in server_;
  Counts& counts_;
  int fd_ = -1;
  std::string head_;
};

int Load(const char* address, uint16_t port, const char* stop_file) {
  sockaddr_in server{};
  server.sin_family = AF_INET;
  server.sin_port = htons(port);
  if (inet_pton(AF_INET, address, &server.sin_addr) != 1) return 2;
  Counts counts;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2 * kThreadsOfEachKind; ++i) {
    threads.emplace_back([&, keep = i % 2 == 0] {
      Client client(server, counts);
      while (!stop) {
        client.Request(keep);
        poll(nullptr, 0, kPauseMs);
      }
    });
  }
  while (!Exists(stop_file)) poll(nullptr, 0, kLookMs);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  fmt::print("requests={} kept={} single={} refused={} cut={} not-200={}\n",
             counts.kept + counts.single, counts.kept.load(), counts.single.load(),
             counts.refused.load(), counts.cut.load(), counts.failed.load());
  return counts.refused + counts.cut + counts.failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "serve" && argc == 3) return Serve(static_cast<uint16_t>(std::atoi(argv[2])));
  if (mode == "load" && argc == 5)
    return Load(argv[2], static_cast<uint16_t>(std::atoi(argv[3])), argv[4]);
  fmt::print(stderr, "usage: traffic serve PORT | traffic load ADDRESS PORT STOP_FILE\n");
  return 2;
}
