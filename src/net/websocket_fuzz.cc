// Feeds arbitrary bytes, in arbitrary pieces, to the WebSocket decoder: pieces must not change the
// frames, and a frame that was decoded must encode to one that decodes to itself.

#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "net/websocket.h"

namespace {

using muster::net::WebSocketDecoder;
using muster::net::WebSocketFrame;

bool DecodeAll(std::string_view bytes, bool masked, size_t piece,
               std::vector<WebSocketFrame>& frames) {
  WebSocketDecoder decoder(masked);
  while (!bytes.empty()) {
    const std::string part(bytes.substr(0, piece));
    bytes.remove_prefix(part.size());
    if (!decoder.Feed(part, frames).ok()) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const bool masked = (data[0] & 1) != 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  std::vector<WebSocketFrame> whole;
  std::vector<WebSocketFrame> pieces;
  const bool good = DecodeAll(bytes, masked, SIZE_MAX, whole);
  CHECK(DecodeAll(bytes, masked, data[1] % 16 + 1, pieces) == good);
  CHECK(pieces.size() == whole.size());
  for (const WebSocketFrame& frame : whole) {
    std::string encoded;
    muster::net::AppendWebSocketFrame(encoded, frame.opcode, frame.final, frame.payload,
                                      masked ? "mask" : "");
    std::vector<WebSocketFrame> again;
    CHECK(DecodeAll(encoded, masked, SIZE_MAX, again));
    CHECK(again.size() == 1 && again[0].payload == frame.payload &&
          again[0].opcode == frame.opcode);
  }
  return 0;
}
