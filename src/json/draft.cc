#include "json/draft.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace muster::json {
namespace {

constexpr uint64_t kShiftsPerStep = 32;

}  // namespace

std::optional<size_t> ArrayIndex(std::string_view token, size_t bound) {
  if (token.empty() || (token.size() > 1 && token[0] == '0')) return std::nullopt;
  size_t index = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  if (error != std::errc() || end != token.data() + token.size() || index >= bound)
    return std::nullopt;
  return index;
}

Draft::Node::Node() = default;
Draft::Node::Node(Value v) : value(std::move(v)) {}
Draft::Node::Node(Node&& other) noexcept = default;
Draft::Node& Draft::Node::operator=(Node&& other) noexcept = default;
Draft::Node::~Node() = default;

Draft::Parts& Draft::TakeApart(Node& node) {
  if (node.parts) return *node.parts;
  const Value whole = std::exchange(node.value, Value());
  steps_ += whole.size();
  node.parts = std::make_unique<Parts>();
  Parts& parts = *node.parts;
  parts.is_object = whole.IsObject();
  if (parts.is_object) {
    parts.members = MemberTable<Node>(whole.members());
    return parts;
  }
  parts.items.reserve(whole.size() + 1);
  parts.order.reserve(whole.size() + 1);
  for (const Value& item : whole.items()) {
    parts.order.push_back(static_cast<uint32_t>(parts.items.size()));
    parts.items.emplace_back(item);
  }
  return parts;
}

Value Draft::Whole(const Node& node) {
  if (!node.parts) return node.value;
  Parts& parts = *node.parts;
  steps_ += parts.members.size() + parts.order.size();
  if (parts.is_object) {
    Object members;
    members.reserve(parts.members.size());
    parts.members.ForEach([&](const std::string& key, const Node& member) {
      members.emplace_back(key, Whole(member));
    });
    return Value(std::move(members));
  }
  Array items;
  items.reserve(parts.order.size());
  for (const uint32_t position : parts.order) items.push_back(Whole(parts.items[position]));
  return Value(std::move(items));
}

// Scalars have no children; they are not taken apart.
Draft::Node* Draft::ChildOf(Node& node, const std::string& token) {
  if (!node.parts && !node.value.IsObject() && !node.value.IsArray()) return nullptr;
  Parts& parts = TakeApart(node);
  if (parts.is_object) return parts.members.Find(token);
  const std::optional<size_t> index = ArrayIndex(token, parts.order.size());
  return index ? &parts.items[parts.order[*index]] : nullptr;
}

// The node at the first `depth` tokens.
Draft::Node* Draft::Find(const Tokens& place, size_t depth) {
  Node* at = &root_;
  for (size_t i = 0; i < depth && at != nullptr; ++i) at = ChildOf(*at, place[i]);
  return at;
}

std::optional<Value> Draft::Get(const Tokens& place) {
  const Node* found = Find(place, place.size());
  if (found == nullptr) return std::nullopt;
  return Whole(*found);
}

std::optional<Draft::Node> Draft::Take(const Tokens& place) {
  if (place.empty()) return std::exchange(root_, Node());
  Node* parent = Find(place, place.size() - 1);
  if (parent == nullptr || ChildOf(*parent, place.back()) == nullptr) return std::nullopt;
  Parts& parts = *parent->parts;
  if (parts.is_object) return parts.members.Take(place.back());
  const size_t index = *ArrayIndex(place.back(), parts.order.size());
  steps_ += (parts.order.size() - index) / kShiftsPerStep;
  const auto position = parts.order.begin() + static_cast<ptrdiff_t>(index);
  Node taken = std::move(parts.items[*position]);
  parts.order.erase(position);
  return taken;
}

bool Draft::Put(const Tokens& place, Node node, Change change) {
  if (place.empty()) {
    root_ = std::move(node);
    return true;
  }
  Node* parent = Find(place, place.size() - 1);
  if (parent == nullptr) return false;
  Node* child = ChildOf(*parent, place.back());
  if (!parent->parts) return false;
  Parts& parts = *parent->parts;
  if (child == nullptr && change == Change::kReplace && !parts.is_object) return false;
  if (child != nullptr && (parts.is_object || change == Change::kReplace)) {
    *child = std::move(node);
    return true;
  }
  if (parts.is_object) {
    parts.members.Put(place.back(), std::move(node));
    return true;
  }
  const size_t size = parts.order.size();
  const std::optional<size_t> index =
      place.back() == "-" ? size : ArrayIndex(place.back(), size + 1);
  if (!index) return false;
  steps_ += (size - *index) / kShiftsPerStep;
  parts.order.insert(parts.order.begin() + static_cast<ptrdiff_t>(*index),
                     static_cast<uint32_t>(parts.items.size()));
  parts.items.push_back(std::move(node));
  return true;
}

size_t Draft::DepthOf(const Node& node) {
  ++steps_;
  size_t deepest = 0;
  const auto look = [&](const Node& child) { deepest = std::max(deepest, DepthOf(child)); };
  if (node.parts) {
    node.parts->members.ForEach([&](const std::string&, const Node& member) { look(member); });
    for (const uint32_t position : node.parts->order) look(node.parts->items[position]);
    return deepest + 1;
  }
  if (!node.value.IsArray() && !node.value.IsObject()) return 0;
  for (const Value& item : node.value.items()) look(Node(item));
  for (const auto& [key, member] : node.value.members()) look(Node(member));
  return deepest + 1;
}

}  // namespace muster::json
