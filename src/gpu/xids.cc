#include "gpu/xids.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/strings.h"

namespace muster::gpu {
namespace {

// Errors of the program that used the GPU.
constexpr std::array<int64_t, 6> kOfPrograms = {13, 31, 43, 45, 68, 109};

struct Meaning {
  int64_t xid;
  std::string_view text;
};
constexpr Meaning kMeanings[] = {
    {13, "a program caused an exception of the graphics engine"},
    {31, "a program touched GPU memory that is not mapped"},
    {32, "the commands sent to the GPU were damaged"},
    {38, "the driver's firmware failed"},
    {43, "the GPU stopped working for a program"},
    {45, "the driver ended a program's work on the GPU"},
    {46, "the GPU stopped working"},
    {48, "memory error that could not be corrected (double-bit ECC)"},
    {61, "the GPU's microcontroller stopped at a breakpoint"},
    {62, "the GPU's microcontroller halted"},
    {63, "a row of memory is to be remapped"},
    {64, "a row of memory could not be remapped"},
    {68, "a program caused an exception of the video engine"},
    {69, "exception of the graphics engine's class"},
    {74, "error of an NVLink"},
    {79, "the GPU has fallen off the bus"},
    {92, "many corrected memory errors (single-bit ECC)"},
    {94, "memory error that was contained (ECC)"},
    {95, "memory error that was not contained (ECC)"},
    {109, "a program's context could not be switched in time"},
    {119, "the GPU's system processor (GSP) did not answer in time"},
    {120, "the GPU's system processor (GSP) failed"},
    {121, "error of the link to the CPU (C2C)"},
    {140, "memory error that is not repaired (ECC)"},
    {154, "the GPU needs to be repaired (reset or restart) before it works on"},
};

}  // namespace

std::string DescribeXid(int64_t xid) {
  const auto* found =
      std::ranges::find_if(kMeanings, [xid](const Meaning& meaning) { return meaning.xid == xid; });
  return fmt::format(
      "XID {}: {}", xid,
      found == std::end(kMeanings) ? "see NVIDIA's catalog of XID errors" : found->text);
}

XidPolicy::List XidPolicy::Parse(std::string_view text) {
  List list;
  for (const std::string_view word : SplitNonEmpty(text, ',')) {
    const std::string_view trimmed = Trim(word);
    if (trimmed == "all" || trimmed == "xids") list.all = true;
    if (const auto xid = ParseInt(trimmed)) list.xids.insert(*xid);
  }
  return list;
}

XidPolicy::XidPolicy(std::string_view disabled, std::string_view enabled)
    : disabled_(Parse(disabled)), enabled_(Parse(enabled)) {}

XidPolicy XidPolicy::FromEnvironment() {
  const auto text = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  return {text("DP_DISABLE_HEALTHCHECKS"), text("DP_ENABLE_HEALTHCHECKS")};
}

bool XidPolicy::IsFatal(int64_t xid) const {
  if (enabled_.Has(xid)) return true;
  return !disabled_.Has(xid) && std::ranges::find(kOfPrograms, xid) == kOfPrograms.end();
}

}  // namespace muster::gpu
