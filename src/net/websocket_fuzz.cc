// Arbitrary bytes, in arbitrary pieces, for the WebSocket decoder: pieces must not change the
// frames, and a frame that was decoded must encode to one that decodes to itself.

#include <string>
#include <vector>

#include "base/check.h"
#include "base/fuzz_test_support.h"
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

bool Same(const WebSocketFrame& a, const WebSocketFrame& b) {
  return a.final == b.final && a.opcode == b.opcode && a.payload == b.payload;
}

}  // namespace

FUZZ_TARGET(websocket, input) {
  muster::FuzzInput choices(input);
  const bool masked = (choices.Byte() & 1) != 0;
  const size_t piece = choices.Byte() % 16 + 1;
  std::vector<WebSocketFrame> whole;
  std::vector<WebSocketFrame> pieces;
  const bool good = DecodeAll(choices.Rest(), masked, SIZE_MAX, whole);
  CHECK(DecodeAll(choices.Rest(), masked, piece, pieces) == good);
  CHECK(pieces.size() == whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    CHECK(Same(whole[i], pieces[i]));
    std::string encoded;
    muster::net::AppendWebSocketFrame(encoded, whole[i].opcode, whole[i].final, whole[i].payload,
                                      masked ? "mask" : "");
    std::vector<WebSocketFrame> again;
    CHECK(DecodeAll(encoded, masked, SIZE_MAX, again));
    CHECK(again.size() == 1 && Same(again[0], whole[i]));
  }
}
