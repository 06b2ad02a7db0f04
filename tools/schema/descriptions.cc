#include "descriptions.h"

#include <string>

#include "schema/options.pb.h"

namespace muster::schema_tool {
namespace {

using google::protobuf::FileDescriptorProto;
using google::protobuf::SourceCodeInfo;

// Paths into a FileDescriptorProto (descriptor.proto): message_type = 4, field = 2.
constexpr int kMessageType = 4;
constexpr int kField = 2;

// One line: "// a\n// b" -> "a b".
std::string OneLine(const std::string& comment) {
  std::string text;
  for (const char c : comment) {
    const bool space = c == ' ' || c == '\n' || c == '\t';
    if (!space) {
      text += c;
    } else if (!text.empty() && text.back() != ' ') {
      text += ' ';
    }
  }
  if (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace

void MoveCommentsToOptions(FileDescriptorProto& file) {
  for (const SourceCodeInfo::Location& location : file.source_code_info().location()) {
    const std::string text = OneLine(location.leading_comments());
    const int depth = location.path_size();
    if (text.empty() || depth < 2 || location.path(0) != kMessageType) continue;
    auto& message = *file.mutable_message_type(location.path(1));
    if (depth == 2) {
      message.mutable_options()->SetExtension(description, text);
    } else if (depth == 4 && location.path(2) == kField) {
      message.mutable_field(location.path(3))
          ->mutable_options()
          ->MutableExtension(field)
          ->set_description(text);
    }
  }
  file.clear_source_code_info();
}

}  // namespace muster::schema_tool
