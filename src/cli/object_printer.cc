#include "cli/object_printer.h"

#include "json/write.h"

namespace muster::cli {

std::string PrintObjects(const std::vector<json::Value>& objects, bool always_list,
                         std::string_view format) {
  json::Value shown;
  if (objects.size() == 1 && !always_list) {
    shown = objects[0];
  } else {
    shown = json::Obj({{"apiVersion", "v1"},
                       {"items", json::Value(json::Array(objects.begin(), objects.end()))},
                       {"kind", "List"},
                       {"metadata", json::Obj({{"resourceVersion", ""}})}});
  }
  if (format == "yaml") return json::WriteYaml(shown);
  std::string text = json::WritePretty(shown);
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

}  // namespace muster::cli
