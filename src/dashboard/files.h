// src/dashboard/files.h
//
// The files of the dashboard as the build put them into the binary (cmake/MusterWeb.cmake): what
// Vite made of web/, or, where the build had no npm, one page that says how to get it.
//
// Thread: any (constants).

#pragma once

#include <span>
#include <string_view>

namespace muster::dashboard {

struct File {
  std::string_view path;  // below /dashboard/: "index.html", "assets/index-4f3a.js"
  std::string_view type;  // of its content
  std::string_view etag;  // with quotes; from the content
  std::string_view gzip;
};

std::span<const File> BuiltInFiles();
// False: they are only the page that says how to get it.
bool IsBuiltIn();

}  // namespace muster::dashboard
