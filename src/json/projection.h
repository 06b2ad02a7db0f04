// src/json/projection.h
//
// Fields: the parts of an object that somebody reads. Project() makes the small tree that holds
// these parts and nothing else. SharedValues: equal strings, arrays and objects of many such trees
// become one.
//
// Thread: Fields any (a value); SharedValues one owner, the trees it gives any.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace muster::json {

// Places for values to share: a direct-mapped table, so that what nobody uses any more is forgotten
// by and by, and its memory is bounded.
inline constexpr size_t kMaxSharedValues = 4096;

class Fields {
 public:
  Fields() = default;  // none
  // Each path names a member and everything below it; a path goes through the elements of an array:
  // {{"metadata", "labels"}, {"spec", "containers", "name"}}.
  Fields(std::initializer_list<std::initializer_list<std::string_view>> paths);
  static Fields Whole();

  Fields& Add(const Fields& other);
  bool Covers(const Fields& other) const;

  // The parts of `value` that are named. An object in between stays, even when nothing in it is; a
  // value that is no object where a path goes on stays as it is.
  Value Project(const Value& value) const;

 private:
  friend class SharedValues;

  bool whole_ = false;
  std::map<std::string, Fields, std::less<>> members_;  // empty when whole
};

class SharedValues {
 public:
  // fields.Project(object), of which strings, arrays and objects that equal earlier ones share
  // their storage with them. The object itself and its metadata have no equals and are left out.
  Value Project(const Value& object, const Fields& fields);

 private:
  struct Slot {
    uint64_t hash = 0;
    Value value;
  };
  struct Hashed {
    Value value;
    uint64_t hash = 0;
  };

  Hashed Keep(const Value& value, const Fields& fields, bool share);
  Hashed KeepArray(const Value& value, const Fields& fields);
  Hashed KeepObject(const Value& value, const Fields& fields);
  void Share(Hashed& kept);

  std::vector<Slot> slots_;  // made with the first value
};

}  // namespace muster::json
