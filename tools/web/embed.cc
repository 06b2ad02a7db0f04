// muster_web_embed FOLDER OUT.cc: the files of a folder, compressed, as the constants that
// src/dashboard/files.h declares.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <zlib.h>

namespace {

namespace fs = std::filesystem;

std::string Read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Without a name and time, so that the same content gives the same bytes.
std::string Gzip(const std::string& text) {
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  constexpr int kMemoryLevel = 9;
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib does not start");
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("zlib does not end");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// FNV-1a: tells versions apart, nothing more.
uint64_t Hash(std::string_view text) {
  uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211U;
  return hash;
}

std::string_view TypeOf(const fs::path& path) {
  static const std::map<std::string, std::string_view> kTypes = {
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".svg", "image/svg+xml"},
      {".txt", "text/plain; charset=utf-8"}};
  const auto found = kTypes.find(path.extension().string());
  if (found == kTypes.end()) throw std::runtime_error("no content type for " + path.string());
  return found->second;
}

void Write(const fs::path& folder, const fs::path& target) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  if (files.empty()) throw std::runtime_error("nothing is in " + folder.string());
  std::sort(files.begin(), files.end());
  std::string data, table;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string path = files[i].lexically_relative(folder).string(), text = Read(files[i]);
    const std::string gzip = Gzip(text);
    data += fmt::format("constexpr unsigned char k{}[] = {{", i);
    for (size_t at = 0; at < gzip.size(); ++at)
      data += fmt::format("{}{},", at % 24 == 0 ? "\n" : "", static_cast<uint8_t>(gzip[at]));
    data += "};\n";
    table += fmt::format("    {{\"{}\", \"{}\", \"\\\"{:016x}\\\"\",\n", path, TypeOf(files[i]),
                         Hash(text));
    table += fmt::format("     {{reinterpret_cast<const char*>(k{}), {}}}}},\n", i, gzip.size());
  }
  std::ofstream out(target, std::ios::binary);
  out << "#include \"dashboard/files.h\"\n\nnamespace muster::dashboard {\nnamespace {\n"
      << data << "}  // namespace\n\nstd::span<const File> BuiltInFiles() {\n"
      << "  static const File kFiles[] = {\n"
      << table << "  };\n  return kFiles;\n}\n\n}  // namespace muster::dashboard\n";
  if (!out.flush()) throw std::runtime_error("cannot write " + target.string());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: muster_web_embed FOLDER OUT.cc\n", stderr);
    return 2;
  }
  try {
    Write(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "muster_web_embed: %s\n", error.what());
    return 1;
  }
  return 0;
}
