#include "accessors.h"

#include <cctype>
#include <set>
#include <vector>

#include "schema/options.pb.h"

namespace muster::schema_tool {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

constexpr size_t kCommentWidth = 108;

const std::set<std::string>& Keywords() {
  static const std::set<std::string> keywords = {
      "and",       "auto",   "bool",     "break",    "case",     "class",   "const",    "continue",
      "default",   "delete", "do",       "double",   "else",     "enum",    "explicit", "export",
      "false",     "float",  "for",      "friend",   "if",       "inline",  "int",      "long",
      "namespace", "new",    "not",      "operator", "or",       "private", "public",   "register",
      "requires",  "return", "short",    "signed",   "static",   "struct",  "switch",   "template",
      "this",      "throw",  "true",     "try",      "typename", "union",   "unsigned", "using",
      "virtual",   "void",   "volatile", "while",    "json"};
  return keywords;
}

bool IsObject(const Descriptor& message) {
  return message.options().GetExtension(muster::message).json() == OBJECT;
}

bool HasTypeMeta(const Descriptor& message) {
  return message.options().GetExtension(muster::message).type_meta() ||
         message.options().HasExtension(kind);
}

std::string MethodName(const std::string& json_name) {
  std::string name = SnakeCase(json_name);
  if (Keywords().contains(name)) name += '_';
  return name;
}

std::string ScalarType(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "bool";
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
      return "int64_t";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "double";
    default:
      return "std::string_view";
  }
}

// The C++ type of one value of the field.
std::string ValueType(const FieldDescriptor& field, const FileDescriptor& file) {
  if (field.type() != FieldDescriptor::TYPE_MESSAGE) return ScalarType(field);
  const Descriptor& message = *field.message_type();
  const JsonForm form = message.options().GetExtension(muster::message).json();
  if (form == TIME || form == MICRO_TIME) return "std::string_view";
  if (form != OBJECT) return "json::Value";
  return message.file() == &file ? message.name()
                                 : BaseName(*message.file()) + "::" + message.name();
}

struct Method {
  std::string comment, type, name, body;
};

class ClassWriter {
 public:
  ClassWriter(const Descriptor& message, const FileDescriptor& file)
      : message_(message), file_(file) {
    if (HasTypeMeta(message)) {
      Add("", "std::string_view", "api_version", "Get(\"apiVersion\").AsString()");
      Add("", "std::string_view", "kind", "Get(\"kind\").AsString()");
    }
    AddFields(message);
    if (!has_value_) Add("", "const json::Value&", "value", "json()");
  }

  std::string Declaration() const {
    std::string out;
    const std::string& words = message_.options().GetExtension(description);
    if (!words.empty()) out += Comment(words, "");
    out += "class " + message_.name() + " : public schema::View {\n public:\n";
    out += Constants();
    out += "  using View::View;\n\n";
    for (const Method& method : methods_)
      out += method.comment + "  " + method.type + " " + method.name + "() const;\n";
    return out + "};\n";
  }

  std::string Definitions() const {
    std::string out;
    for (const Method& method : methods_)
      out += "inline " + method.type + " " + message_.name() + "::" + method.name +
             "() const { return " + method.body + "; }\n";
    return out;
  }

 private:
  static std::string Comment(const std::string& words, const std::string& indent) {
    std::string out, line;
    for (size_t at = 0; at <= words.size();) {
      size_t end = words.find(' ', at);
      if (end == std::string::npos) end = words.size();
      const std::string word = words.substr(at, end - at);
      if (!line.empty() && line.size() + word.size() > kCommentWidth) {
        out += indent + "//" + line + "\n";
        line.clear();
      }
      line += " " + word;
      at = end + 1;
    }
    return out + indent + "//" + line + "\n";
  }

  std::string Constants() const {
    if (!message_.options().HasExtension(kind)) return "";
    const File& api = file_.options().GetExtension(muster::file);
    const std::string group_version =
        api.group().empty() ? api.version() : api.group() + "/" + api.version();
    return "  static constexpr std::string_view kKind = \"" + message_.name() +
           "\";\n  static constexpr std::string_view kGroup = \"" + api.group() +
           "\";\n  static constexpr std::string_view kVersion = \"" + api.version() +
           "\";\n  static constexpr std::string_view kApiVersion = \"" + group_version +
           "\";\n  static constexpr std::string_view kPlural = \"" +
           message_.options().GetExtension(kind).plural() + "\";\n\n";
  }

  void Add(const std::string& comment, const std::string& type, const std::string& name,
           const std::string& body) {
    methods_.push_back({comment, type, name, body});
  }

  void AddFields(const Descriptor& message) {
    for (int i = 0; i < message.field_count(); ++i) {
      const FieldDescriptor& member = *message.field(i);
      if (member.options().GetExtension(field).inlined()) {
        Add("", ValueType(member, file_), MethodName(member.json_name()),
            ValueType(member, file_) + "(json())");
        AddFields(*member.message_type());
      } else {
        AddField(member);
      }
    }
  }

  void AddField(const FieldDescriptor& member) {
    const std::string& json = member.json_name();
    const std::string& words = member.options().GetExtension(field).description();
    const std::string comment = words.empty() ? "" : Comment(words, "  ");
    const std::string name = MethodName(json);
    if (name == "value") has_value_ = true;
    const std::string got = "Get(\"" + json + "\")";
    if (member.is_map()) {
      const std::string type =
          "schema::Map<" + ValueType(*member.message_type()->map_value(), file_) + ">";
      Add(comment, type, name, type + "(" + got + ")");
    } else if (member.is_repeated()) {
      const std::string type = "schema::Range<" + ValueType(member, file_) + ">";
      Add(comment, type, name, type + "(" + got + ")");
    } else {
      const std::string type = ValueType(member, file_);
      Add(comment, type == "json::Value" ? "const json::Value&" : type, name,
          "schema::Read<" + type + ">(" + got + ")");
    }
    Add("", "bool", "has_" + SnakeCase(json), "Has(\"" + json + "\")");
  }

  const Descriptor& message_;
  const FileDescriptor& file_;
  std::vector<Method> methods_;
  bool has_value_ = false;
};

}  // namespace

std::string SnakeCase(const std::string& json_name) {
  std::string out;
  for (size_t i = 0; i < json_name.size(); ++i) {
    const char c = json_name[i];
    const auto upper = [&](size_t at) {
      return at < json_name.size() && std::isupper(json_name[at]);
    };
    const auto lower = [&](size_t at) {
      return at < json_name.size() && std::islower(json_name[at]);
    };
    // A plural s belongs to the capitals before it: clusterIPs.
    const auto plural = [&](size_t at) {
      return json_name[at] == 's' && (at + 1 == json_name.size() || upper(at + 1));
    };
    if (!std::isalnum(c)) {
      if (!out.empty() && out.back() != '_') out += '_';
      continue;
    }
    if (std::isupper(c) && !out.empty() && out.back() != '_') {
      const bool starts_word = !upper(i - 1) || (lower(i + 1) && !plural(i + 1));
      if (starts_word) out += '_';
    }
    out += static_cast<char>(std::tolower(c));
  }
  return out;
}

std::string BaseName(const FileDescriptor& file) {
  const std::string& path = file.name();
  const size_t start = path.rfind('/') + 1;
  return path.substr(start, path.rfind('.') - start);
}

bool HasAccessors(const FileDescriptor& file) {
  return BaseName(file).find('_') != std::string::npos;
}

std::string Accessors(const FileDescriptor& file) {
  const std::string base = BaseName(file);
  std::string out = "// Made from " + file.name() +
                    " by tools/schema; src/schema/view.h is the contract.\n\n#pragma once\n\n"
                    "#include \"schema/view.h\"\n";
  for (int i = 0; i < file.dependency_count(); ++i) {
    if (file.dependency(i)->name().starts_with("schema/") && HasAccessors(*file.dependency(i)))
      out += "#include \"schema/" + BaseName(*file.dependency(i)) + ".h\"\n";
  }
  out += "\nnamespace muster::" + base + " {\n\n";
  std::string declarations, definitions;
  for (int i = 0; i < file.message_type_count(); ++i) {
    const Descriptor& message = *file.message_type(i);
    if (!IsObject(message)) continue;
    out += "class " + message.name() + ";\n";
    const ClassWriter writer(message, file);
    declarations += "\n" + writer.Declaration();
    definitions += "\n" + writer.Definitions();
  }
  return out + declarations + definitions + "\n}  // namespace muster::" + base + "\n";
}

}  // namespace muster::schema_tool
