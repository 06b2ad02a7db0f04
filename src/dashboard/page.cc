#include "dashboard/page.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include <zlib.h>

#include "base/check.h"
#include "base/strings.h"

namespace muster::dashboard {
namespace {

constexpr std::string_view kIndex = "index.html";
// Vite puts what has a hash of its content in its name there.
constexpr std::string_view kHashed = "assets/";

// Scripts and styles come from here alone, and so does what the page asks for; 'self' covers the
// WebSockets of the same origin.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

void AddDefences(net::Headers& headers) {
  headers.Add("Content-Security-Policy", std::string(kPolicy));
  headers.Add("X-Content-Type-Options", "nosniff");
  headers.Add("X-Frame-Options", "DENY");
  headers.Add("Referrer-Policy", "no-referrer");
  headers.Add("Cross-Origin-Opener-Policy", "same-origin");
  headers.Add("Cross-Origin-Resource-Policy", "same-origin");
}

net::Response Text(int status, std::string text) {
  net::Response response;
  response.status = status;
  response.headers.Add("Content-Type", "text/plain; charset=utf-8");
  AddDefences(response.headers);
  response.body = std::move(text);
  return response;
}

// Whether one of the values of a header, separated by commas, is `wanted`; their parameters count
// only if they say "not at all".
bool Names(std::string_view header, std::string_view wanted) {
  for (const std::string_view value : SplitNonEmpty(header, ',')) {
    const std::string_view name = Trim(value.substr(0, value.find(';')));
    const size_t weight = value.find("q=");
    const bool refused = weight != std::string_view::npos &&
                         Trim(value.substr(weight + 2)).find_first_not_of("0.") == value.npos;
    if (name == wanted) return !refused;
  }
  return false;
}

std::string Inflate(std::string_view gzip) {
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  CHECK(inflateInit2(&stream, kGzip) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(gzip.data()));
  stream.avail_in = static_cast<uInt>(gzip.size());
  std::string out;
  char piece[16 * 1024];
  int result = Z_OK;
  while (result == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(piece);
    stream.avail_out = sizeof piece;
    result = inflate(&stream, Z_NO_FLUSH);
    out.append(piece, sizeof piece - stream.avail_out);
  }
  inflateEnd(&stream);
  CHECK_MSG(result == Z_STREAM_END, "a file of the dashboard is damaged");
  return out;
}

}  // namespace

bool IsBuiltIn() {
  return std::ranges::any_of(BuiltInFiles(),
                             [](const File& file) { return file.path.starts_with(kHashed); });
}

std::optional<net::Response> Page::Answer(const net::Request& request) const {
  std::string_view path = std::string_view(request.target).substr(0, request.target.find('?'));
  if (!path.starts_with(kPath)) return std::nullopt;
  path.remove_prefix(kPath.size());
  if (!path.empty() && path[0] != '/') return std::nullopt;
  if (request.method != "GET" && request.method != "HEAD") {
    net::Response response = Text(405, "the dashboard is only read\n");
    response.headers.Add("Allow", "GET, HEAD");
    return response;
  }
  if (path.empty()) {
    net::Response response = Text(308, "");
    response.headers.Add("Location", fmt::format("{}/", kPath));
    return response;
  }
  path.remove_prefix(1);
  if (path.empty()) path = kIndex;
  const auto file = std::ranges::find(files_, path, &File::path);
  if (file == files_.end())
    return Text(404, fmt::format("the dashboard has no such file; it begins at {}/\n", kPath));
  return AnswerFile(request, *file);
}

net::Response Page::AnswerFile(const net::Request& request, const File& file) const {
  net::Response response;
  net::Headers& headers = response.headers;
  headers.Add("Content-Type", std::string(file.type));
  headers.Add("ETag", std::string(file.etag));
  headers.Add("Vary", "Accept-Encoding");
  headers.Add("Cache-Control",
              file.path.starts_with(kHashed) ? "public, max-age=31536000, immutable" : "no-cache");
  AddDefences(headers);
  if (Names(request.headers.Get("If-None-Match"), file.etag)) {
    response.status = 304;
    return response;
  }
  if (Names(request.headers.Get("Accept-Encoding"), "gzip")) {
    headers.Add("Content-Encoding", "gzip");
    response.body = std::string(file.gzip);
  } else {
    response.body = Inflate(file.gzip);
  }
  return response;
}

}  // namespace muster::dashboard
