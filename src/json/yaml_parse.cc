#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "base/strings.h"
#include "json/json_scanner.h"
#include "json/parse.h"
#include "json/utf8.h"
#include "json/yaml_scalar.h"

namespace muster::json {
namespace {

// Carries a refusal out of yaml-cpp's parser; never leaves this file.
struct Refusal {
  Status status;
};

[[noreturn]] void Refuse(const YAML::Mark& mark, std::string_view what) {
  throw Refusal{Error(Reason::kBadRequest, "invalid YAML at line {} column {}: {}", mark.line + 1,
                      mark.column + 1, what)};
}

// Builds one document from yaml-cpp's events.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(ParseNotes* notes, size_t& nodes) : notes_(notes), nodes_(nodes) {}

  std::optional<Value> TakeDocument() { return std::exchange(document_, std::nullopt); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    // yaml-cpp makes empty documents for ever where a stray "}" or "]" stands.
    if (mark.pos <= started_at_) Refuse(mark, "a character that starts no value");
    started_at_ = mark.pos;
    document_.reset();
    anchors_.clear();
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Done(mark, anchor, Value(), 1);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) Refuse(mark, "an alias stands inside the value of its own anchor");
    const auto [value, nodes] = found->second;
    Done(mark, YAML::NullAnchor, value, nodes);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    plain_merge_ = text == "<<" && tag != "!";
    Done(mark, anchor, Scalar(mark, tag, IsValidUtf8(text) ? text : WidenLatin1(text)), 1);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, anchor, false);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, anchor, true);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    bool map = false;
    YAML::Mark mark;
    YAML::anchor_t anchor = YAML::NullAnchor;
    size_t nodes = 1;
    std::optional<std::string> key;  // read, its value not yet
    Object members;
    Array items;
    std::vector<Value> merged;  // values of "<<"
    bool merge_key = false;     // the key just read is a plain "<<"
  };

  // yaml-cpp 0.7 decodes the escapes \N and \_ to the single bytes 0x85 and 0xA0 rather than to
  // their characters.
  static std::string WidenLatin1(std::string_view text) {
    std::string wide;
    while (!text.empty()) {
      const DecodedRune decoded = DecodeRune(text);
      AppendRune(wide, decoded.valid ? decoded.rune : static_cast<uint8_t>(text[0]));
      text.remove_prefix(decoded.size);
    }
    return wide;
  }

  Value Scalar(const YAML::Mark& mark, const std::string& tag, const std::string& text) {
    if (tag == "?" || tag.empty()) return ResolvePlainScalar(text);  // plain
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return Value(text);
    if (tag == "tag:yaml.org,2002:binary") {
      const std::optional<std::string> bytes =
          Base64Decode(ReplaceAll(ReplaceAll(text, "\n", ""), " ", ""));
      if (!bytes) Refuse(mark, "!!binary without valid base64");
      return Value(ReplaceInvalidUtf8(*bytes));
    }
    Value value = ResolvePlainScalar(text);
    const bool right = (tag == "tag:yaml.org,2002:int" && value.Int()) ||
                       (tag == "tag:yaml.org,2002:float" && value.IsNumber()) ||
                       (tag == "tag:yaml.org,2002:bool" && value.IsBool()) ||
                       (tag == "tag:yaml.org,2002:null" && value.IsNull());
    if (right) return value;
    if (tag.starts_with("tag:yaml.org,2002:"))
      Refuse(mark, fmt::format("cannot read {:.40} as {}", text, tag));
    return Value(text);
  }

  void Open(const YAML::Mark& mark, YAML::anchor_t anchor, bool map) {
    if (frames_.size() >= kMaxDepth)
      Refuse(mark, fmt::format("more than {} levels of nesting", kMaxDepth));
    if (!frames_.empty() && frames_.back().map && !frames_.back().key)
      Refuse(mark, "a key must be a scalar");
    frames_.emplace_back();
    frames_.back().map = map;
    frames_.back().mark = mark;
    frames_.back().anchor = anchor;
  }

  void Close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    if (!frame.map)
      return Done(frame.mark, frame.anchor, Value(std::move(frame.items)), frame.nodes);
    Deduplicate(frame.members, 0, Path(), notes_);
    Value value(std::move(frame.members));
    for (const Value& merged :
         frame.merged) {  // what is written in the map itself wins, then the earlier source
      for (const Member& member : merged.members()) {
        if (!value.Has(member.first)) value = std::move(value).Set(member.first, member.second);
      }
    }
    Done(frame.mark, frame.anchor, std::move(value), frame.nodes);
  }

  KeyPath Path() const {
    KeyPath path;
    for (const Frame& frame : frames_) {
      if (frame.map) {
        if (frame.key) path.Push(&*frame.key);
      } else {
        path.Push(frame.items.size());
      }
    }
    return path;
  }

  static std::string KeyOf(const YAML::Mark& mark, const Value& value) {
    if (value.IsString()) return value.Str();
    if (value.IsNumber()) return std::string(value.NumberToken());
    if (value.IsBool()) return value.AsBool() ? "true" : "false";
    Refuse(mark, value.IsNull() ? "null cannot be a key" : "a key must be a scalar");
  }

  void Merge(const YAML::Mark& mark, Frame& frame, const Value& value) {
    const bool list = value.IsArray();
    for (size_t i = 0; i < (list ? value.size() : 1); ++i) {
      const Value& source = list ? value.At(i) : value;
      if (!source.IsObject())
        Refuse(mark, "map merge requires map or sequence of maps as the value");
      frame.merged.push_back(source);
    }
  }

  // A whole node is read: it becomes the document, a key, a member or an item.
  void Done(const YAML::Mark& mark, YAML::anchor_t anchor, Value value, size_t nodes) {
    nodes_ += nodes;
    if (nodes_ > kMaxYamlNodes)
      Refuse(mark,
             fmt::format("document contains excessive aliasing (over {} nodes)", kMaxYamlNodes));
    if (anchor != YAML::NullAnchor) anchors_[anchor] = {value, nodes};
    if (frames_.empty()) {
      document_ = std::move(value);
      return;
    }
    Frame& frame = frames_.back();
    frame.nodes += nodes;
    if (!frame.map) {
      frame.items.push_back(std::move(value));
    } else if (!frame.key) {
      frame.key = KeyOf(mark, value);
      frame.merge_key = std::exchange(plain_merge_, false) && *frame.key == "<<";
    } else {
      if (frame.merge_key) {
        Merge(mark, frame, value);
      } else {
        frame.members.emplace_back(std::move(*frame.key), std::move(value));
      }
      frame.key.reset();
    }
  }

  ParseNotes* const notes_;
  size_t& nodes_;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, std::pair<Value, size_t>> anchors_;
  std::optional<Value> document_;
  int started_at_ = -1;       // where the last document began
  bool plain_merge_ = false;  // the scalar just read is an unquoted "<<"
};

// A stream of JSON documents, as `kubectl create -f` also takes it; nullopt if the text is not
// that.
std::optional<std::vector<Value>> JsonDocuments(std::string_view text, ParseNotes* notes) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{' || !IsValidUtf8(text))
    return std::nullopt;
  ParseNotes found;
  JsonScanner scanner(text, &found, kMaxDepth);
  std::vector<Value> documents;
  while (!scanner.AtEnd()) {
    Result<Value> document = scanner.Next();
    if (!document) return std::nullopt;
    if (!document->IsNull()) documents.push_back(std::move(*document));
  }
  if (notes != nullptr) {
    notes->duplicate_keys.insert(notes->duplicate_keys.end(), found.duplicate_keys.begin(),
                                 found.duplicate_keys.end());
  }
  return documents;
}

}  // namespace

Result<std::vector<Value>> ParseYaml(std::string_view text, ParseNotes* notes) {
  if (auto documents = JsonDocuments(text, notes)) return std::move(*documents);
  std::vector<Value> documents;
  size_t nodes = 0;
  try {
    std::istringstream stream(IsValidUtf8(text) ? std::string(text) : ReplaceInvalidUtf8(text));
    YAML::Parser parser(stream);
    TreeBuilder builder(notes, nodes);
    while (parser.HandleNextDocument(builder)) {
      std::optional<Value> document = builder.TakeDocument();
      if (document && !document->IsNull()) documents.push_back(std::move(*document));
    }
  } catch (const Refusal& refusal) {
    return Error(refusal.status);
  } catch (const YAML::DeepRecursion& e) {  // its own limit; it says no more than "bad file"
    return Error(Reason::kBadRequest,
                 "invalid YAML at line {} column {}: more than {} levels of nesting",
                 e.mark.line + 1, e.mark.column + 1, e.depth());
  } catch (const YAML::Exception& e) {
    return Error(Reason::kBadRequest, "invalid YAML at line {} column {}: {}", e.mark.line + 1,
                 e.mark.column + 1, e.msg);
  }
  return documents;
}

}  // namespace muster::json
