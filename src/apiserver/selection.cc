#include "apiserver/selection.h"

#include <algorithm>

#include "json/parse.h"

namespace muster::apiserver {
namespace {

// Custom kinds have none: their entries may have been loaded before their definition was known.
std::optional<Selection::Route> RouteOf(const schema::Kind& kind,
                                        const schema::FieldSelector& selector) {
  if (kind.custom) return std::nullopt;
  for (const schema::FieldTerm& term : selector.terms()) {
    const auto field = std::ranges::find(kind.selectable_fields, term.field);
    if (term.negated || field == kind.selectable_fields.end()) continue;
    return Selection::Route{static_cast<size_t>(field - kind.selectable_fields.begin()),
                            term.value};
  }
  return std::nullopt;
}

}  // namespace

Result<std::shared_ptr<const Selection>> Selection::Make(schema::KindPtr kind,
                                                         const RequestInfo& info) {
  auto selection = std::make_shared<Selection>();
  selection->prefix_ = CollectionPrefix(*kind, info.ns);
  ASSIGN_OR_RETURN(selection->labels_,
                   schema::LabelSelector::Parse(info.query.Get("labelSelector")));
  ASSIGN_OR_RETURN(selection->fields_,
                   schema::FieldSelector::Parse(info.query.Get("fieldSelector")));
  RETURN_IF_ERROR(selection->fields_.CheckSelectable(*kind));
  for (const schema::FieldTerm& term : selection->fields_.terms()) {
    if (term.field == "metadata.name" && !term.negated) selection->name_ = term.value;
  }
  selection->route_ = RouteOf(*kind, selection->fields_);
  // A collection URL may name its one object: /pods/x?watch=true.
  if (!info.name.empty()) selection->name_ = info.name;
  // Then only its key has to be looked at (and those that begin with it).
  if (selection->name_ && (!kind->namespaced || !info.ns.empty())) {
    selection->prefix_ += *selection->name_;
  }
  selection->kind_ = std::move(kind);
  return selection;
}

bool Selection::Matches(const store::Entry& entry) const {
  if (name_ && ParseKey(entry.key).name != *name_) return false;
  const ObjectMeta& meta = MetaOf(entry);
  const bool labels_match =
      labels_.empty() || labels_.MatchesBy([&](std::string_view key) { return meta.Label(key); });
  if (!labels_match || fields_.empty()) return labels_match;

  // Kept with the entry unless it was loaded before its definition was known: then the value says.
  PackedTexts parsed;
  const PackedTexts* values = &meta.fields;
  if (values->size() != kind_->selectable_fields.size()) {
    const json::Value object = DecodeStored(*kind_, *entry.value);
    for (const std::string& field : kind_->selectable_fields)
      parsed.Add(SelectableValue(object, field));
    values = &parsed;
  }
  return fields_.MatchesBy([&](std::string_view field) -> std::string_view {
    if (field == "metadata.name") return ParseKey(entry.key).name;
    if (field == "metadata.namespace") return ParseKey(entry.key).ns;
    for (size_t i = 0; i < kind_->selectable_fields.size(); ++i) {
      if (kind_->selectable_fields[i] == field) return (*values)[i];
    }
    return {};
  });
}

}  // namespace muster::apiserver
