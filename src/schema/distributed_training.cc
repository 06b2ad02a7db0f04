#include "schema/distributed_training.h"

#include "base/strings.h"

namespace muster::schema {
namespace {

// A type stands for itself only where no letter or digit goes before or after it.
bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

std::string SizeAsQuantity(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ') out.push_back(c);
  }
  if (out.ends_with('B')) out.pop_back();
  // 1KB is 1000 bytes; the quantity is spelt 1k.
  if (out.ends_with('K')) out.back() = 'k';
  return out;
}

bool IsGpuType(std::string_view product, std::string_view type) {
  if (type.empty()) return false;
  const std::string name = ToLower(product);
  const std::string word = ToLower(type);
  for (size_t at = name.find(word); at != name.npos; at = name.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !IsWordCharacter(name[at - 1]);
    const bool ends = end == name.size() || !IsWordCharacter(name[end]);
    if (begins && ends) return true;
  }
  return false;
}

}  // namespace muster::schema
