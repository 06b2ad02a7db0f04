// src/schema/descriptor_set.h
//
// The compiled schema: a serialized google.protobuf.FileDescriptorSet of schema/**/*.proto, without
// options.proto, in dependency order, the comments moved into the options (muster.description) and
// (muster.field).description. The build makes it (cmake/MusterSchema.cmake,
// tools/schema/generate.cc) and links it into the binary.
//
// Thread: any (constant data).

#pragma once

#include <string_view>

namespace muster::schema {

std::string_view DescriptorSetBytes();

}  // namespace muster::schema
