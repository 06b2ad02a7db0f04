// tools/schema/generate.cc
//
// The schema generator: reads protoc's descriptor set of schema/**/*.proto (with source
// information) and writes into the output directory
//   descriptor_set.cc   the set for the binary, comments moved into options
//   (src/schema/descriptor_set.h) <file>.h            accessors, one class per message
//   (src/schema/view.h)
// Files whose content did not change are left alone.
//
// Usage: muster_schema_generate DESCRIPTOR_SET OUTPUT_DIR

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/core.h>

#include "accessors.h"
#include "descriptions.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"

namespace muster::schema_tool {
namespace {

bool WriteIfChanged(const std::string& path, const std::string& content) {
  std::ifstream old(path, std::ios::binary);
  std::stringstream buffer;
  buffer << old.rdbuf();
  if (old && buffer.str() == content) return true;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << content;
  out.close();
  if (!out) fmt::print(stderr, "cannot write {}\n", path);
  return static_cast<bool>(out);
}

std::string DescriptorSetSource(const std::string& bytes) {
  std::string out =
      "#include \"schema/descriptor_set.h\"\n\nnamespace muster::schema {\nnamespace {\n"
      "constexpr char kBytes[] =";
  constexpr size_t kBytesPerLine = 24;
  for (size_t at = 0; at < bytes.size(); at += kBytesPerLine) {
    out += "\n    \"";
    for (size_t i = at; i < std::min(bytes.size(), at + kBytesPerLine); ++i) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\%03o", static_cast<unsigned char>(bytes[i]));
      out += escaped;
    }
    out += "\"";
  }
  out +=
      ";\n}  // namespace\n\nstd::string_view DescriptorSetBytes() {\n"
      "  return std::string_view(kBytes, sizeof(kBytes) - 1);\n}\n\n}  // namespace "
      "muster::schema\n";
  return out;
}

bool IsOurs(const std::string& name) {
  return name.starts_with("schema/") && name != "schema/options.proto";
}

int Run(const std::string& input, const std::string& output) {
  google::protobuf::FileDescriptorSet all;
  std::ifstream in(input, std::ios::binary);
  if (!all.ParseFromIstream(&in)) {
    fmt::print(stderr, "cannot read the descriptor set {}\n", input);
    return 1;
  }
  google::protobuf::FileDescriptorSet ours;
  google::protobuf::DescriptorPool pool(google::protobuf::DescriptorPool::generated_pool());
  bool written = true;
  for (google::protobuf::FileDescriptorProto& file : *all.mutable_file()) {
    if (!IsOurs(file.name())) continue;
    MoveCommentsToOptions(file);
    const google::protobuf::FileDescriptor* built = pool.BuildFile(file);
    if (built == nullptr) return 1;  // the pool has said why
    if (HasAccessors(*built))
      written &= WriteIfChanged(output + "/" + BaseName(*built) + ".h", Accessors(*built));
    *ours.add_file() = std::move(file);
  }
  std::string bytes;
  ours.SerializeToString(&bytes);
  written &= WriteIfChanged(output + "/descriptor_set.cc", DescriptorSetSource(bytes));
  return written ? 0 : 1;
}

}  // namespace
}  // namespace muster::schema_tool

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: muster_schema_generate DESCRIPTOR_SET OUTPUT_DIR\n");
    return 2;
  }
  return muster::schema_tool::Run(argv[1], argv[2]);
}
