#include "apiserver/stored_object.h"

#include <algorithm>
#include <array>
#include <map>

#include "apiserver/server.h"
#include "base/check.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/write.h"
#include "schema/conversion.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kRegistry = "/registry/";
constexpr std::string_view kCoreGroup = "core";

// metav1.ObjectMeta in the order of its protobuf fields, which is how upstream writes it.
constexpr std::array<std::string_view, 13> kMetadataOrder = {"name",
                                                             "generateName",
                                                             "namespace",
                                                             "uid",
                                                             "resourceVersion",
                                                             "generation",
                                                             "creationTimestamp",
                                                             "deletionTimestamp",
                                                             "deletionGracePeriodSeconds",
                                                             "labels",
                                                             "annotations",
                                                             "ownerReferences",
                                                             "finalizers"};
// Kept by nobody here: who manages which field arrives with server-side apply; selfLink has been
// gone since 1.24.
constexpr std::array<std::string_view, 3> kMetadataDropped = {"managedFields", "selfLink",
                                                              "resourceVersion"};

template <size_t N>
bool Contains(const std::array<std::string_view, N>& names, std::string_view name) {
  for (std::string_view one : names) {
    if (one == name) return true;
  }
  return false;
}

void AppendMember(std::string& out, std::string_view key, const json::Value& value) {
  if (out.back() != '{') out += ',';
  json::AppendString(out, key);
  out += ':';
  json::AppendTo(out, value);
}

// Appends the metadata object and returns where the revision goes.
size_t AppendMetadata(std::string& out, const json::Value& metadata) {
  size_t slot = 0;
  out += '{';
  for (std::string_view key : kMetadataOrder) {
    if (key == "resourceVersion") {
      if (out.back() != '{') out += ',';
      out += "\"resourceVersion\":";
      slot = out.size();
      out.append("\"\"");
      out.append(store::kRevisionSlotBytes - 2, ' ');
      continue;
    }
    const json::Value* value = metadata.Find(key);
    if (value != nullptr && !value->IsNull()) AppendMember(out, key, *value);
  }
  for (const auto& [key, value] : metadata.members()) {
    if (!Contains(kMetadataOrder, key) && !Contains(kMetadataDropped, key))
      AppendMember(out, key, value);
  }
  out += '}';
  return slot;
}

std::shared_ptr<ObjectMeta> MakeMeta(const schema::Kind* kind, const json::Value& object) {
  auto meta = std::make_shared<ObjectMeta>();
  const json::Value& metadata = object["metadata"];
  for (const auto& [name, value] : metadata["labels"].members()) {
    meta->labels.Add(name);
    meta->labels.Add(value.AsString());
  }
  meta->terminating = metadata.Has("deletionTimestamp");
  if (kind != nullptr) {
    for (const std::string& field : kind->selectable_fields)
      meta->fields.Add(SelectableValue(object, field));
  }
  meta->labels.ShrinkToFit();
  meta->fields.ShrinkToFit();
  return meta;
}

// The length of the JSON object at the start of `text`.
size_t ObjectLength(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return 0;
}

void AppendTypeMeta(std::string& out, const schema::Kind& kind) {
  out += "{\"kind\":\"";
  out += kind.kind;
  out += "\",\"apiVersion\":\"";
  if (!kind.group.empty()) {
    out += kind.group;
    out += '/';
  }
  out += kind.version;
  out += '"';
}

}  // namespace

std::string KeyPrefix(const schema::Kind& kind) {
  return fmt::format("{}{}/{}/", kRegistry,
                     kind.group.empty() ? kCoreGroup : std::string_view(kind.group), kind.plural);
}

std::string CollectionPrefix(const schema::Kind& kind, std::string_view ns) {
  std::string prefix = KeyPrefix(kind);
  if (kind.namespaced && !ns.empty()) {
    prefix += ns;
    prefix += '/';
  }
  return prefix;
}

std::string ObjectKey(const schema::Kind& kind, std::string_view ns, std::string_view name) {
  std::string key = CollectionPrefix(kind, ns);
  key += name;
  return key;
}

KeyParts ParseKey(std::string_view key) {
  KeyParts parts;
  if (!key.starts_with(kRegistry)) return parts;
  key.remove_prefix(kRegistry.size());
  const auto take = [&key] {
    const size_t slash = std::min(key.find('/'), key.size());
    const std::string_view part = key.substr(0, slash);
    key.remove_prefix(std::min(slash + 1, key.size()));
    return part;
  };
  parts.group = take();
  if (parts.group == kCoreGroup) parts.group = {};
  parts.plural = take();
  if (key.find('/') != std::string_view::npos) parts.ns = take();
  parts.name = take();
  return parts;
}

void PackedTexts::Add(std::string_view text) {
  const auto size = static_cast<uint32_t>(text.size());
  bytes_.append(reinterpret_cast<const char*>(&size), sizeof size);
  bytes_ += text;
}

std::string_view PackedTexts::operator[](size_t index) const {
  std::string_view found;
  ForEach([&](std::string_view text) {
    if (index-- > 0) return true;
    found = text;
    return false;
  });
  return found;
}

size_t PackedTexts::size() const {
  size_t count = 0;
  ForEach([&count](std::string_view) { return ++count > 0; });
  return count;
}

std::optional<std::string_view> ObjectMeta::Label(std::string_view name) const {
  bool is_name = true;
  bool found = false;
  std::optional<std::string_view> value;
  labels.ForEach([&](std::string_view text) {
    if (found) value = text;
    found = is_name && text == name;
    is_name = !is_name;
    return !value.has_value();
  });
  return value;
}

StoredForm EncodeStored(const schema::Kind& kind, const json::Value& object) {
  StoredForm form;
  form.bytes.reserve(1024);
  form.bytes = kStoredStart;
  form.revision_slot = AppendMetadata(form.bytes, object["metadata"]);
  form.meta = MakeMeta(&kind, object);
  form.meta->metadata_bytes = static_cast<uint32_t>(form.bytes.size() - kMetadataOffset);
  for (const auto& [key, value] : object.members()) {
    if (key != "kind" && key != "apiVersion" && key != "metadata")
      AppendMember(form.bytes, key, value);
  }
  form.bytes += '}';
  return form;
}

json::Value DecodeStored(const schema::Kind& kind, std::string_view bytes) {
  Result<json::Value> stored = json::Parse(bytes);
  CHECK_MSG(stored.has_value(), "stored bytes are not JSON");
  json::Object object = {{"kind", kind.kind}, {"apiVersion", kind.GroupVersion()}};
  for (const auto& member : stored->members()) object.push_back(member);
  return schema::FromStored(kind, json::Value(std::move(object)));
}

json::Value StoredTree(const schema::Kind& kind, const json::Value& object,
                       store::Revision revision) {
  const json::Value& metadata = object["metadata"];
  json::Object fields;
  fields.reserve(metadata.size() + 1);
  for (std::string_view key : kMetadataOrder) {
    if (key == "resourceVersion") {
      fields.emplace_back(key, std::to_string(revision));
      continue;
    }
    const json::Value* value = metadata.Find(key);
    if (value != nullptr && !value->IsNull()) fields.emplace_back(key, *value);
  }
  for (const auto& [key, value] : metadata.members()) {
    if (!Contains(kMetadataOrder, key) && !Contains(kMetadataDropped, key))
      fields.emplace_back(key, value);
  }
  json::Object tree = {{"kind", kind.kind},
                       {"apiVersion", kind.GroupVersion()},
                       {"metadata", json::Value(std::move(fields))}};
  tree.reserve(object.size() + 3);
  for (const auto& [key, value] : object.members()) {
    if (key != "kind" && key != "apiVersion" && key != "metadata") tree.emplace_back(key, value);
  }
  return json::Value(std::move(tree));
}

void AppendWire(std::string& out, const schema::Kind& kind, std::string_view bytes) {
  if (kind.conversion != nullptr) return json::AppendTo(out, DecodeStored(kind, bytes));
  AppendTypeMeta(out, kind);
  out += ',';
  out += bytes.substr(1);
}

void AppendUntyped(std::string& out, const schema::Kind& kind, std::string_view bytes) {
  if (kind.conversion == nullptr) {
    out += bytes;
  } else {
    json::AppendTo(out, DecodeStored(kind, bytes).Remove("kind").Remove("apiVersion"));
  }
}

std::string WireObject(const schema::Kind& kind, std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + kind.kind.size() + kind.group.size() + 64);
  AppendWire(out, kind, bytes);
  return out;
}

std::string_view MetadataOf(const store::Entry& entry) {
  return std::string_view(*entry.value).substr(kMetadataOffset, MetaOf(entry).metadata_bytes);
}

const ObjectMeta& MetaOf(const store::Entry& entry) {
  CHECK(entry.meta != nullptr);
  return static_cast<const ObjectMeta&>(*entry.meta);
}

std::string SelectableValue(const json::Value& object, std::string_view field) {
  const json::Value* at = &object;
  for (std::string_view part : SplitNonEmpty(field, '.')) at = &(*at)[part];
  if (at->IsString()) return at->Str();
  if (at->IsNumber()) return std::string(at->NumberToken());
  if (at->IsBool()) return at->AsBool() ? "true" : "false";
  if (field == "status.successful" && object["kind"].AsString() == "Job")
    return std::to_string(object["status"]["succeeded"].AsInt());
  if (field == "spec.hostNetwork" || field == "spec.unschedulable") return "false";
  return {};
}

store::Store::Decorator MakeDecorator() {
  // By group and plural; custom kinds are not known before their definitions are loaded, and select
  // by labels only.
  std::map<std::pair<std::string, std::string>, const schema::Kind*, std::less<>> kinds;
  for (const schema::KindPtr& kind : schema::Registry::BuiltIn().kinds()) {
    if (kind->storage) kinds[{kind->group, kind->plural}] = kind.get();
  }
  return [kinds = std::move(kinds)](std::string_view key, std::string_view value) {
    const KeyParts parts = ParseKey(key);
    const auto kind = kinds.find({std::string(parts.group), std::string(parts.plural)});
    const Result<json::Value> object = json::Parse(value);
    CHECK_MSG(object.has_value(), "stored bytes are not JSON");
    std::shared_ptr<ObjectMeta> meta =
        MakeMeta(kind == kinds.end() ? nullptr : kind->second, *object);
    meta->metadata_bytes = static_cast<uint32_t>(ObjectLength(value.substr(kMetadataOffset)));
    return std::shared_ptr<const store::Meta>(std::move(meta));
  };
}

}  // namespace muster::apiserver
