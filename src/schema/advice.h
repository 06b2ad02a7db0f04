// src/schema/advice.h
//
// Advice: what is allowed and likely a mistake. The API server sends it as Warning headers when an
// object is created, so that kubectl and muster print it.
//
// Thread: any (pure function).

#pragma once

#include <string>
#include <vector>

#include "json/value.h"
#include "schema/kind.h"

namespace muster::schema {

// `object` as the client sent it.
std::vector<std::string> Advise(const Kind& kind, const json::Value& object);

}  // namespace muster::schema
