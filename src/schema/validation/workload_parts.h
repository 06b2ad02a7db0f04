// src/schema/validation/workload_parts.h
//
// Private to src/schema: rules that the kinds with a pod template share.
//
// Thread: any (pure functions).

#pragma once

#include <initializer_list>
#include <string_view>

#include "json/value.h"
#include "schema/validation/field_errors.h"

namespace muster::schema {

// A pod template that DefaultPodTemplate has completed.
void ValidatePodTemplate(const json::Value& pod_template, const Path& path, FieldErrors& errors);
// Its metadata alone.
void ValidatePodTemplateMetadata(const json::Value& pod_template, const Path& path,
                                 FieldErrors& errors);

// `path` is that of the spec: the labels of its template must be what its selector selects.
void ValidateSelectorMatches(const json::Value& spec, const Path& path, FieldErrors& errors);
void ValidateUnchanged(const json::Value& before, const json::Value& after, const Path& path,
                       FieldErrors& errors);
// Each of these members, as long as it is there.
void ValidateNotNegative(const json::Value& object, const Path& path,
                         std::initializer_list<std::string_view> keys, FieldErrors& errors);

// "30%" or a number: how many of some pods.
void ValidateIntOrPercent(const json::Value& value, const Path& path, FieldErrors& errors);
void ValidateAtMostAll(const json::Value& value, const Path& path, FieldErrors& errors);
bool IsNone(const json::Value& int_or_percent);  // 0 or "0%"

}  // namespace muster::schema
