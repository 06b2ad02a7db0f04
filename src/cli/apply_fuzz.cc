// Three-way merge, three objects on three lines (what was applied last, what is wanted now, what
// the server has): applying the same again changes nothing, and nothing is lost that nobody took
// away.

#include <algorithm>
#include <set>
#include <string>

#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "cli/three_way.h"
#include "json/parse.h"
#include "json/write.h"
#include "schema/registry.h"

namespace {

using muster::json::Value;

// Whether items of lists can be told apart, objects by name, as the server asks of lists that
// merge.
bool ItemsHaveNames(const Value& value) {
  std::set<std::string> names;
  for (const Value& item : value.items()) {
    if (!ItemsHaveNames(item) || item.IsObject() != value.At(0).IsObject()) return false;
    if (item.IsObject() && !item["name"].IsString()) return false;
    const std::string name = item.IsObject() ? item["name"].Str() : muster::json::Write(item);
    if (!names.insert(name).second) return false;
  }
  return std::ranges::all_of(value.members(), [](const muster::json::Member& member) {
    return ItemsHaveNames(member.second);
  });
}

}  // namespace

FUZZ_TARGET(apply, input) {
  muster::FuzzInput lines(input);
  const bool typed = (lines.Byte() & 1) != 0;
  const muster::Result<Value> last = muster::json::Parse(lines.Line());
  const std::string_view wanted_text = lines.Line();
  const muster::Result<Value> wanted = muster::json::Parse(wanted_text);
  const muster::Result<Value> current = muster::json::Parse(lines.Rest());
  if (!last || !wanted || !current) return;
  if (!last->IsObject() || !wanted->IsObject() || !current->IsObject()) return;
  static const muster::schema::KindPtr kPods =
      muster::schema::Registry::BuiltIn().Find("", "v1", "pods");
  if (typed && (!ItemsHaveNames(*wanted) || !ItemsHaveNames(*current))) return;
  const muster::schema::Schema* schema = typed ? kPods->schema.get() : nullptr;
  // A null in what is wanted means "not there", which the server says by leaving it out.
  if (wanted_text.find("null") != std::string_view::npos) return;
  const Value merged = muster::cli::ThreeWayMerge(*last, *wanted, *current, schema);
  CHECK(muster::cli::ThreeWayMerge(*wanted, *wanted, merged, schema) == merged);
  for (const auto& [key, value] : current->members())
    CHECK(merged.Has(key) || last->Has(key) || wanted->Has(key));
  for (const auto& [key, value] : wanted->members()) CHECK(merged.Has(key));
}
