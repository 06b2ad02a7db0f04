#include "json/patch.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "json/draft.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::json {
namespace {

// RFC 6901: "/a~1b/0" -> {"a/b", "0"}; nullopt if malformed.
std::optional<Tokens> ReadPointer(std::string_view pointer) {
  Tokens tokens;
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

const Value* Step(const Value& at, std::string_view token) {
  if (at.IsObject()) return at.Find(token);
  if (!at.IsArray()) return nullptr;
  const std::optional<size_t> index = ArrayIndex(token, at.size());
  return index ? &at.At(*index) : nullptr;
}

const Value* Walk(const Value& root, const Tokens& tokens) {
  const Value* at = &root;
  for (const std::string& token : tokens) {
    at = Step(*at, token);
    if (at == nullptr) return nullptr;
  }
  return at;
}

struct Operation {
  std::string op;
  std::string path_text, from_text;
  Tokens path, from;
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
  auto path = ReadPointer(operation.path_text);
  if (!path) return bad("\"path\" must be a JSON pointer such as \"/spec/replicas\"");
  operation.path = std::move(*path);
  if (moves) {
    operation.from_text = json["from"].Str();
    auto from = ReadPointer(operation.from_text);
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

bool IsPrefix(const Tokens& prefix, const Tokens& path) {
  return prefix.size() < path.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
}

constexpr std::string_view kMissing = "doc is missing path";

Status Test(Draft& draft, const Operation& operation) {
  const std::optional<Value> found = draft.Get(operation.path);
  // Upstream's patch library takes a missing place for null.
  if (found ? *found == operation.value : operation.value.IsNull()) return Status::Ok();
  return CannotApply(operation, operation.path_text, "testing value failed at");
}

// `copied`: how many bytes all copies so far have added. Copies of copies double the document each
// time.
Result<Draft::Node> Copy(Draft& draft, const Operation& operation, size_t& copied) {
  std::optional<Value> found = draft.Get(operation.from);
  if (!found) return CannotApply(operation, operation.from_text, kMissing);
  copied += Write(*found).size();
  if (copied > kMaxPatchCopiedBytes) {
    return Error(Reason::kInvalid,
                 "Unable to complete the copy, the accumulated size increase of copy is {}, "
                 "exceeding the limit {}",
                 copied, kMaxPatchCopiedBytes);
  }
  return Draft::Node(std::move(*found));
}

Result<Draft::Node> Take(Draft& draft, const Operation& operation, const Tokens& place,
                         const std::string& text) {
  std::optional<Draft::Node> taken = draft.Take(place);
  if (!taken) return CannotApply(operation, text, kMissing);
  return std::move(*taken);
}

Status ApplyOperation(Draft& draft, Operation& operation, size_t& copied) {
  const std::string& op = operation.op;
  if (op == "test") return Test(draft, operation);
  if (op == "remove") {
    const Result<Draft::Node> taken = Take(draft, operation, operation.path, operation.path_text);
    return taken ? Status::Ok() : taken.error();
  }
  Draft::Node node(std::move(operation.value));
  if (op == "copy") {
    ASSIGN_OR_RETURN(node, Copy(draft, operation, copied));
  } else if (op == "move") {
    if (IsPrefix(operation.from, operation.path))
      return CannotApply(operation, operation.path_text, "a value cannot move into itself at");
    ASSIGN_OR_RETURN(node, Take(draft, operation, operation.from, operation.from_text));
  }
  const bool no_deeper = op == "move" && operation.path.size() <= operation.from.size();
  if (!no_deeper && operation.path.size() + draft.DepthOf(node) > kMaxDepth) {
    return CannotApply(operation, operation.path_text,
                       fmt::format("more than {} levels of nesting at", kMaxDepth));
  }
  const auto change = op == "replace" ? Draft::Change::kReplace : Draft::Change::kAdd;
  if (draft.Put(operation.path, std::move(node), change)) return Status::Ok();
  return CannotApply(operation, operation.path_text, kMissing);
}

}  // namespace

const Value* FindPointer(const Value& root, std::string_view pointer) {
  const auto tokens = ReadPointer(pointer);
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
  Draft draft(root);
  size_t copied = 0;
  for (Operation& operation : operations) {
    RETURN_IF_ERROR(ApplyOperation(draft, operation, copied));
    if (draft.steps() > kMaxPatchSteps) {
      return Error(Reason::kRequestEntityTooLarge,
                   "the JSON patch moves or compares more than {} list items and members: send "
                   "fewer operations, or replace a whole list or object in one",
                   kMaxPatchSteps);
    }
  }
  return *draft.Get({});
}

Value ApplyMergePatch(const Value& target, const Value& patch) {
  if (!patch.IsObject()) return patch;
  MemberTable<Value> merged(target.members());
  for (const auto& [key, change] : patch.members()) {
    if (change.IsNull()) {
      merged.Take(key);
    } else {
      const Value* old = merged.Find(key);
      merged.Put(key, ApplyMergePatch(old == nullptr ? Value() : *old, change));
    }
  }
  return TakeObject(merged);
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
