// src/base/task.h
//
// Task: a piece of work that runs once. Move-only, so it may own what it needs.

#pragma once

#include <functional>

namespace muster {

using Task = std::move_only_function<void()>;

template <class Signature>
using Function = std::move_only_function<Signature>;

}  // namespace muster
