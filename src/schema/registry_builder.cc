#include "schema/registry_builder.h"

#include <algorithm>

#include "base/check.h"
#include "base/strings.h"
#include "google/protobuf/descriptor.pb.h"
#include "json/parse.h"
#include "schema/conversion.h"
#include "schema/options.pb.h"

namespace muster::schema {
namespace {

using Message = google::protobuf::DescriptorProto;
using Member = google::protobuf::FieldDescriptorProto;
using File = google::protobuf::FileDescriptorProto;

const muster::Field& Options(const Member& member) {
  return member.options().GetExtension(muster::field);
}

bool HasTypeMeta(const Message& message) {
  return message.options().GetExtension(muster::message).type_meta() ||
         message.options().HasExtension(muster::kind);
}

// "io.k8s.apiextensions_apiserver..." is the protobuf spelling of
// "io.k8s.apiextensions-apiserver...".
std::string OpenApiName(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// The entry message of a map field, which protoc nests in the message; null for other fields.
const Message* MapEntry(const Message& message, const Member& member) {
  if (member.label() != Member::LABEL_REPEATED || member.type() != Member::TYPE_MESSAGE)
    return nullptr;
  for (const Message& nested : message.nested_type())
    if (nested.options().map_entry() &&
        member.type_name().ends_with("." + message.name() + "." + nested.name()))
      return &nested;
  return nullptr;
}

Type TypeOf(muster::JsonForm form) {
  switch (form) {
    case muster::OBJECT:
      return Type::kObject;
    case muster::QUANTITY:
      return Type::kQuantity;
    case muster::INT_OR_STRING:
      return Type::kIntOrString;
    case muster::TIME:
      return Type::kTime;
    case muster::MICRO_TIME:
      return Type::kMicroTime;
    case muster::STRINGS:
      return Type::kArray;
    default:
      return Type::kAny;
  }
}

WireForm WireFormOf(muster::JsonForm form) {
  switch (form) {
    case muster::RAW:
      return WireForm::kRaw;
    case muster::SCHEMA_OR_ARRAY:
      return WireForm::kSchemaOrArray;
    case muster::SCHEMA_OR_BOOL:
      return WireForm::kSchemaOrBool;
    case muster::SCHEMA_OR_STRINGS:
      return WireForm::kSchemaOrStrings;
    case muster::STRINGS:
      return WireForm::kStrings;
    default:
      return WireForm::kPlain;
  }
}

bool HasSchemaInside(WireForm form) {
  return form != WireForm::kPlain && form != WireForm::kRaw && form != WireForm::kStrings;
}

ListType ListTypeOf(muster::ListType type) {
  switch (type) {
    case muster::SET:
      return ListType::kSet;
    case muster::MAP:
      return ListType::kMap;
    default:
      return ListType::kAtomic;
  }
}

Field::Support SupportOf(muster::Support support) {
  switch (support) {
    case muster::NOT_YET:
      return Field::Support::kNotYet;
    case muster::RESTRICTS_NOT_YET:
      return Field::Support::kRestrictsNotYet;
    default:
      return Field::Support::kActedOn;
  }
}

}  // namespace

void RegistryBuilder::Build(std::string_view descriptor_set) {
  google::protobuf::FileDescriptorSet files;
  CHECK(files.ParseFromArray(descriptor_set.data(), static_cast<int>(descriptor_set.size())));
  for (const File& file : files.file()) {
    for (const Message& message : file.message_type())
      messages_["." + file.package() + "." + message.name()] = AddMessage(file, message);
  }
  for (const File& file : files.file()) {
    const muster::File& api = file.options().GetExtension(muster::file);
    for (const Message& message : file.message_type()) {
      const Known& known = messages_.at("." + file.package() + "." + message.name());
      if (known.schema->type == Type::kObject) FillObject(message, *known.schema);
      if (HasSchemaInside(known.schema->wire_form)) known.schema->items = SchemaInside(message);
      if (message.options().HasExtension(muster::kind))
        AddKind(api.group(), api.version(), message, *known.schema);
    }
  }
  ConnectConversions(served_);
}

RegistryBuilder::Known RegistryBuilder::AddMessage(const File& file, const Message& message) {
  Schema& schema = registry_.schemas_.emplace_back();
  const muster::JsonForm form = message.options().GetExtension(muster::message).json();
  schema.type = TypeOf(form);
  schema.wire_form = WireFormOf(form);
  schema.preserve_unknown = schema.type == Type::kAny;
  schema.name = OpenApiName(file.package() + "." + message.name());
  schema.description = message.options().GetExtension(muster::description);
  if (schema.type == Type::kTime || schema.type == Type::kMicroTime) schema.format = "date-time";
  if (schema.wire_form == WireForm::kStrings) schema.items = Scalar(Type::kString, "");
  registry_.by_name_.emplace(schema.name, &schema);
  if (HasTypeMeta(message)) {
    const muster::File& api = file.options().GetExtension(muster::file);
    const std::string api_version =
        api.group().empty() ? api.version() : api.group() + "/" + api.version();
    registry_.by_api_version_and_kind_.emplace(api_version + " " + message.name(), &schema);
  }
  return Known{&message, &schema};
}

void RegistryBuilder::AddKind(const std::string& group, const std::string& version,
                              const Message& message, const Schema& schema) {
  const muster::Kind& options = message.options().GetExtension(muster::kind);
  auto kind = std::make_shared<Kind>();
  kind->group = group;
  kind->version = version;
  kind->kind = message.name();
  kind->list_kind = message.name() + "List";
  kind->plural = options.plural();
  kind->singular = options.singular().empty() ? ToLower(message.name()) : options.singular();
  kind->short_names.assign(options.short_names().begin(), options.short_names().end());
  kind->categories.assign(options.categories().begin(), options.categories().end());
  kind->namespaced = !options.cluster_scoped();
  kind->status_subresource = options.status();
  kind->create_only = options.create_only();
  kind->custom = options.custom();
  kind->computed = options.computed();
  if (options.has_scale()) {
    kind->scale = std::make_unique<ScaleSubresource>(
        ScaleSubresource{options.scale().spec_replicas(), options.scale().status_replicas(),
                         options.scale().label_selector()});
  }
  for (const muster::PrinterColumn& column : options.columns()) {
    kind->columns.push_back({column.name(), column.type(), column.format(), column.description(),
                             column.path(), column.priority()});
  }
  kind->selectable_fields.assign(options.selectable().begin(), options.selectable().end());
  // The registry lives as long as the process, so nobody needs to own the schema.
  kind->schema = SchemaPtr(SchemaPtr(), &schema);
  if (kind->custom) {
    registry_.own_custom_kinds_.push_back(std::move(kind));
  } else {
    served_.push_back(kind);
    registry_.kinds_.push_back(std::move(kind));
  }
}

void RegistryBuilder::FillObject(const Message& message, Schema& schema) {
  schema.fields.reserve(static_cast<size_t>(message.field_size()) + 2);
  if (HasTypeMeta(message)) AddTypeMeta(schema);
  AddFields(message, 0, schema);
  for (size_t i = 0; i < schema.fields.size(); ++i) schema.index.emplace(schema.fields[i].name, i);
}

const Schema* RegistryBuilder::SchemaInside(const Message& message) const {
  for (const Member& member : message.field())
    if (member.type() == Member::TYPE_MESSAGE) return messages_.at(member.type_name()).schema;
  return nullptr;
}

void RegistryBuilder::AddTypeMeta(Schema& schema) {
  Field api_version;
  api_version.name = "apiVersion";
  api_version.schema = Scalar(Type::kString, "");
  api_version.description =
      "The group and version of this object's schema, such as v1 or kubeflow.org/v1.";
  api_version.omit_empty = true;
  schema.fields.push_back(std::move(api_version));
  Field kind;
  kind.name = "kind";
  kind.schema = Scalar(Type::kString, "");
  kind.description = "The name of this object's schema, such as Pod.";
  kind.omit_empty = true;
  schema.fields.push_back(std::move(kind));
}

void RegistryBuilder::AddFields(const Message& message, int inlined_in, Schema& schema) {
  for (const Member& member : message.field()) {
    if (Options(member).inlined()) {
      CHECK(inlined_in == 0);  // the codec knows one level of embedding; the API has no more
      AddFields(*messages_.at(member.type_name()).message, member.number(), schema);
    } else {
      schema.fields.push_back(MakeField(message, member, inlined_in));
    }
  }
}

Field RegistryBuilder::MakeField(const Message& message, const Member& member, int inlined_in) {
  const muster::Field& options = Options(member);
  Field made;
  made.name = member.json_name();
  made.schema = FieldSchema(message, member);
  made.description = options.description();
  made.number = member.number();
  made.inlined_in = inlined_in;
  made.required = options.required();
  made.pointer = member.proto3_optional();
  made.omit_empty = !options.keep_empty() && !options.required();
  if (!options.default_json().empty()) {
    Result<json::Value> value = json::Parse(options.default_json());
    CHECK_MSG(value.has_value(), message.name() + "." + member.name());
    made.default_value = *std::move(value);
  }
  made.enum_values.assign(options.values().begin(), options.values().end());
  made.patch_merge_key = options.merge_key();
  made.patch_merge = options.merge();
  made.patch_retain_keys = options.retain_keys();
  made.list_type = ListTypeOf(options.list_type());
  made.list_map_keys.assign(options.list_map_keys().begin(), options.list_map_keys().end());
  made.support = SupportOf(options.support());
  made.acted_on_values.assign(options.acted_on().begin(), options.acted_on().end());
  made.loosening_values.assign(options.loosens().begin(), options.loosens().end());
  return made;
}

const Schema* RegistryBuilder::FieldSchema(const Message& message, const Member& member) {
  if (const Message* entry = MapEntry(message, member)) {
    constexpr int kValueField = 1;  // an entry has key and value
    return Container(Type::kMap, ValueSchema(entry->field(kValueField)));
  }
  const Schema* value = ValueSchema(member);
  return member.label() == Member::LABEL_REPEATED ? Container(Type::kArray, value) : value;
}

const Schema* RegistryBuilder::ValueSchema(const Member& member) {
  switch (member.type()) {
    case Member::TYPE_MESSAGE:
      return messages_.at(member.type_name()).schema;
    case Member::TYPE_STRING:
      return Scalar(Type::kString, "");
    case Member::TYPE_BYTES:
      return Scalar(Type::kBytes, "byte");
    case Member::TYPE_BOOL:
      return Scalar(Type::kBoolean, "");
    case Member::TYPE_INT32:
      return Scalar(Type::kInteger, "int32");
    case Member::TYPE_INT64:
      return Scalar(Type::kInteger, "int64");
    case Member::TYPE_DOUBLE:
      return Scalar(Type::kNumber, "double");
    default:
      CheckFailed(__FILE__, __LINE__, "a field type that Kubernetes does not use", member.name());
  }
}

const Schema* RegistryBuilder::Scalar(Type type, const char* format) {
  const std::string key = std::to_string(static_cast<int>(type)) + format;
  const Schema*& found = scalars_[key];
  if (found == nullptr) {
    Schema& schema = registry_.schemas_.emplace_back();
    schema.type = type;
    schema.format = format;
    found = &schema;
  }
  return found;
}

const Schema* RegistryBuilder::Container(Type type, const Schema* items) {
  const Schema*& found = (type == Type::kArray ? lists_ : maps_)[items];
  if (found == nullptr) {
    Schema& schema = registry_.schemas_.emplace_back();
    schema.type = type;
    schema.items = items;
    found = &schema;
  }
  return found;
}

}  // namespace muster::schema
