// The bytes of a watch answer in arbitrary pieces: pieces must not change the events.

#include <string>

#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "client/watch_decoder.h"
#include "json/write.h"

namespace {

std::string EventsOf(std::string_view bytes, size_t piece) {
  muster::client::WatchDecoder decoder;
  std::string events;
  while (!bytes.empty()) {
    const std::string part(bytes.substr(0, piece));
    bytes.remove_prefix(part.size());
    decoder.Feed(part);
    while (true) {
      const auto frame = decoder.Next();
      if (!frame) return events + "refused";
      if (!*frame) break;
      events += (*frame)->type + " " + muster::json::Write((*frame)->object) + "\n";
    }
  }
  return events;
}

}  // namespace

FUZZ_TARGET(watch, input) {
  muster::FuzzInput choices(input);
  const size_t piece = choices.Byte() % 16 + 1;
  CHECK(EventsOf(choices.Rest(), SIZE_MAX) == EventsOf(choices.Rest(), piece));
}
