// muster exec: runs a program in a container.

#include <cerrno>
#include <csignal>
#include <memory>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/exec_session.h"
#include "cli/log_follower.h"
#include "cli/resource_arguments.h"
#include "cli/session.h"
#include "cli/terminal.h"
#include "net/url.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxUnsentInputBytes = 1024 * 1024;
constexpr Duration kInputPause = milliseconds(5);

net::Request ExecRequest(const json::Value& pod, const std::string& container,
                         const std::vector<std::string>& program, bool input, bool terminal) {
  net::Query query;
  query.Add("container", container);
  for (const std::string& word : program) query.Add("command", word);
  if (input) query.Add("stdin", "true");
  query.Add("stdout", "true");
  if (terminal) {
    query.Add("tty", "true");
  } else {
    query.Add("stderr", "true");
  }
  const json::Value& metadata = pod["metadata"];
  net::Request request{
      .method = "GET",
      .target = client::ApiClient::PathOf({client::resources::kPods, metadata["namespace"].Str(),
                                           metadata["name"].Str(), "exec"}) +
                "?" + query.Encode()};
  net::PrepareWebSocket(request, {kExecV5, kExecV4});
  return request;
}

// Feeds standard input to the command. Files cannot be watched and are read in pieces instead.
class InputPump {
 public:
  InputPump(AsioLoop& loop, ExecSession& exec) : loop_(loop), exec_(exec) {
    struct stat info{};
    const bool is_file = fstat(STDIN_FILENO, &info) == 0 && S_ISREG(info.st_mode);
    if (is_file) {
      ReadFile();
    } else {
      fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
      nonblocking_ = true;
      watch_ = loop_.WatchReadable(STDIN_FILENO, [this] { ReadReady(); });
    }
  }
  ~InputPump() {
    watch_.reset();
    loop_.Cancel(timer_);
    if (nonblocking_) fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) & ~O_NONBLOCK);
  }

 private:
  // False at the end of the input.
  bool ReadOnce() {
    char buffer[32768];
    const ssize_t n = read(STDIN_FILENO, buffer, sizeof buffer);
    if (n > 0) exec_.SendInput(std::string_view(buffer, static_cast<size_t>(n)));
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return n > 0;
    exec_.CloseInput();
    ended_ = true;
    return false;
  }

  void ReadReady() {
    while (exec_.BufferedBytes() < kMaxUnsentInputBytes && ReadOnce()) {
    }
    if (ended_) {
      loop_.Post([this] { watch_.reset(); });
    } else if (exec_.BufferedBytes() >= kMaxUnsentInputBytes && timer_ == 0) {
      timer_ = loop_.After(kInputPause, [this] {
        timer_ = 0;
        ReadReady();
      });
    }
  }

  void ReadFile() {
    timer_ = 0;
    while (exec_.BufferedBytes() < kMaxUnsentInputBytes && ReadOnce()) {
    }
    if (!ended_) timer_ = loop_.After(kInputPause, [this] { ReadFile(); });
  }

  AsioLoop& loop_;
  ExecSession& exec_;
  std::unique_ptr<FdWatch> watch_;
  TimerId timer_ = 0;
  bool ended_ = false;
  bool nonblocking_ = false;
};

void WriteOutput(std::string_view bytes, bool is_stderr) {
  FILE* file = is_stderr ? stderr : stdout;
  fwrite(bytes.data(), 1, bytes.size(), file);
  fflush(file);
}

Result<int> Attach(Session& session, net::Request request, bool input, bool terminal) {
  AsioLoop& loop = *session.asio_loop();
  Result<int> outcome = Error(Reason::kInvalid, "the command did not start");
  std::unique_ptr<client::StreamHandle> handle;
  std::unique_ptr<RawTerminal> raw;
  std::unique_ptr<ExecSession> exec;
  std::unique_ptr<InputPump> pump;
  session.RunUntilDone([&](std::function<void()> done) {
    handle = session.https()->Upgrade(request, [&, done](Result<net::UpgradeAnswer> answer) {
      const auto fail = [&](Status status) {
        outcome = Error(std::move(status));
        done();
      };
      if (!answer) return fail(answer.error());
      if (Status status = client::ApiClient::StatusOf(answer->response);
          !answer->stream && !status.ok()) {
        return fail(std::move(status));
      }
      Result<std::string> protocol = net::CheckWebSocketAnswer(request, answer->response);
      if (!protocol) return fail(protocol.error());
      exec = std::make_unique<ExecSession>(
          std::move(answer->stream), *protocol,
          ExecSession::Callbacks{WriteOutput, [&, done](Result<int> code) {
                                   outcome = std::move(code);
                                   done();
                                 }});
      if (terminal) {
        raw = MakeRawTerminal();
        auto send_size = [&exec] {
          const TerminalSize size = GetTerminalSize();
          if (exec) exec->SendSize(size.columns, size.rows);
        };
        send_size();
        loop.OnSignal(SIGWINCH, send_size);
      }
      if (input) pump = std::make_unique<InputPump>(loop, *exec);
    });
  });
  return outcome;
}

Result<int> Run(Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  Session& session = invocation.session;
  if (arguments.program.empty()) {
    return Error(Reason::kInvalid, "put the program after --: muster exec POD -- CMD ARGS...");
  }
  ResourceFinder finder(session);
  ASSIGN_OR_RETURN(OneObject wanted, ParseOne(finder, arguments.positionals, "pods"));
  if (wanted.resource.kind != "Pod") return Error(Reason::kInvalid, "exec works in pods only");
  ASSIGN_OR_RETURN(json::Value pod,
                   session.Get({wanted.resource.resource, session.ns(), wanted.name, ""}));
  const std::string container =
      arguments.Has("container") ? arguments.Get("container") : DefaultContainer(pod);
  const bool input = arguments.Has("stdin");
  bool terminal = arguments.Has("tty");
  if (terminal && isatty(STDIN_FILENO) != 1) {
    invocation.console.Err(
        "Unable to use a TTY - input is not a terminal or the right kind of file");
    terminal = false;
  }
  return Attach(session, ExecRequest(pod, container, arguments.program, input, terminal), input,
                terminal);
}

}  // namespace

Command ExecCommand() {
  Command command;
  command.name = "exec";
  command.summary = "run a program in a container";
  command.usage = "POD [flags] -- CMD ARGS...";
  command.details = "The exit code is the program's.";
  command.flags = {{"stdin", 'i', "", "give it our standard input", "", {}},
                   {"tty", 't', "", "give it a terminal", "", {}},
                   {"container", 'c', "NAME", "in this container (default: the first)", "", {}}};
  command.examples = {{"muster exec web-0 -- ls /", "one program"},
                      {"muster exec -it web-0 -- sh", "a shell"},
                      {"muster exec -i web-0 -- sh -c 'cat > /tmp/x' < x", "send a file"}};
  command.most_words = 2;
  command.takes_program = true;
  command.names_objects = true;
  command.run = Run;
  return command;
}

}  // namespace muster::cli
