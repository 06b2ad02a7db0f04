// tools/schema/descriptions.h
//
// Comments above messages and fields become their descriptions, so that the binary carries words
// but no source positions.

#pragma once

#include "google/protobuf/descriptor.pb.h"

namespace muster::schema_tool {

void MoveCommentsToOptions(google::protobuf::FileDescriptorProto& file);

}  // namespace muster::schema_tool
