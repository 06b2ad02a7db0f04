// src/net/splice.h
//
// JoinStreams: two byte streams that feed each other until one closes, each no faster than the
// other takes it.
//
// Life cycle: the pair owns itself; it ends, and both streams with it, when one of them closes.
// Thread:     the loop thread of both streams.

#pragma once

#include <cstddef>
#include <memory>

#include "loop/loop.h"
#include "net/http.h"

namespace muster::net {

inline constexpr size_t kMaxSpliceBacklogBytes = 1024 * 1024;  // then the other side reads no more

void JoinStreams(Loop& loop, std::unique_ptr<ByteStream> one, std::unique_ptr<ByteStream> other);

}  // namespace muster::net
