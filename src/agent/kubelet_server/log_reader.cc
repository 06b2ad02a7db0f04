#include "agent/kubelet_server/log_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "agent/runtime/files.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

// The rotated files of `path`, oldest first, then `path`.
std::vector<std::string> FilesOf(const std::string& path) {
  std::vector<std::string> files;
  const size_t slash = path.find_last_of('/');
  const std::string prefix = path.substr(slash + 1) + ".";
  for (const std::string& name : ListDir(path.substr(0, slash))) {
    if (name.starts_with(prefix)) files.push_back(path.substr(0, slash + 1) + name);
  }
  files.push_back(path);
  return files;
}

ino_t InodeOf(int fd) {
  struct stat info = {};
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

// The place after the file with this inode; 0 if it is gone: all that are left are younger.
size_t PlaceAfter(const std::vector<std::string>& files, ino_t inode) {
  for (size_t i = files.size(); i > 0; --i) {
    struct stat info = {};
    if (stat(files[i - 1].c_str(), &info) == 0 && info.st_ino == inode) return i;
  }
  return 0;
}

// Where the last `lines` lines of the file begin; `found` is how many there are, at most `lines`.
Result<off_t> TailStart(int fd, int64_t lines, int64_t& found) {
  found = 0;
  struct stat info = {};
  if (fstat(fd, &info) != 0) return SystemError("stat", "a log", errno);
  off_t end = info.st_size;
  std::string block(64 * 1024, '\0');
  bool at_last_newline = true;
  while (end > 0 && found < lines) {
    const size_t size = std::min<size_t>(block.size(), static_cast<size_t>(end));
    const ssize_t n = pread(fd, block.data(), size, end - static_cast<off_t>(size));
    if (n != static_cast<ssize_t>(size)) return SystemError("read", "a log", errno);
    for (size_t i = size; i > 0; --i) {
      if (block[i - 1] != '\n') continue;
      if (!at_last_newline && ++found == lines)
        return end - static_cast<off_t>(size) + static_cast<off_t>(i);
      at_last_newline = false;
    }
    end -= static_cast<off_t>(size);
  }
  if (info.st_size > 0 && found < lines) ++found;
  return 0;
}

}  // namespace

std::optional<int> LatestLogAttempt(const std::string& container_log_dir) {
  std::optional<int> latest;
  for (const std::string& name : ListDir(container_log_dir)) {
    // "3.log", or only "3.log.00000000000000000001" if its writer was killed while it rotated.
    const size_t end = name.find(".log");
    if (end == std::string::npos) continue;
    const auto number = ParseInt(std::string_view(name).substr(0, end));
    if (number) latest = std::max(latest.value_or(0), static_cast<int>(*number));
  }
  return latest;
}

LogReader::LogReader(std::string path, const LogOptions& options)
    : path_(std::move(path)),
      timestamps_(options.timestamps),
      since_(options.since),
      left_(options.limit_bytes) {}

Status LogReader::OpenFile(const std::string& path) {
  fd_.Reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd_.valid()) return SystemError("open", path, errno);
  file_ = path;
  return Status::Ok();
}

Result<LogReader> LogReader::Open(const std::string& path, const LogOptions& options) {
  LogReader reader(path, options);
  // Again if the writer rotated meanwhile: then the names may not be the files that we opened.
  while (true) {
    const std::vector<std::string> files = FilesOf(path);
    const Status status = options.tail_lines ? reader.OpenTail(files, *options.tail_lines)
                                             : reader.OpenFile(files[0]);
    if (FilesOf(path) != files) continue;
    RETURN_IF_ERROR(status);
    return reader;
  }
}

// Opens the file in which the last `lines` lines begin, and goes there.
Status LogReader::OpenTail(const std::vector<std::string>& files, int64_t lines) {
  lines = std::max<int64_t>(lines, 0);
  off_t offset = 0;
  for (size_t i = files.size(); i > 0; --i) {
    // Killed while it rotated, the writer has left no current file.
    if (i == files.size() && i > 1 && !PathExists(files[i - 1])) continue;
    RETURN_IF_ERROR(OpenFile(files[i - 1]));
    if (lines == 0) {
      offset = lseek(fd_.get(), 0, SEEK_END);
      break;
    }
    int64_t found = 0;
    ASSIGN_OR_RETURN(offset, TailStart(fd_.get(), lines, found));
    lines -= found;
    if (lines == 0) break;
  }
  if (lseek(fd_.get(), offset, SEEK_SET) < 0) return SystemError("seek", path_, errno);
  return Status::Ok();
}

bool LogReader::HasNextFile() const {
  const std::vector<std::string> files = FilesOf(path_);
  const size_t next = PlaceAfter(files, InodeOf(fd_.get()));
  return next < files.size() && PathExists(files[next]);
}

// Opens the file that follows the one that we hold. The writer may rotate between any two steps: a
// file is the next one only if it still is after it was opened.
bool LogReader::NextFile() {
  const ino_t held = InodeOf(fd_.get());
  while (true) {
    const std::vector<std::string> files = FilesOf(path_);
    const size_t next = PlaceAfter(files, held);
    if (next >= files.size()) return false;
    UniqueFd fd(open(files[next].c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid() && errno == ENOENT && next + 1 == files.size()) return false;
    if (!fd.valid()) continue;  // the oldest one was just removed
    const std::vector<std::string> now = FilesOf(path_);
    if (PlaceAfter(now, InodeOf(fd.get())) != PlaceAfter(now, held) + 1) continue;
    fd_ = std::move(fd);
    file_ = files[next];
    final_ = false;
    return true;
  }
}

// "TIME STREAM TAG TEXT" -> text.
void LogReader::Convert(std::string_view line, std::string& out) {
  const size_t time_end = line.find(' ');
  const size_t stream_end =
      time_end == std::string_view::npos ? time_end : line.find(' ', time_end + 1);
  const size_t tag_end =
      stream_end == std::string_view::npos ? stream_end : line.find(' ', stream_end + 1);
  if (tag_end == std::string_view::npos) return;  // not ours
  const std::string_view time = line.substr(0, time_end);
  if (since_) {
    const auto parsed = ParseTime(time);
    if (!parsed || *parsed < *since_) return;
  }
  const bool partial = line.substr(stream_end + 1, 1) == "P";
  std::string text;
  if (timestamps_ && !in_line_) text = std::string(time) + " ";
  text += line.substr(tag_end + 1);
  if (!partial) text += '\n';
  in_line_ = partial;
  if (left_) {
    if (static_cast<int64_t>(text.size()) > *left_)
      text.resize(static_cast<size_t>(std::max<int64_t>(*left_, 0)));
    *left_ -= static_cast<int64_t>(text.size());
  }
  out += text;
}

Result<bool> LogReader::Read(std::string& out) {
  std::string buffer(64 * 1024, '\0');
  const size_t start = out.size();
  while (out.size() - start < kLogChunkBytes && !LimitReached()) {
    const ssize_t n = read(fd_.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("read", file_, errno);
    if (n == 0) {
      // What is written before the writer turns to a next file belongs to this one: once there is
      // a next one, read to the end again.
      if (!final_) {
        if (!HasNextFile()) return false;
        final_ = true;
        continue;
      }
      if (!NextFile()) return false;
      continue;
    }
    carry_.append(buffer, 0, static_cast<size_t>(n));
    size_t at = 0;
    for (size_t newline = carry_.find('\n'); newline != std::string::npos && !LimitReached();
         newline = carry_.find('\n', at)) {
      Convert(std::string_view(carry_).substr(at, newline - at), out);
      at = newline + 1;
    }
    carry_.erase(0, at);
  }
  return !LimitReached();
}

}  // namespace muster::agent
