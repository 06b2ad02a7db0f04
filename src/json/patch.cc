#include "json/patch.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "json/parse.h"
#include "json/write.h"

namespace muster::json {
namespace {

// RFC 6901: "/a~1b/0" -> {"a/b", "0"}; nullopt if malformed.
std::optional<std::vector<std::string>> Tokens(std::string_view pointer) {
  std::vector<std::string> tokens;
  if (pointer.empty()) return tokens;
  if (pointer[0] != '/') return std::nullopt;
  for (size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      tokens.emplace_back();
    } else if (pointer[i] != '~') {
      tokens.back().push_back(pointer[i]);
    } else if (i + 1 < pointer.size() && (pointer[i + 1] == '0' || pointer[i + 1] == '1')) {
      tokens.back().push_back(pointer[++i] == '0' ? '~' : '/');
    } else {
      return std::nullopt;
    }
  }
  return tokens;
}

// An array index below `bound`, without leading zeros.
std::optional<size_t> Index(std::string_view token, size_t bound) {
  if (token.empty() || (token.size() > 1 && token[0] == '0')) return std::nullopt;
  size_t index = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  if (error != std::errc() || end != token.data() + token.size() || index >= bound)
    return std::nullopt;
  return index;
}

const Value* Step(const Value& at, std::string_view token) {
  if (at.IsObject()) return at.Find(token);
  if (!at.IsArray()) return nullptr;
  const std::optional<size_t> index = Index(token, at.size());
  return index ? &at.At(*index) : nullptr;
}

const Value* Walk(const Value& root, const std::vector<std::string>& tokens) {
  const Value* at = &root;
  for (const std::string& token : tokens) {
    at = Step(*at, token);
    if (at == nullptr) return nullptr;
  }
  return at;
}

enum class Change { kAdd, kReplace, kRemove };

// The tree with one change at tokens[depth...]; nullopt if the place does not exist.
std::optional<Value> Apply(const Value& at, const std::vector<std::string>& tokens, size_t depth,
                           Change change, const Value& value) {
  if (depth == tokens.size()) return value;
  const std::string& token = tokens[depth];
  const bool last = depth + 1 == tokens.size();
  if (!last) {
    const Value* child = Step(at, token);
    if (child == nullptr) return std::nullopt;
    std::optional<Value> changed = Apply(*child, tokens, depth + 1, change, value);
    if (!changed) return std::nullopt;
    return at.IsObject() ? at.Set(token, std::move(*changed))
                         : at.SetAt(*Index(token, at.size()), std::move(*changed));
  }
  if (at.IsObject()) {
    if (change != Change::kAdd && !at.Has(token)) return std::nullopt;
    return change == Change::kRemove ? at.Remove(token) : at.Set(token, value);
  }
  if (!at.IsArray()) return std::nullopt;
  if (change == Change::kAdd && token == "-") return at.Append(value);
  const std::optional<size_t> index = Index(token, at.size() + (change == Change::kAdd ? 1 : 0));
  if (!index) return std::nullopt;
  if (change == Change::kReplace) return at.SetAt(*index, value);
  Array items = at.items();
  const auto place = items.begin() + static_cast<ptrdiff_t>(*index);
  if (change == Change::kAdd) {
    items.insert(place, value);
  } else {
    items.erase(place);
  }
  return Value(std::move(items));
}

struct Operation {
  std::string op;
  std::string path_text, from_text;
  std::vector<std::string> path, from;
  Value value;
};

Result<Operation> ReadOperation(const Value& json, size_t number) {
  const auto bad = [&](std::string_view what) {
    return Error(Reason::kBadRequest, "JSON patch operation {}: {}", number, what);
  };
  if (!json.IsObject()) return bad("must be an object");
  Operation operation;
  operation.op = json["op"].Str();
  const bool moves = operation.op == "move" || operation.op == "copy";
  const bool has_value =
      operation.op == "add" || operation.op == "replace" || operation.op == "test";
  if (!moves && !has_value && operation.op != "remove") {
    return bad("\"op\" must be one of add, remove, replace, move, copy, test");
  }
  if (!json["path"].IsString()) return bad("\"path\" must be a string");
  operation.path_text = json["path"].Str();
  auto path = Tokens(operation.path_text);
  if (!path) return bad("\"path\" must be a JSON pointer such as \"/spec/replicas\"");
  operation.path = std::move(*path);
  if (moves) {
    operation.from_text = json["from"].Str();
    auto from = Tokens(operation.from_text);
    if (!json["from"].IsString() || !from) return bad("\"from\" must be a JSON pointer");
    operation.from = std::move(*from);
  }
  if (has_value) {
    if (!json.Has("value")) return bad("\"value\" is missing");
    operation.value = json["value"];
  }
  return operation;
}

ErrorStatus CannotApply(const Operation& operation, std::string_view path, std::string_view why) {
  return Error(Reason::kInvalid,
               "the server rejected our request due to an error in our request: {} operation does "
               "not apply: {} \"{}\"",
               operation.op, why, path);
}

bool IsPrefix(const std::vector<std::string>& prefix, const std::vector<std::string>& path) {
  return prefix.size() < path.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
}

// Levels of nesting; 0 for a scalar. REQUIRES: at most about kMaxDepth of them.
size_t DepthOf(const Value& value) {
  size_t deepest = 0;
  for (const Value& item : value.items()) deepest = std::max(deepest, DepthOf(item));
  for (const auto& [key, member] : value.members()) deepest = std::max(deepest, DepthOf(member));
  return value.IsArray() || value.IsObject() ? deepest + 1 : 0;
}

// `copied`: how many bytes all copies so far have added.
Result<Value> ApplyOperation(const Value& root, const Operation& operation, size_t& copied) {
  constexpr std::string_view kMissing = "doc is missing path";
  const std::string& op = operation.op;
  Value value = operation.value;
  Value document = root;
  if (op == "test") {
    const Value* found = Walk(root, operation.path);
    // Upstream's patch library takes a missing place for null.
    if (found == nullptr ? value.IsNull() : *found == value) return root;
    return CannotApply(operation, operation.path_text, "testing value failed at");
  }
  if (op == "move" || op == "copy") {
    const Value* found = Walk(root, operation.from);
    if (found == nullptr) return CannotApply(operation, operation.from_text, kMissing);
    if (op == "move" && IsPrefix(operation.from, operation.path)) {
      return CannotApply(operation, operation.path_text, "a value cannot move into itself at");
    }
    value = *found;
    if (op == "copy") {
      // Copies of copies double the document each time.
      copied += Write(value).size();
      if (copied > kMaxPatchCopiedBytes) {
        return Error(Reason::kInvalid,
                     "Unable to complete the copy, the accumulated size increase of copy is {}, "
                     "exceeding the limit {}",
                     copied, kMaxPatchCopiedBytes);
      }
    }
    if (op == "move")
      document = Apply(root, operation.from, 0, Change::kRemove, Value()).value_or(Value());
  }
  const Change change = op == "remove"    ? Change::kRemove
                        : op == "replace" ? Change::kReplace
                                          : Change::kAdd;
  if (change != Change::kRemove && operation.path.size() + DepthOf(value) > kMaxDepth) {
    return CannotApply(operation, operation.path_text,
                       fmt::format("more than {} levels of nesting at", kMaxDepth));
  }
  std::optional<Value> changed = Apply(document, operation.path, 0, change, value);
  if (!changed) return CannotApply(operation, operation.path_text, kMissing);
  return std::move(*changed);
}

}  // namespace

const Value* FindPointer(const Value& root, std::string_view pointer) {
  const auto tokens = Tokens(pointer);
  return tokens ? Walk(root, *tokens) : nullptr;
}

Result<Value> ApplyJsonPatch(const Value& root, const Value& patch) {
  if (!patch.IsArray())
    return Error(Reason::kBadRequest, "a JSON patch must be an array of operations");
  if (patch.size() > kMaxPatchOperations) {
    return Error(Reason::kRequestEntityTooLarge,
                 "The allowed maximum operations in a JSON patch is {}, got {}",
                 kMaxPatchOperations, patch.size());
  }
  std::vector<Operation> operations;
  for (size_t i = 0; i < patch.size(); ++i) {
    ASSIGN_OR_RETURN(Operation operation, ReadOperation(patch.At(i), i));
    operations.push_back(std::move(operation));
  }
  Value document = root;
  size_t copied = 0;
  for (const Operation& operation : operations) {
    ASSIGN_OR_RETURN(document, ApplyOperation(document, operation, copied));
  }
  return document;
}

Value ApplyMergePatch(const Value& target, const Value& patch) {
  if (!patch.IsObject()) return patch;
  Value merged = target.IsObject() ? target : Obj();
  for (const auto& [key, change] : patch.members()) {
    if (change.IsNull()) {
      merged = merged.Remove(key);
    } else {
      const Value old = merged[key];
      merged = std::move(merged).Set(key, ApplyMergePatch(old, change));
    }
  }
  return merged;
}

Value CreateMergePatch(const Value& from, const Value& to) {
  if (!from.IsObject() || !to.IsObject()) return to;
  Object patch;
  for (const auto& [key, old] : from.members()) {
    if (!to.Has(key)) patch.emplace_back(key, Value());
  }
  for (const auto& [key, value] : to.members()) {
    const Value* old = from.Find(key);
    if (old != nullptr && *old == value) continue;
    if (old != nullptr && old->IsObject() && value.IsObject()) {
      patch.emplace_back(key, CreateMergePatch(*old, value));
    } else {
      patch.emplace_back(key, value);
    }
  }
  return Value(std::move(patch));
}

}  // namespace muster::json
