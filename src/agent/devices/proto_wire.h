// src/agent/devices/proto_wire.h
//
// Protobuf's wire format, for the small messages of the node's gRPC contracts: written field by
// field, read by a loop over the fields. What a reader does not know it passes over.
//
// Thread: any (pure).
// Source: https://protobuf.dev/programming-guides/encoding/

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::agent {

void AppendVarint(std::string& out, uint64_t value);
// A string, bytes or a message. Written even if it is empty, as elements of lists have to be.
void AppendBytes(std::string& out, int field, std::string_view value);
// An integer or a bool.
void AppendNumber(std::string& out, int field, uint64_t value);

struct ProtoField {
  int number = 0;
  bool is_bytes = false;  // else a number
  uint64_t value = 0;
  std::string_view bytes;  // of the message that is read
};

// Calls `on_field` for each number and each string or message in `message`, until one fails.
// Invalid: it is no protobuf message.
Status ReadFields(std::string_view message,
                  const std::function<Status(const ProtoField&)>& on_field);

}  // namespace muster::agent
