#include "controllers/pods/template_hash.h"

#include <string_view>

#include <fmt/core.h>

#include "base/strings.h"
#include "json/write.h"

namespace muster::controllers {
namespace {

// k8s.io/apimachinery pkg/util/rand SafeEncodeString: digits in letters that make no words.
std::string SafeEncode(const std::string& digits) {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string out;
  for (const char digit : digits)
    out += kLetters[static_cast<unsigned char>(digit) % kLetters.size()];
  return out;
}

}  // namespace

std::string TemplateHash(const json::Value& pod_template, int64_t collision_count) {
  std::string text = json::Write(json::SortKeys(pod_template));
  if (collision_count > 0) text += fmt::format("{}", collision_count);
  return SafeEncode(fmt::format("{}", static_cast<uint32_t>(Hash64(text))));
}

}  // namespace muster::controllers
