// Which addresses are taken, and by whom.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/core.h>

#include "agent/runtime/unique_fd.h"
#include "app/doctor/probe.h"
#include "base/files.h"
#include "base/strings.h"
#include "cli/session.h"

namespace muster::app {
namespace {

namespace fs = std::filesystem;
using agent::UniqueFd;

// What /proc/net/tcp calls a listener.
constexpr std::string_view kListening = "0A";

bool IsTaken(int type, const std::string& host, uint16_t port) {
  sockaddr_storage address{};
  socklen_t size = sizeof(sockaddr_in);
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
  if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
  } else if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    size = sizeof(sockaddr_in6);
  } else {
    return false;
  }
  const UniqueFd fd(socket(address.ss_family, type | SOCK_CLOEXEC, 0));
  const int on = 1;
  // As the servers do: connections that just ended do not count. Two UDP sockets could share.
  if (type == SOCK_STREAM) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(fd.get(), IPPROTO_IP, IP_FREEBIND, &on, sizeof on);  // the bridge may come later
  return bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 &&
         errno == EADDRINUSE;
}

// The inode of a socket that listens on the port; "" if there is none.
std::string SocketInode(int type, uint16_t port) {
  for (const char* version : {"", "6"}) {
    const auto text =
        ReadSmallFile(fmt::format("/proc/net/{}{}", type == SOCK_STREAM ? "tcp" : "udp", version));
    if (!text) continue;
    for (const std::string_view line : SplitNonEmpty(*text, '\n')) {
      const std::vector<std::string_view> words = SplitNonEmpty(line, ' ');
      if (words.size() < 10 || !words[1].ends_with(fmt::format(":{:04X}", port))) continue;
      if (type == SOCK_DGRAM || words[3] == kListening) return std::string(words[9]);
    }
  }
  return "";
}

// Of a muster's command line; "" if that is none.
std::string ClusterOf(const fs::path& process) {
  const auto text = ReadSmallFile(process / "cmdline");
  if (!text) return "";
  const std::vector<std::string_view> words = Split(*text, '\0');
  constexpr std::string_view kFlag = "--data-dir";
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == kFlag && i + 1 < words.size()) return std::string(words[i + 1]);
    if (words[i].starts_with(fmt::format("{}=", kFlag)))
      return std::string(words[i].substr(kFlag.size() + 1));
  }
  return cli::DefaultDataDir();
}

struct Holder {
  std::string name, cluster;  // as in PortFacts
};

Holder HolderOf(int type, uint16_t port) {
  const std::string inode = SocketInode(type, port);
  if (inode.empty()) return {};
  const std::string wanted = fmt::format("socket:[{}]", inode);
  std::error_code error;
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    const std::string pid = process.path().filename();
    if (!ParseInt(pid)) continue;
    std::error_code denied;
    for (const auto& file : fs::directory_iterator(process.path() / "fd", denied)) {
      if (fs::read_symlink(file.path(), denied) != wanted) continue;
      const auto comm = ReadSmallFile(process.path() / "comm");
      const std::string name(comm ? Trim(*comm) : "a program");
      return {fmt::format("{} (process {})", name, pid),
              name == "muster" ? ClusterOf(process.path()) : ""};
    }
  }
  return {"another user's process", ""};
}

PortFacts Probe(std::string what, const std::string& host, int port, std::string change,
                const std::vector<int>& types) {
  PortFacts facts{
      std::move(what), fmt::format("{}:{}", host, port), std::move(change), false, "", ""};
  for (const int type : types) {
    if (facts.taken || !IsTaken(type, host, static_cast<uint16_t>(port))) continue;
    facts.taken = true;
    Holder holder = HolderOf(type, static_cast<uint16_t>(port));
    facts.holder = std::move(holder.name);
    facts.cluster = std::move(holder.cluster);
  }
  return facts;
}

}  // namespace

std::vector<PortFacts> ProbePorts(const UpOptions& options, const agent::AddressRanges& ranges,
                                  bool with_dns) {
  std::vector<PortFacts> out;
  if (options.listen_port != 0) {
    out.push_back(Probe("API server", options.listen_host, options.listen_port,
                        "end that program, or: muster up --listen 127.0.0.1:7443", {SOCK_STREAM}));
  }
  if (options.kubelet_port != 0) {
    out.push_back(Probe("kubelet", "127.0.0.1", options.kubelet_port,
                        "end that program, or: muster up --kubelet-port 0", {SOCK_STREAM}));
  }
  if (with_dns) {
    PortFacts dns = Probe("DNS", ranges.DnsAddress().ToString(), 53,
                          "let that program listen on addresses of its own, not on all (dnsmasq: "
                          "bind-dynamic), or end it",
                          {SOCK_DGRAM, SOCK_STREAM});
    if (!dns.cluster.empty()) {
      dns.change =
          "root has one cluster on a machine, others beside it are ordinary users': end that one "
          "(muster down --data-dir of it), or start this one as another user";
    }
    out.push_back(std::move(dns));
  }
  return out;
}

}  // namespace muster::app
