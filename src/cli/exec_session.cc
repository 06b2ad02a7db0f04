#include "cli/exec_session.h"

#include <utility>

#include "base/strings.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::cli {
namespace {

constexpr char kStdin = 0;
constexpr char kStdout = 1;
constexpr char kStderr = 2;
constexpr char kError = 3;
constexpr char kResize = 4;
constexpr char kCloseChannel = static_cast<char>(255);
constexpr size_t kInputPieceBytes = 32 * 1024;

}  // namespace

ExecSession::ExecSession(std::unique_ptr<net::ByteStream> stream, std::string protocol,
                         Callbacks callbacks)
    : protocol_(std::move(protocol)),
      callbacks_(std::move(callbacks)),
      socket_(net::WebSocket::Role::kClient, std::move(stream)) {
  socket_.OnMessage([this](std::string_view message, bool) { OnMessage(message); });
  socket_.OnClose([this](uint16_t code, std::string_view reason) {
    if (code == 1000 || code == 1005) return End(0);
    End(Error(Reason::kInvalid, "the connection to the container broke{}{}",
              reason.empty() ? "" : ": ", std::string(reason)));
  });
}

void ExecSession::SendInput(std::string_view bytes) {
  while (!bytes.empty()) {
    std::string message(1, kStdin);
    message += bytes.substr(0, kInputPieceBytes);
    bytes.remove_prefix(message.size() - 1);
    socket_.Send(message);
  }
}

void ExecSession::CloseInput() {
  if (protocol_ == kExecV5) socket_.Send(std::string{kCloseChannel, kStdin});
}

void ExecSession::SendSize(int columns, int rows) {
  socket_.Send(std::string(1, kResize) +
               json::Write(json::Obj({{"Width", columns}, {"Height", rows}})));
}

void ExecSession::OnMessage(std::string_view message) {
  if (message.empty() || ended_) return;
  const std::string_view bytes = message.substr(1);
  switch (message[0]) {
    case kStdout:
    case kStderr:
      if (!bytes.empty()) callbacks_.on_output(bytes, message[0] == kStderr);
      return;
    case kError:
      return End(ExitCodeFrom(bytes));
    default:
      return;
  }
}

void ExecSession::End(Result<int> exit_code) {
  if (std::exchange(ended_, true)) return;
  callbacks_.on_end(std::move(exit_code));
}

Result<int> ExitCodeFrom(std::string_view status_json) {
  ASSIGN_OR_RETURN(json::Value status, json::Parse(status_json));
  if (status["status"].AsString() == "Success") return 0;
  for (const json::Value& cause : status["details"]["causes"].items()) {
    if (cause["reason"].AsString() != "ExitCode") continue;
    if (const std::optional<int64_t> code = ParseInt(cause["message"].AsString()))
      return static_cast<int>(*code);
  }
  return Error(Reason::kInvalid, "{}", status["message"].AsString());
}

}  // namespace muster::cli
