// What nearly every source includes, parsed once per build tree (cmake/MusterPrecompiled.cmake). A
// source still names what it uses: MUSTER_PRECOMPILE=OFF compiles each without this.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
