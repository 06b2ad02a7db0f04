#include "agent/images/image_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "agent/runtime/files.h"
#include "agent/runtime/program.h"
#include "agent/runtime/unique_fd.h"
#include "agent/user_node/user_identity.h"
#include "agent/volumes/disk_usage.h"
#include "base/log.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::agent {
namespace {

// Of the one image in the layout of a pull.
constexpr std::string_view kLayoutTag = "image";

std::string BlobsDir(const std::string& data_dir) { return ImagesDir(data_dir) + "/blobs/sha256"; }
std::string BlobPath(const std::string& data_dir, std::string_view digest) {
  return fmt::format("{}/{}", BlobsDir(data_dir), digest.substr(7));
}
std::string PullDir(const ImageWork& work) {
  return fmt::format("{}/pulls/{}", ImagesDir(work.data_dir), work.name);
}

Result<json::Value> ReadJson(const std::string& path, size_t limit) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, limit));
  Result<json::Value> value = json::Parse(text);
  if (!value) return Error(value.error().WithPrefix(path + ": "));
  return value;
}

Result<json::Value> ReadBlob(const std::string& data_dir, const std::string& digest) {
  if (!IsImageDigest(digest))
    return Error(Reason::kInvalid, "the image names a blob {:?}, which is not a digest", digest);
  return ReadJson(BlobPath(data_dir, digest), kMaxManifestBytes);
}

// A folder for one piece of work, gone when the work is done.
class WorkFolder {
 public:
  static Result<WorkFolder> Make(std::string path) {
    RETURN_IF_ERROR(RemoveTree(path));
    RETURN_IF_ERROR(MakeDirs(path, 0700));
    return WorkFolder(std::move(path));
  }
  WorkFolder(WorkFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  WorkFolder& operator=(WorkFolder&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~WorkFolder() {
    if (!path_.empty()) (void)RemoveTree(path_);
  }
  const std::string& path() const { return path_; }

 private:
  explicit WorkFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// A program's last words, without what surrounds them: skopeo's are
// time="..." level=fatal msg="initializing source docker://x: what is wrong".
std::string LastWords(const std::string& name, const ProgramResult& result) {
  std::string last;
  for (std::string_view line : SplitNonEmpty(result.err.empty() ? result.out : result.err, '\n')) {
    if (!Trim(line).empty()) last = std::string(Trim(line));
  }
  if (const size_t at = last.find("level=fatal msg="); at != std::string::npos) {
    const auto text = json::Parse(last.substr(at + 16));
    if (text && text->IsString()) last = text->Str();
  }
  for (std::string_view start :
       {"Error parsing image name ", "initializing source ", "Error initializing source ",
        "initializing image from source ", "Error determining manifest digest: "}) {
    if (!last.starts_with(start)) continue;
    // The name of the image, with or without quotation marks, ends with ": ".
    if (const size_t end = last.find(": ", start.size()); end != std::string::npos)
      last = last.substr(end + 2);
  }
  if (!last.empty()) return last;
  return result.exit_code > 128
             ? fmt::format("{} was ended by signal {}", name, result.exit_code - 128)
             : fmt::format("{}: exit code {}", name, result.exit_code);
}

Result<ProgramResult> RunTool(const ImageWork& work, std::vector<std::string> arguments,
                              Duration time_limit, std::function<Status()> watch) {
  const std::string name = arguments[0];
  arguments[0] = FindProgram(name);
  if (arguments[0].empty()) RETURN_IF_ERROR(FindImagePrograms());
  ProgramCall call;
  call.arguments = std::move(arguments);
  call.time_limit = time_limit;
  call.watch = std::move(watch);
  call.cancelled = work.cancelled;
  ASSIGN_OR_RETURN(ProgramResult result, RunProgram(call));
  if (result.exit_code == 0) return result;
  const std::string words = LastWords(name, result);
  if (words.find("no space left on device") == std::string::npos)
    return Error(Reason::kInternalError, "{}", words);
  return Error(Reason::kRequestEntityTooLarge, "{} ({} is full)", words, work.data_dir);
}

Status NothingToWatch() { return Status::Ok(); }

// skopeo and its options for all commands. A machine without a signature policy has none to keep.
std::vector<std::string> Skopeo() {
  const char* home = getenv("HOME");
  const bool has_policy =
      PathExists("/etc/containers/policy.json") ||
      (home != nullptr && PathExists(std::string(home) + "/.config/containers/policy.json"));
  if (has_policy) return {"skopeo"};
  return {"skopeo", "--insecure-policy"};
}

// Where the source may be reached how: the options of `inspect` have no prefix, those of `copy`
// "src-".
Status AddSourceOptions(const ImageSource& source, const std::string& folder,
                        std::string_view prefix, std::vector<std::string>& arguments) {
  if (source.plain_http) arguments.push_back(fmt::format("--{}tls-verify=false", prefix));
  if (source.auth_file.empty()) return Status::Ok();
  const std::string file = folder + "/auth.json";
  RETURN_IF_ERROR(WriteFileAtomic(file, source.auth_file, 0600));
  arguments.push_back(fmt::format("--{}authfile={}", prefix, file));
  return Status::Ok();
}

// Bytes in the files of a folder, not below it.
int64_t FlatBytes(const std::string& dir) {
  int64_t out = 0;
  for (const std::string& name : ListDir(dir)) {
    struct stat info = {};
    if (lstat((dir + "/" + name).c_str(), &info) == 0 && S_ISREG(info.st_mode)) out += info.st_size;
  }
  return out;
}

// Whether `more` bytes leave what must stay free.
Status CheckRoom(const std::string& data_dir, int64_t more) {
  const DiskRoom room = MeasureRoom(data_dir);
  if (room.available - more >= room.reserve) return Status::Ok();
  return Error(Reason::kRequestEntityTooLarge,
               "no space: {}{} MiB are free for {}, and {} MiB must stay free: remove images "
               "(muster image rm) or other files",
               more > 0 ? fmt::format("{} MiB are needed, ", (more >> 20) + 1) : "",
               room.available >> 20, ImagesDir(data_dir), room.reserve >> 20);
}

// About what the layers take when they are unpacked. A file of gzip ends with its content's size,
// modulo 4 GiB.
int64_t UnpackedBytes(const std::string& data_dir, const ImageRecord& record) {
  int64_t out = 0;
  for (size_t i = 2; i < record.blobs.size(); ++i) {
    const std::string path = BlobPath(data_dir, record.blobs[i]);
    const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info = {};
    if (!file.valid() || fstat(file.get(), &info) != 0) continue;
    uint8_t head[2] = {}, tail[4] = {};
    const bool read = pread(file.get(), head, sizeof head, 0) == sizeof head &&
                      pread(file.get(), tail, sizeof tail, info.st_size - 4) == sizeof tail;
    const bool gzip = read && head[0] == 0x1f && head[1] == 0x8b;
    const int64_t said = tail[0] | tail[1] << 8 | tail[2] << 16 | int64_t{tail[3]} << 24;
    out += gzip ? std::max<int64_t>(said, info.st_size) : info.st_size;
  }
  return out;
}

// Ends a program that would fill the node's disk, or that gets no further.
class FetchWatch {
 public:
  FetchWatch(std::string data_dir, std::string dir, Duration stall)
      : data_dir_(std::move(data_dir)), dir_(std::move(dir)), stall_(stall) {}

  Status Look() {
    RETURN_IF_ERROR(CheckRoom(data_dir_, 0));
    if (dir_.empty()) return Status::Ok();
    const Duration now = RealClock().Monotonic();
    const int64_t bytes =
        FlatBytes(dir_) + static_cast<int64_t>(ListDir(BlobsDir(data_dir_)).size());
    if (bytes != bytes_ || !since_) {
      bytes_ = bytes;
      since_ = now;
    }
    if (now - *since_ <= stall_) return Status::Ok();
    return Error(Reason::kTimeout, "the registry sent nothing for {}", HumanDuration(stall_));
  }

 private:
  std::string data_dir_, dir_;  // dir_ "": what happens there says nothing
  Duration stall_;
  int64_t bytes_ = 0;
  std::optional<Duration> since_;
};

// Whether this process can give files to all whom images give them to: root, and in a user
// namespace that has as many ids as they need.
bool KnowsAllOwners() {
  if (geteuid() != 0) return false;
  for (const char* map : {"/proc/self/uid_map", "/proc/self/gid_map"}) {
    if (MappedIds(ReadSmallFile(map).value_or("")) < kMaxSubordinateIds) return false;
  }
  return true;
}

// The layout `dir` holds one image: reads what it says of itself.
Result<ImageRecord> ReadLayout(const std::string& data_dir, const std::string& dir) {
  ASSIGN_OR_RETURN(const json::Value index, ReadJson(dir + "/index.json", kMaxManifestBytes));
  const std::string manifest_digest = index["manifests"].At(0)["digest"].Str();
  ASSIGN_OR_RETURN(const json::Value manifest, ReadBlob(data_dir, manifest_digest));
  ImageRecord record;
  record.id = manifest["config"]["digest"].Str();
  ASSIGN_OR_RETURN(const json::Value config, ReadBlob(data_dir, record.id));
  record.config = ParseImageConfig(config);
  record.blobs = {manifest_digest, record.id};
  record.size_bytes = manifest["config"]["size"].AsInt();
  if (manifest["layers"].size() > kMaxImageLayers)
    return Error(Reason::kInvalid, "the image has more than {} layers", kMaxImageLayers);
  for (const json::Value& layer : manifest["layers"].items()) {
    if (!IsImageDigest(layer["digest"].AsString()))
      return Error(Reason::kInvalid, "the image has a layer without a digest");
    record.blobs.push_back(layer["digest"].Str());
    record.size_bytes += layer["size"].AsInt();
  }
  return record;
}

}  // namespace

std::string ImagesDir(const std::string& data_dir) { return data_dir + "/images"; }
std::string ImageRoot(const std::string& data_dir, const std::string& root) {
  return fmt::format("{}/roots/{}", ImagesDir(data_dir), root);
}

Result<std::vector<ImageRecord>> OpenImageFiles(const std::string& data_dir) {
  const std::string dir = ImagesDir(data_dir);
  RETURN_IF_ERROR(RemoveTree(dir + "/pulls"));
  for (const char* folder : {"", "/pulls", "/roots", "/blobs", "/blobs/sha256"})
    RETURN_IF_ERROR(MakeDirs(dir + folder, 0700));
  std::vector<ImageRecord> records;
  if (PathExists(dir + "/index.json")) {
    const Result<json::Value> index = ReadJson(dir + "/index.json", kMaxSmallFileBytes);
    if (!index) LOG_WARN("images: forget the index: {}", index.error().message());
    for (const json::Value& entry : index.value_or(json::Value())["images"].items())
      records.push_back(ImageRecordFromJson(entry));
  }
  std::erase_if(records, [&](const ImageRecord& record) {
    return !IsFileName(record.root) || !PathExists(ImageRoot(data_dir, record.root));
  });
  std::set<std::string> known;
  for (const ImageRecord& record : records) known.insert(record.root);
  for (const std::string& name : ListDir(dir + "/roots")) {
    if (known.contains(name)) continue;
    const Status removed = RemoveTree(ImageRoot(data_dir, name));
    if (!removed.ok()) LOG_WARN("images: sweep: {}", removed.message());
  }
  return records;
}

Status SaveImageIndex(const std::string& data_dir, const std::vector<ImageRecord>& records) {
  json::Array images;
  for (const ImageRecord& record : records) images.push_back(ToJson(record));
  return WriteFileAtomic(ImagesDir(data_dir) + "/index.json",
                         json::Write(json::Obj({{"images", std::move(images)}})), 0600);
}

std::vector<std::string> MissingImagePrograms() {
  std::vector<std::string> missing;
  for (const char* name : {"skopeo", "umoci"}) {
    if (FindProgram(name).empty()) missing.emplace_back(name);
  }
  return missing;
}

Status FindImagePrograms() {
  const std::vector<std::string> missing = MissingImagePrograms();
  if (missing.empty()) return Status::Ok();
  return Error(Reason::kServiceUnavailable,
               "this node has no {}, which fetch and unpack images: install the package{} {} "
               "(apt-get install {}); a container of image \"{}\" runs the programs of the machine "
               "itself",
               Join(missing, " and no "), missing.size() > 1 ? "s" : "", Join(missing, " and "),
               Join(missing, " "), kMachineImage);
}

Result<ResolvedImage> ResolveImage(const ImageWork& work, const ImageSource& source) {
  RETURN_IF_ERROR(FindImagePrograms());
  ASSIGN_OR_RETURN(const WorkFolder folder, WorkFolder::Make(PullDir(work)));
  std::vector<std::string> inspect = Skopeo();
  inspect.insert(inspect.end(), {"inspect", "--raw"});
  RETURN_IF_ERROR(AddSourceOptions(source, folder.path(), "", inspect));
  inspect.push_back(source.location);
  ASSIGN_OR_RETURN(const ProgramResult manifest,
                   RunTool(work, std::move(inspect), work.timeouts.resolve, NothingToWatch));
  if (manifest.out.size() > kMaxManifestBytes)
    return Error(Reason::kInvalid, "the manifest has more than {} bytes", kMaxManifestBytes);
  const std::string file = folder.path() + "/manifest";
  RETURN_IF_ERROR(WriteFile(file, manifest.out, 0600));
  ASSIGN_OR_RETURN(const ProgramResult digest, RunTool(work, {"skopeo", "manifest-digest", file},
                                                       work.timeouts.resolve, NothingToWatch));
  ResolvedImage out;
  out.digest = std::string(Trim(digest.out));
  if (!IsImageDigest(out.digest))
    return Error(Reason::kInternalError, "skopeo manifest-digest printed {:?}", out.digest);
  const Result<json::Value> parsed = json::Parse(manifest.out);
  for (const json::Value& layer : parsed.value_or(json::Value())["layers"].items()) {
    const std::string_view blob = layer["digest"].AsString();
    if (IsImageDigest(blob) && !PathExists(BlobPath(work.data_dir, blob)))
      out.new_bytes +=
          std::clamp<int64_t>(layer["size"].AsInt(), 0, kUnmeasurable / kMaxImageLayers);
  }
  return out;
}

Result<ImageRecord> FetchImage(const ImageWork& work, const ImageSource& source,
                               int64_t new_bytes) {
  RETURN_IF_ERROR(FindImagePrograms());
  RETURN_IF_ERROR(CheckRoom(work.data_dir, new_bytes));
  FetchWatch fetching(work.data_dir, PullDir(work), work.timeouts.stall);
  ASSIGN_OR_RETURN(const WorkFolder layout, WorkFolder::Make(PullDir(work)));
  if (symlink("../../blobs", (layout.path() + "/blobs").c_str()) != 0)
    return SystemError("symlink", layout.path(), errno);
  std::vector<std::string> copy = Skopeo();
  // Signatures are for the policy, which asks for those it wants. An OCI layout holds none, and
  // root of a user namespace may not look where skopeo would for the machine's root.
  copy.insert(copy.end(), {"copy", "--quiet", "--remove-signatures"});
  RETURN_IF_ERROR(AddSourceOptions(source, layout.path(), "src-", copy));
  copy.insert(copy.end(), {source.location, fmt::format("oci:{}:{}", layout.path(), kLayoutTag)});
  ASSIGN_OR_RETURN(const ProgramResult copied, RunTool(work, std::move(copy), work.timeouts.pull,
                                                       [&] { return fetching.Look(); }));
  (void)unlink((layout.path() + "/auth.json").c_str());
  ASSIGN_OR_RETURN(ImageRecord record, ReadLayout(work.data_dir, layout.path()));

  record.root = work.name;
  const std::string root = ImageRoot(work.data_dir, record.root);
  ASSIGN_OR_RETURN(const WorkFolder unpacked, WorkFolder::Make(root + ".new"));
  RETURN_IF_ERROR(CheckRoom(work.data_dir, UnpackedBytes(work.data_dir, record)));
  FetchWatch unpacking(work.data_dir, "", work.timeouts.stall);
  std::vector<std::string> unpack = {"umoci", "raw", "unpack"};
  // Else all files are the user's own, who is root in the node's user namespace.
  if (!KnowsAllOwners()) unpack.emplace_back("--rootless");
  unpack.insert(unpack.end(), {"--image", fmt::format("{}:{}", layout.path(), kLayoutTag),
                               unpacked.path() + "/rootfs"});
  ASSIGN_OR_RETURN(const ProgramResult done, RunTool(work, std::move(unpack), work.timeouts.pull,
                                                     [&] { return unpacking.Look(); }));
  if (rename((unpacked.path() + "/rootfs").c_str(), root.c_str()) != 0)
    return SystemError("rename", root, errno);
  record.disk_bytes =
      std::min(DiskUsage(root), 10 * record.size_bytes + (int64_t{1} << 30)) + record.size_bytes;
  return record;
}

namespace {

// What can be loaded, for those who gave something else.
constexpr std::string_view kLoadable =
    "expected an archive of docker (docker save NAME > FILE), an archive of OCI (skopeo copy ... "
    "oci-archive:FILE), or a folder with an OCI layout";

// The names in a layout's index.
Result<std::vector<ArchivedImage>> ListLayout(const std::string& path) {
  Result<json::Value> index_file = ReadJson(path + "/index.json", kMaxManifestBytes);
  if (!index_file) {
    return Error(Reason::kInvalid, "folder {} is no OCI layout ({}): {}", path,
                 index_file.error().message(), kLoadable);
  }
  const json::Value index = std::move(*index_file);
  std::vector<ArchivedImage> out;
  for (const json::Value& entry : index["manifests"].items()) {
    const json::Value& notes = entry["annotations"];
    const std::string reference = notes["org.opencontainers.image.ref.name"].Str();
    const std::string full = notes["io.containerd.image.name"].Str(reference);
    out.push_back({"oci:" + path + (reference.empty() ? "" : ":" + reference), full});
  }
  if (out.empty()) return Error(Reason::kInvalid, "{} holds no image", path);
  return out;
}

// Docker's own archives have a manifest.json; a file without it is OCI's, or nothing that we know.
Result<std::vector<ArchivedImage>> ListOciArchive(const ImageWork& work, const std::string& path,
                                                  const Status& not_dockers) {
  std::vector<std::string> inspect = Skopeo();
  inspect.insert(inspect.end(), {"inspect", "--raw", "oci-archive:" + path});
  const Result<ProgramResult> manifest =
      RunTool(work, std::move(inspect), work.timeouts.resolve, NothingToWatch);
  if (manifest) return std::vector<ArchivedImage>{{"oci-archive:" + path, ""}};
  if (manifest.error().reason() != Reason::kInternalError) return Error(manifest.error());
  return Error(Reason::kInvalid, "{} holds no image: {} (as docker's: {}; as OCI's: {})", path,
               kLoadable, not_dockers.message(), manifest.error().message());
}

}  // namespace

Result<std::vector<ArchivedImage>> ListArchive(const ImageWork& work, const std::string& path) {
  RETURN_IF_ERROR(FindImagePrograms());
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    // FOLDER:NAME is one image of a layout.
    const int error = errno;
    const std::string folder = path.substr(0, path.find(':'));
    if (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
      return Error(error == ENOENT ? Reason::kNotFound : Reason::kInvalid,
                   "{} on the node's machine: {}; {}", path, strerror(error), kLoadable);
    }
    return std::vector<ArchivedImage>{{"oci:" + path, path.substr(folder.size() + 1)}};
  }
  if (S_ISDIR(info.st_mode)) return ListLayout(path);
  const std::string docker = "docker-archive:" + path;
  const Result<ProgramResult> listed =
      RunTool(work, {"skopeo", "list-tags", docker}, work.timeouts.resolve, NothingToWatch);
  if (!listed) return ListOciArchive(work, path, listed.error());
  std::vector<ArchivedImage> out;
  const Result<json::Value> tags = json::Parse(listed->out);
  for (const json::Value& tag : tags.value_or(json::Value())["Tags"].items())
    out.push_back({docker + ":" + tag.Str(), tag.Str()});
  if (out.empty()) out.push_back({docker, ""});
  return out;
}

Status RemoveImageRoot(const std::string& data_dir, const std::string& root) {
  return RemoveTree(ImageRoot(data_dir, root));
}

void RemoveBlobsExcept(const std::string& data_dir, const std::set<std::string>& digests) {
  for (const std::string& name : ListDir(BlobsDir(data_dir))) {
    if (!digests.contains("sha256:" + name))
      (void)unlink((BlobsDir(data_dir) + "/" + name).c_str());
  }
}

}  // namespace muster::agent
