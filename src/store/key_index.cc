#include "store/key_index.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster::store {

namespace {

struct KeyLess {
  bool operator()(const EntryPtr& entry, std::string_view key) const { return entry->key < key; }
  bool operator()(std::string_view key, const EntryPtr& entry) const { return key < entry->key; }
};

}  // namespace

std::string PrefixEnd(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xFF) end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

void KeyIndex::Cursor::Next() {
  if (++slot_ < index_->chunks_[chunk_].size()) return;
  ++chunk_;
  slot_ = 0;
}

size_t KeyIndex::ChunkOf(std::string_view key) const {
  // The last chunk whose first key is not greater.
  const auto after = std::upper_bound(
      chunks_.begin(), chunks_.end(), key,
      [](std::string_view k, const Chunk& chunk) { return k < chunk.front()->key; });
  return after == chunks_.begin() ? 0 : static_cast<size_t>(std::prev(after) - chunks_.begin());
}

KeyIndex::Cursor KeyIndex::AtLeast(std::string_view key) const {
  if (chunks_.empty()) return {*this, 0, 0};
  size_t chunk = ChunkOf(key);
  const Chunk& entries = chunks_[chunk];
  size_t slot = static_cast<size_t>(
      std::lower_bound(entries.begin(), entries.end(), key, KeyLess()) - entries.begin());
  if (slot == entries.size()) {
    ++chunk;
    slot = 0;
  }
  return {*this, chunk, slot};
}

KeyIndex::Cursor KeyIndex::After(std::string_view key) const {
  Cursor cursor = AtLeast(key);
  if (!cursor.AtEnd() && (*cursor)->key == key) cursor.Next();
  return cursor;
}

EntryPtr KeyIndex::Find(std::string_view key) const {
  const Cursor cursor = AtLeast(key);
  return !cursor.AtEnd() && (*cursor)->key == key ? *cursor : nullptr;
}

size_t KeyIndex::Rank(std::string_view key) const {
  const Cursor cursor = AtLeast(key);
  size_t rank = cursor.slot_;
  for (size_t i = 0; i < cursor.chunk_; ++i) rank += chunks_[i].size();
  return rank;
}

size_t KeyIndex::Count(std::string_view begin, std::string_view end) const {
  const size_t last = end.empty() ? size_ : Rank(end);
  const size_t first = Rank(begin);
  return last > first ? last - first : 0;
}

EntryPtr KeyIndex::Set(EntryPtr entry) {
  if (chunks_.empty()) chunks_.emplace_back();
  const size_t at = chunks_.front().empty() ? 0 : ChunkOf(entry->key);
  Chunk& chunk = chunks_[at];
  const auto place =
      std::lower_bound(chunk.begin(), chunk.end(), std::string_view(entry->key), KeyLess());
  if (place != chunk.end() && (*place)->key == entry->key)
    return std::exchange(*place, std::move(entry));
  chunk.insert(place, std::move(entry));
  ++size_;
  if (chunk.size() > kChunkEntries) Split(at);
  return nullptr;
}

void KeyIndex::Split(size_t at) {
  Chunk& full = chunks_[at];
  // Keys that arrive in order leave full chunks behind, not half-empty ones.
  const size_t keep = at + 1 == chunks_.size() ? kChunkEntries : kChunkEntries / 2;
  Chunk rest(std::make_move_iterator(full.begin() + static_cast<std::ptrdiff_t>(keep)),
             std::make_move_iterator(full.end()));
  full.resize(keep);
  full.shrink_to_fit();
  chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(rest));
}

EntryPtr KeyIndex::Erase(std::string_view key) {
  const Cursor cursor = AtLeast(key);
  if (cursor.AtEnd() || (*cursor)->key != key) return nullptr;
  Chunk& chunk = chunks_[cursor.chunk_];
  EntryPtr removed = std::move(chunk[cursor.slot_]);
  chunk.erase(chunk.begin() + static_cast<std::ptrdiff_t>(cursor.slot_));
  --size_;
  MergeOrDrop(cursor.chunk_);
  return removed;
}

void KeyIndex::MergeOrDrop(size_t at) {
  if (chunks_[at].empty()) {
    chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(at));
    return;
  }
  if (at + 1 == chunks_.size() || chunks_[at].size() + chunks_[at + 1].size() > kChunkEntries / 2)
    return;
  Chunk& next = chunks_[at + 1];
  chunks_[at].insert(chunks_[at].end(), std::make_move_iterator(next.begin()),
                     std::make_move_iterator(next.end()));
  chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
}

}  // namespace muster::store
