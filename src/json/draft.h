// src/json/draft.h
//
// Draft: a JSON tree that many edits change before it is a Value again. What an edit touches is
// taken apart once; after that an edit costs O(depth * log members), and a list shifts 4 bytes for
// each item behind the place. Everything else stays shared with the original.
//
//   Draft draft(root);
//   draft.Put({"spec", "replicas"}, Draft::Node{json::Value(3)}, Draft::Change::kAdd);
//   Value edited = draft.Get({}).value();
//
// Life cycle: for one patch.
// Thread:     any one.
// Invariants: places are as in RFC 6901 and 6902: "-" is behind the last item, an index has no
//             leading zero. steps() grows with the work done, so that its user can set a limit.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "json/member_table.h"
#include "json/value.h"

namespace muster::json {

using Tokens = std::vector<std::string>;

// An array index below `bound`, without leading zeros.
std::optional<size_t> ArrayIndex(std::string_view token, size_t bound);

class Draft {
 public:
  struct Parts;
  // A part of the tree: a value, or taken apart.
  struct Node {
    Node();
    explicit Node(Value v);
    Node(Node&& other) noexcept;
    Node& operator=(Node&& other) noexcept;
    ~Node();
    Value value;
    std::unique_ptr<Parts> parts;  // then `value` is null
  };
  // kReplace is of an item of an array that there is; a member of an object may be new in both.
  enum class Change { kAdd, kReplace };

  explicit Draft(Value root) : root_(std::move(root)) {}

  // What is at a place; nullopt if that does not exist.
  std::optional<Value> Get(const Tokens& place);
  // The same, and it is gone from the tree. The root becomes null.
  std::optional<Node> Take(const Tokens& place);
  // False if there is no such place.
  bool Put(const Tokens& place, Node node, Change change);

  // Levels of nesting; 0 for a scalar.
  size_t DepthOf(const Node& node);

  // About how many values were copied or looked at. 32 shifted list items count as one.
  uint64_t steps() const { return steps_; }

 private:
  Node* Find(const Tokens& place, size_t depth);
  Node* ChildOf(Node& node, const std::string& token);
  Parts& TakeApart(Node& node);
  Value Whole(const Node& node);

  Node root_;
  uint64_t steps_ = 0;
};

struct Draft::Parts {
  bool is_object = false;
  MemberTable<Node> members;
  std::vector<Node> items;      // in any order
  std::vector<uint32_t> order;  // positions in `items`
};

}  // namespace muster::json
