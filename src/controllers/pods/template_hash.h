// src/controllers/pods/template_hash.h
//
// The hash of a template that becomes a label and the end of a name. Another number than
// upstream's, in the same letters.
//
// Thread: any (pure function).

#pragma once

#include <cstdint>
#include <string>

#include "json/value.h"

namespace muster::controllers {

std::string TemplateHash(const json::Value& pod_template, int64_t collision_count);

}  // namespace muster::controllers
