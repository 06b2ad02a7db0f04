// src/apiserver/stored_object.h
//
// The stored form of an object: its JSON without kind and apiVersion, metadata first, with a place
// of fixed width for metadata.resourceVersion that the store fills in. GET, LIST and WATCH send
// these bytes; kind and apiVersion are written in front of them, so one stored object serves every
// version of its kind. A version with a conversion (schema/conversion.h) is made of the tree.
//
// Beside the bytes an Entry keeps what selectors need (ObjectMeta), never the tree.
//
// Thread: any (pure functions over immutable data).

#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "schema/kind.h"
#include "store/store.h"

namespace muster::apiserver {

// "/registry/core/pods/"
std::string KeyPrefix(const schema::Kind& kind);
// "/registry/core/pods/ns/"; without a namespace the one above.
std::string CollectionPrefix(const schema::Kind& kind, std::string_view ns);
// "/registry/core/pods/ns/name"; cluster-scoped kinds without ns.
std::string ObjectKey(const schema::Kind& kind, std::string_view ns, std::string_view name);

struct KeyParts {
  std::string_view group, plural, ns, name;
};
KeyParts ParseKey(std::string_view key);

// Short texts in one piece of memory: every entry of the store has some.
class PackedTexts {
 public:
  void Add(std::string_view text);
  // Calls visit(text) for each, in order, until it returns false.
  template <class Visit>
  void ForEach(Visit visit) const {
    for (size_t at = 0; at < bytes_.size();) {
      uint32_t size = 0;
      std::memcpy(&size, bytes_.data() + at, sizeof size);
      at += sizeof size;
      if (!visit(std::string_view(bytes_).substr(at, size))) return;
      at += size;
    }
  }
  std::string_view operator[](size_t index) const;  // "" beyond the last
  size_t size() const;
  void ShrinkToFit() { bytes_.shrink_to_fit(); }
  bool operator==(const PackedTexts&) const = default;

 private:
  std::string bytes_;  // each: its size in 4 bytes, then itself
};

// What an Entry keeps parsed.
struct ObjectMeta : store::Meta {
  PackedTexts labels;           // name, value, name, value, ...
  PackedTexts fields;           // values of kind.selectable_fields, in that order
  uint32_t metadata_bytes = 0;  // length of the metadata object; it starts at kMetadataOffset
  bool terminating = false;     // has a deletionTimestamp
  std::optional<std::string_view> Label(std::string_view name) const;
};
inline constexpr std::string_view kStoredStart = "{\"metadata\":";
inline constexpr size_t kMetadataOffset = kStoredStart.size();

struct StoredForm {
  std::string bytes;
  size_t revision_slot = 0;
  std::shared_ptr<ObjectMeta> meta;
};
// `kind` decides which fields are selectable.
StoredForm EncodeStored(const schema::Kind& kind, const json::Value& object);

// The tree in the version of `kind`, kind and apiVersion first. REQUIRES: bytes that EncodeStored
// made.
json::Value DecodeStored(const schema::Kind& kind, std::string_view bytes);
// What DecodeStored makes of EncodeStored(kind, object) with `revision` in its place.
json::Value StoredTree(const schema::Kind& kind, const json::Value& object,
                       store::Revision revision);

// {"kind":"Pod","apiVersion":"v1",... appended to `out`, without parsing unless it is converted.
void AppendWire(std::string& out, const schema::Kind& kind, std::string_view bytes);
// The same without kind and apiVersion.
void AppendUntyped(std::string& out, const schema::Kind& kind, std::string_view bytes);
std::string WireObject(const schema::Kind& kind, std::string_view bytes);
// The bytes of the metadata object inside the stored form.
std::string_view MetadataOf(const store::Entry& entry);

const ObjectMeta& MetaOf(const store::Entry& entry);
// The text that a field selector compares: strings as they are, numbers and booleans as written, ""
// when absent ("false" for the booleans that upstream prints so). The one name that is no path is
// "status.successful" of a Job, by which upstream means status.succeeded.
std::string SelectableValue(const json::Value& object, std::string_view field);

}  // namespace muster::apiserver
