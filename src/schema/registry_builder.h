// src/schema/registry_builder.h
//
// RegistryBuilder: fills a Registry from the compiled descriptors. Used once, by
// Registry::BuiltIn().
//
// Life cycle: on the stack while the Registry is built.
// Thread:     the one that calls BuiltIn() first.
// Invariants: a descriptor set that cannot be built is our own bug (the build made it): CHECK.

#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "schema/registry.h"

namespace google::protobuf {
class DescriptorProto;
class FieldDescriptorProto;
class FileDescriptorProto;
}  // namespace google::protobuf

namespace muster::schema {

class RegistryBuilder {
 public:
  explicit RegistryBuilder(Registry& registry) : registry_(registry) {}

  // REQUIRES: a FileDescriptorSet as DescriptorSetBytes() gives it.
  void Build(std::string_view descriptor_set);

 private:
  struct Known {
    const google::protobuf::DescriptorProto* message = nullptr;
    Schema* schema = nullptr;
  };

  // Makes the schema of a message, still without fields, at an address that stays.
  Known AddMessage(const google::protobuf::FileDescriptorProto& file,
                   const google::protobuf::DescriptorProto& message);
  void AddKind(const std::string& group, const std::string& version,
               const google::protobuf::DescriptorProto& message, const Schema& schema);
  void FillObject(const google::protobuf::DescriptorProto& message, Schema& schema);
  void AddFields(const google::protobuf::DescriptorProto& message, int inlined_in, Schema& schema);
  // JSONSchemaPropsOrBool and its kin: the schema of the message inside.
  const Schema* SchemaInside(const google::protobuf::DescriptorProto& message) const;
  void AddTypeMeta(Schema& schema);
  Field MakeField(const google::protobuf::DescriptorProto& message,
                  const google::protobuf::FieldDescriptorProto& member, int inlined_in);
  const Schema* FieldSchema(const google::protobuf::DescriptorProto& message,
                            const google::protobuf::FieldDescriptorProto& member);
  const Schema* ValueSchema(const google::protobuf::FieldDescriptorProto& member);
  // One shared schema per scalar type and format.
  const Schema* Scalar(Type type, const char* format);
  // One shared list (map) schema per item schema.
  const Schema* Container(Type type, const Schema* items);

  Registry& registry_;
  std::vector<std::shared_ptr<Kind>> served_;
  std::unordered_map<std::string, Known> messages_;  // ".package.Message"
  std::unordered_map<std::string, const Schema*> scalars_;
  std::unordered_map<const Schema*, const Schema*> lists_, maps_;
};

}  // namespace muster::schema
