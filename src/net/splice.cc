#include "net/splice.h"

#include <string>
#include <string_view>
#include <utility>

namespace muster::net {
namespace {

// The streams' callbacks own it; dropping the streams drops the callbacks, and a dropped stream
// still sends what was written to it.
struct Splice {
  std::unique_ptr<ByteStream> one, other;
};

}  // namespace

void JoinStreams(Loop& loop, std::unique_ptr<ByteStream> one, std::unique_ptr<ByteStream> other) {
  auto splice = std::make_shared<Splice>(Splice{std::move(one), std::move(other)});
  const auto connect = [&](ByteStream& from, ByteStream& to) {
    from.OnData([splice, &from, &to](std::string_view bytes) {
      to.Write(std::string(bytes));
      if (to.BufferedBytes() > kMaxSpliceBacklogBytes) from.PauseReading(true);
    });
    to.OnDrained([splice, &from] { from.PauseReading(false); });
    from.OnClose([splice, &loop] {
      loop.Post([splice] {
        splice->one.reset();
        splice->other.reset();
      });
    });
  };
  connect(*splice->one, *splice->other);
  connect(*splice->other, *splice->one);
}

}  // namespace muster::net
