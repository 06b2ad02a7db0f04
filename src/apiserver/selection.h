// src/apiserver/selection.h
//
// Selection: which objects of a collection a LIST, WATCH or DELETE of a collection means:
// namespace, label selector, field selector. Answered from what an Entry keeps parsed.
//
// Life cycle: an immutable value, shared with the thread that renders a LIST.
// Thread:     any.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/request_info.h"
#include "apiserver/stored_object.h"
#include "base/status.h"
#include "schema/field_selector.h"
#include "schema/kind.h"
#include "schema/label_selector.h"
#include "store/store.h"

namespace muster::apiserver {

class Selection {
 public:
  // From labelSelector and fieldSelector of the query. BadRequest in upstream's words when one
  // cannot be parsed or names a field that is not selectable.
  static Result<std::shared_ptr<const Selection>> Make(schema::KindPtr kind,
                                                       const RequestInfo& info);

  // Keys of the collection start with this.
  const std::string& prefix() const { return prefix_; }
  // Nothing but the prefix decides.
  bool everything() const { return labels_.empty() && fields_.empty() && !name_; }
  // `entry` must be of this kind; its key need not start with prefix().
  bool Matches(const store::Entry& entry) const;
  // One selectable field that must have one value, if the selector says so (an agent: its own
  // node's pods): watchers are found by it instead of being asked one by one.
  struct Route {
    size_t field = 0;  // index into kind.selectable_fields and ObjectMeta::fields
    std::string value;
  };
  const std::optional<Route>& route() const { return route_; }
  // metadata.name=x, if the selector says so: the collection has at most one object per namespace.
  const std::optional<std::string>& name() const { return name_; }

 private:
  schema::KindPtr kind_;
  std::string prefix_;
  schema::LabelSelector labels_;
  schema::FieldSelector fields_;
  std::optional<std::string> name_;
  std::optional<Route> route_;
};
using SelectionPtr = std::shared_ptr<const Selection>;

}  // namespace muster::apiserver
