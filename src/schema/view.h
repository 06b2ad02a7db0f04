// src/schema/view.h
//
// The base of the generated accessors (build/gen/schema/core_v1.h and others, made from
// schema/*.proto): typed, named reading of a json::Value without copying it.
//
//   core_v1::Pod pod(value);
//   for (core_v1::Container container : pod.spec().containers()) Use(container.image());
//   if (auto seconds = pod.spec(); seconds.has_active_deadline_seconds()) ...
//   std::string_view zone = pod.metadata().labels().Get("topology.kubernetes.io/zone");
//
// Names are the JSON names in snake_case (podIP: pod_ip, clusterIPs: cluster_ips); a C++ keyword
// has an underscore after it (namespace_, template_, operator_). Absent fields read as the zero of
// their type and never fail; has_x() tells absent from zero. Times are RFC 3339 text, bytes are
// base64 text, quantities and IntOrString are json::Value.
//
// Life cycle: a view holds a pointer into a tree that must outlive it, and so do the string_views
// it gives. Thread:     any (immutable).

#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "json/value.h"

namespace muster::schema {

// How a T is read from a JSON value; views are made from it.
template <class T>
decltype(auto) Read(const json::Value& value) {
  if constexpr (std::is_same_v<T, json::Value>) {
    return (value);
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    return value.AsString();
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return value.AsInt();
  } else if constexpr (std::is_same_v<T, double>) {
    return value.AsDouble();
  } else if constexpr (std::is_same_v<T, bool>) {
    return value.AsBool();
  } else {
    return T(value);
  }
}

// What reading a T gives: `const json::Value&` for json::Value, else T.
template <class T>
using ReadType = std::conditional_t<std::is_same_v<T, json::Value>, const json::Value&, T>;

// A list, read item by item.
template <class T>
class Range {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = ReadType<T>;

    explicit Iterator(const json::Value* at) : at_(at) {}
    ReadType<T> operator*() const { return Read<T>(*at_); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    bool operator==(const Iterator& other) const = default;

   private:
    const json::Value* at_;
  };

  explicit Range(const json::Value& list) : list_(&list) {}

  Iterator begin() const { return Iterator(list_->items().data()); }
  Iterator end() const { return Iterator(list_->items().data() + list_->items().size()); }
  size_t size() const { return list_->items().size(); }
  bool empty() const { return list_->items().empty(); }
  ReadType<T> operator[](size_t index) const {
    return Read<T>(list_->At(index));
  }  // null's T past the end

 private:
  const json::Value* list_;
};

// A map from strings, read entry by entry as pairs of key and T, in the order of the JSON object.
template <class T>
class Map {
 public:
  using Entry = std::pair<std::string_view, ReadType<T>>;

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Entry;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Entry;

    explicit Iterator(const json::Member* at) : at_(at) {}
    Entry operator*() const { return Entry(at_->first, Read<T>(at_->second)); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    bool operator==(const Iterator& other) const = default;

   private:
    const json::Member* at_;
  };

  explicit Map(const json::Value& object) : object_(&object) {}

  Iterator begin() const { return Iterator(object_->members().data()); }
  Iterator end() const { return Iterator(object_->members().data() + object_->members().size()); }
  size_t size() const { return object_->members().size(); }
  bool empty() const { return object_->members().empty(); }
  bool Has(std::string_view key) const { return object_->Has(key); }
  // The entry's value, or the zero of T.
  ReadType<T> Get(std::string_view key) const { return Read<T>((*object_)[key]); }
  // The entry's value, or `otherwise`.
  T Get(std::string_view key, T otherwise) const { return Has(key) ? T(Get(key)) : otherwise; }
  const json::Value& json() const { return *object_; }

 private:
  const json::Value* object_;
};

// The base of all generated classes.
class View {
 public:
  explicit View(const json::Value& value) : value_(&value) {}
  explicit View(json::Value&&) = delete;  // the tree must outlive the view

  // The tree behind the view; generated classes call it value() too, unless the API has a field of
  // that name.
  const json::Value& json() const { return *value_; }
  // Whether the object is there at all.
  explicit operator bool() const { return !value_->IsNull(); }

 protected:
  const json::Value& Get(std::string_view key) const { return (*value_)[key]; }
  bool Has(std::string_view key) const { return !(*value_)[key].IsNull(); }

 private:
  const json::Value* value_;
};

}  // namespace muster::schema
