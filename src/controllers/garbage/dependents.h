// src/controllers/garbage/dependents.h
//
// Who depends on whom: an index of owner UID -> the objects that name it in their ownerReferences,
// over all kinds, kept from informer events.
//
// Thread:     the loop thread.

#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client/informer.h"
#include "json/value.h"

namespace muster::controllers {

struct ObjectRef {
  client::Resource resource;
  client::ObjectKey key;
  auto operator<=>(const ObjectRef&) const = default;
  bool operator==(const ObjectRef&) const = default;
};

// An ObjectRef as the key of a controller, and back.
client::ObjectKey ToKey(const ObjectRef& ref);
ObjectRef FromKey(const client::ObjectKey& key);

class Dependents {
 public:
  void Change(const ObjectRef& ref, const json::Value& before, const json::Value& after);
  // Sorted; empty if nobody depends on it.
  std::vector<ObjectRef> Of(std::string_view owner_uid) const;
  // Everything that has an owner.
  std::vector<ObjectRef> All() const;

 private:
  std::map<std::string, std::set<ObjectRef>, std::less<>> by_owner_;
};

}  // namespace muster::controllers
