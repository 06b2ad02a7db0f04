// src/cli/exec_session.h
//
// ExecSession: the channels of a remote command over one WebSocket, as upstream's v5.channel.k8s.io
// (and v4) define them: the first byte of a message is its channel (0 stdin, 1 stdout, 2 stderr, 3
// the final Status, 4 the size of the terminal, 255 closes a channel, v5 only).
//
// Life cycle: made on an upgraded stream; destroy to close.
// Thread:     the loop thread.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "net/http.h"
#include "net/websocket.h"

namespace muster::cli {

inline constexpr const char* kExecV5 = "v5.channel.k8s.io";
inline constexpr const char* kExecV4 = "v4.channel.k8s.io";

class ExecSession {
 public:
  struct Callbacks {
    std::function<void(std::string_view bytes, bool is_stderr)> on_output;
    // The exit code of the command, or why there is none.
    std::function<void(Result<int> exit_code)> on_end;
  };
  ExecSession(std::unique_ptr<net::ByteStream> stream, std::string protocol, Callbacks callbacks);

  void SendInput(std::string_view bytes);
  void CloseInput();  // v4 has no way to say so: nothing is sent
  void SendSize(int columns, int rows);
  size_t BufferedBytes() const { return socket_.BufferedBytes(); }

 private:
  void OnMessage(std::string_view message);
  void End(Result<int> exit_code);

  const std::string protocol_;
  Callbacks callbacks_;
  bool ended_ = false;
  net::WebSocket socket_;
};

// The Status of channel 3 -> exit code.
Result<int> ExitCodeFrom(std::string_view status_json);

}  // namespace muster::cli
