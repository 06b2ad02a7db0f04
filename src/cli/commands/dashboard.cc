// muster dashboard: the cluster in a browser.

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/dashboard_identity.h"
#include "cli/duration_flag.h"
#include "cli/loopback_proxy.h"
#include "cli/session.h"
#include "dashboard/page.h"
#include "net/io_threads.h"
#include "net/server.h"

namespace muster::cli {
namespace {

constexpr uint16_t kUsualPort = 8088;
constexpr Duration kStopGrace = milliseconds(200);

// Other users of the machine see the command lines of programs, so the browser is given a file that
// only we can read, which leads to the address.
class OpeningPage {
 public:
  OpeningPage() = default;
  ~OpeningPage() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  OpeningPage(const OpeningPage&) = delete;
  OpeningPage& operator=(const OpeningPage&) = delete;

  // Nothing where there is no desktop, or no xdg-open: the address is printed anyway.
  void Open(const std::string& url) {
    if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) return;
    if (!Write(url)) return;
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
      posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_WRONLY, 0);
    std::string program = "xdg-open";
    char* argv[] = {program.data(), path_.data(), nullptr};
    pid_t child = 0;
    std::signal(SIGCHLD, SIG_IGN);  // nobody waits for it
    posix_spawnp(&child, "xdg-open", &files, nullptr, argv, environ);
    posix_spawn_file_actions_destroy(&files);
  }

 private:
  bool Write(const std::string& url) {
    const char* home = std::getenv("HOME");
    if (home == nullptr) return false;
    const std::string cache = std::string(home) + "/.cache";
    mkdir(cache.c_str(), 0700);
    std::string path = cache + "/muster-dashboard-XXXXXX.html";
    const int fd = mkostemps(path.data(), 5, O_CLOEXEC);  // readable by us alone
    if (fd < 0) return false;
    path_ = path;
    const std::string text =
        fmt::format("<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={}\">\n", url);
    const bool whole = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    close(fd);
    return whole;
  }

  std::string path_;  // "": there is no file
};

Result<std::unique_ptr<net::HttpServer>> Listen(const Arguments& arguments, Loop& loop,
                                                net::IoThreads& io, net::Handler& handler) {
  ASSIGN_OR_RETURN(const int64_t port, arguments.GetInt("port", kUsualPort, 0, 65535));
  net::ServerOptions options;
  options.port = static_cast<uint16_t>(port);
  Result<std::unique_ptr<net::HttpServer>> server =
      net::HttpServer::Start(loop, io, handler, options);
  if (server || arguments.Has("port")) return server;
  options.port = 0;  // somebody has the usual one: any other does
  return net::HttpServer::Start(loop, io, handler, options);
}

// The way to the API server without what the kubeconfig proves.
Result<std::unique_ptr<client::HttpsTransport>> AnonymousTransport(const Arguments& arguments,
                                                                   Loop& loop, net::IoThreads& io) {
  ASSIGN_OR_RETURN(client::ConnectionConfig config, FindConnection(arguments));
  config.tls.certificate_pem.clear();
  config.tls.key_pem.clear();
  config.bearer_token.clear();
  return client::HttpsTransport::Make(loop, io, config);
}

void Tell(Console& console, const std::string& url, uint16_t port, const std::string& account,
          const std::string& expires) {
  console.Print("{}\n\n", console.Paint(Colour::kBold, url));
  console.Print("The page acts as the service account {} until {}.\n", account, expires);
  console.Print(
      "From another machine: ssh -L {0}:127.0.0.1:{0} THIS-MACHINE, then the same "
      "address there.\n",
      port);
  console.Print("Ctrl-C ends it.\n");
}

Result<int> Run(Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  Session& session = invocation.session;
  if (!dashboard::IsBuiltIn()) {
    return Error(Reason::kInvalid,
                 "this muster was built without npm, so the dashboard is not in it. Where its "
                 "sources are: apt-get install npm && ./quickstart --build");
  }
  ASSIGN_OR_RETURN(const Duration life, ParseSpanFlag("for", arguments.Get("for")));
  if (life < kMinTokenLife || life > kMaxTokenLife)
    return Error(Reason::kInvalid, "--for {}: from 10m to 168h", arguments.Get("for"));
  const std::string account = arguments.Get("service-account");
  if (account == kDashboardAccount) RETURN_IF_ERROR(EnsureDashboardAccount(session));
  ASSIGN_OR_RETURN(const DashboardToken token, RequestDashboardToken(session, account, life));

  Loop& loop = session.loop();
  net::IoThreads io(2);
  ASSIGN_OR_RETURN(const auto transport, AnonymousTransport(arguments, loop, io));
  LoopbackProxy proxy(loop, *transport);
  ASSIGN_OR_RETURN(const auto server, Listen(arguments, loop, io, proxy));
  const std::string url =
      fmt::format("http://{}{}/#token={}", server->address(), dashboard::kPath, token.token);
  OpeningPage page;
  session.RunUntilDone([&](const std::function<void()>& done) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) session.asio_loop()->OnSignal(signal, done);
    Tell(invocation.console, url, server->port(), account, token.expires);
    if (!arguments.Has("no-open")) page.Open(url);
  });
  session.RunUntilDone(
      [&](const std::function<void()>& done) { server->Stop(kStopGrace, [done] { done(); }); });
  return 0;
}

}  // namespace

Command DashboardCommand() {
  Command command;
  command.name = "dashboard";
  command.summary = "the cluster in a browser";
  command.usage = "[flags]";
  command.details =
      "Serves the dashboard on this machine's loopback address and opens it, with a token of a "
      "service account that may look at everything but secrets and change nothing. Its requests "
      "go on to the API server over TLS; it adds no rights of yours to them. The same page is at "
      "https://SERVER/dashboard/ for browsers that trust the cluster's authority.";
  command.flags = {
      {"port", 0, "PORT", "of the loopback address (default: 8088, or a free one)", "", {}},
      {"no-open", 0, "", "only print the address", "", {}},
      {"for", 0, "DURATION", "how long the token lives, 10m to 168h", "8h", {}},
      {"service-account",
       0,
       "NS/NAME",
       "whom the page acts for: sees what this one may see",
       std::string(kDashboardAccount),
       {}}};
  command.examples = {
      {"muster dashboard", "open it"},
      {"muster dashboard --no-open --port 9000", "print the address, for an ssh tunnel"},
      {"muster dashboard --service-account team-a/viewer", "with the rights of a team"}};
  command.run = Run;
  return command;
}

}  // namespace muster::cli
