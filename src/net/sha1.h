// src/net/sha1.h
//
// SHA-1, for names that others have agreed on. Not for secrets.
//
// Thread: any (pure function).

#pragma once

#include <string>
#include <string_view>

namespace muster::net {

// 40 lower-case hexadecimal digits.
std::string Sha1Hex(std::string_view text);

}  // namespace muster::net
