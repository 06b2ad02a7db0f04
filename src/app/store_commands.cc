#include "app/store_commands.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "agent/network/address_ranges.h"
#include "app/data_dir.h"
#include "app/instance_lock.h"
#include "app/up_options.h"
#include "base/files.h"
#include "cli/console.h"
#include "cli/session.h"
#include "json/parse.h"
#include "store/store_backup.h"
#include "store/store_check.h"

namespace muster::app {
namespace {

namespace fs = std::filesystem;

using cli::Arguments;
using cli::Command;
using cli::Console;

const cli::Flag kDataDirFlag = {"data-dir", 0, "DIR", "of the cluster (default: as `muster up`)",
                                "",         {}};

Result<std::string> DataDirOf(const Arguments& arguments) {
  return AbsoluteDataDir(arguments.Has("data-dir") ? arguments.Get("data-dir")
                                                   : cli::DefaultDataDir());
}
std::string StoreFolder(const std::string& dir) { return dir + "/store"; }
std::string DatabaseOf(const std::string& dir) { return StoreFolder(dir) + "/muster.db"; }

Result<std::string> OneFile(const Arguments& arguments) {
  std::error_code error;
  const fs::path path = fs::absolute(arguments.positionals[0], error);
  if (error) return Error(Reason::kInvalid, "{:?}: {}", arguments.positionals[0], error.message());
  return path.string();
}

Status CheckDataDir(const std::string& dir) {
  RETURN_IF_ERROR(CheckOwner(dir));
  if (IsDataDir(dir)) return Status::Ok();
  return Error(Reason::kNotFound,
               "{} is not a data directory of muster: name the one of `muster up` with --data-dir",
               dir);
}

// An object as the API server stores it: JSON with the name that its key ends with.
Status CheckObject(std::string_view key, std::string_view value) {
  const Result<json::Value> object = json::Parse(value);
  if (!object) return object.error();
  const std::string_view name = (*object)["metadata"]["name"].AsString();
  if (name == key.substr(key.rfind('/') + 1)) return Status::Ok();
  return Error(Reason::kInvalid, "metadata.name is {:?}", name);
}

store::Progress ShowOn(Console& console, std::string doing) {
  return [&console, doing = std::move(doing)](int64_t done, int64_t total) {
    const int64_t percent = total > 0 ? std::min<int64_t>(100, done * 100 / total) : 0;
    console.StatusLine(fmt::format("{} {} %", doing, percent));
  };
}

std::string Megabytes(int64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

// --- check-store

Result<int> CheckStoreFile(const Arguments& arguments, Console& console) {
  std::string path;
  if (arguments.positionals.empty()) {
    ASSIGN_OR_RETURN(const std::string dir, DataDirOf(arguments));
    RETURN_IF_ERROR(CheckDataDir(dir));
    path = DatabaseOf(dir);
  } else {
    ASSIGN_OR_RETURN(path, OneFile(arguments));
  }
  ASSIGN_OR_RETURN(const store::StoreReport report,
                   store::CheckStore(path, CheckObject, ShowOn(console, "checking " + path)));
  console.StatusLine("");
  for (const std::string& fault : report.faults) console.Print("fault: {}\n", fault);
  console.Print("{}: {} objects at revision {}, compacted up to {}, {} revisions in the log ({})\n",
                path, report.objects, report.revision, report.compacted, report.revisions,
                Megabytes(report.bytes));
  if (report.fault_count == 0) {
    console.Print("no faults\n");
    return 0;
  }
  console.Err(
      fmt::format("error: {} faults: restore a backup (muster restore), or keep a copy of "
                  "the file and ask for help",
                  report.fault_count));
  return 1;
}

// --- backup

std::vector<store::ExtraFile> KeysOf(const std::string& dir) {
  std::vector<store::ExtraFile> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(dir + "/pki", ignored)) {
    if (!entry.is_regular_file(ignored)) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files.push_back({"pki/" + entry.path().filename().string(),
                     std::string(std::istreambuf_iterator<char>(file), {})});
  }
  // Services hold addresses of these.
  const std::string ranges(agent::kAddressRangesFile);
  if (const auto text = ReadSmallFile(dir + "/" + ranges); text) files.push_back({ranges, *text});
  return files;
}

Result<int> BackUp(const Arguments& arguments, Console& console) {
  ASSIGN_OR_RETURN(const std::string file, OneFile(arguments));
  ASSIGN_OR_RETURN(const std::string dir, DataDirOf(arguments));
  RETURN_IF_ERROR(CheckDataDir(dir));
  // Held until the end where no cluster runs, so that none starts meanwhile; a running one is fine,
  // and so is a disk that is full or read-only: nothing starts there.
  const Result<InstanceLock> lock = InstanceLock::Take(dir);
  const bool running = !lock && lock.error().reason() == Reason::kConflict;
  const std::vector<store::ExtraFile> keys = KeysOf(dir);
  ASSIGN_OR_RETURN(const store::StoreReport report,
                   store::BackUpStore(DatabaseOf(dir), file, keys, CheckObject,
                                      ShowOn(console, "backing up " + dir)));
  console.StatusLine("");
  std::error_code ignored;
  console.Print(
      "backed up {} ({}): {} objects at revision {}, {} key files, {}\n"
      "{} holds every Secret and the cluster's keys: keep it as you keep those\n",
      dir, running ? "running" : "not running", report.objects, report.revision, keys.size(),
      Megabytes(static_cast<int64_t>(fs::file_size(file, ignored))), file);
  return 0;
}

// --- restore

// Only names that a backup of ours can have.
bool IsKeyFile(const std::string& name) {
  if (name == agent::kAddressRangesFile) return true;
  return name.starts_with("pki/") && name.find('/', 4) == std::string::npos &&
         name.find("..") == std::string::npos && name.size() > 4;
}

Status WriteKeys(const std::string& dir, const std::vector<store::ExtraFile>& files) {
  for (const store::ExtraFile& file : files) {
    if (!IsKeyFile(file.name)) continue;
    const std::string path = dir + "/" + file.name;
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const bool written = fd >= 0 &&
                         write(fd, file.content.data(), file.content.size()) ==
                             static_cast<ssize_t>(file.content.size()) &&
                         fsync(fd) == 0;
    const int error = errno;
    if (fd >= 0) close(fd);
    if (!written)
      return Error(Reason::kInternalError, "cannot write {}: {}", path, std::strerror(error));
  }
  return Status::Ok();
}

// Puts the new store in the place of the old one, which moves into it as `replaced`.
Status SwapStores(const std::string& fresh, const std::string& current) {
  std::error_code error;
  // Exchanged in one step: a crash leaves one or the other, each whole.
  if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, current.c_str(), RENAME_EXCHANGE) != 0)
    return Error(Reason::kInternalError, "cannot exchange {} and {}: {}", fresh, current,
                 std::strerror(errno));
  fs::remove_all(fresh + "/replaced", error);
  fs::rename(fresh, current + "/replaced", error);
  if (error)
    return Error(Reason::kInternalError,
                 "the restored store is in place, the old one stays at {}: {}", fresh,
                 error.message());
  return Status::Ok();
}

Result<int> Restore(const Arguments& arguments, Console& console) {
  ASSIGN_OR_RETURN(const std::string file, OneFile(arguments));
  ASSIGN_OR_RETURN(const std::string dir, DataDirOf(arguments));
  const Result<std::vector<store::ExtraFile>> files = store::ReadExtraFiles(file);
  if (!files) return Error(files.error().WithPrefix("nothing was changed: "));
  RETURN_IF_ERROR(MakeDataDir(dir));
  ASSIGN_OR_RETURN(const InstanceLock lock, InstanceLock::Take(dir));
  std::error_code ignored;
  const bool occupied = !fs::is_empty(StoreFolder(dir), ignored);
  if (occupied && !arguments.Has("force"))
    return Error(Reason::kConflict,
                 "{} holds a cluster already: name another --data-dir, or replace it with --force "
                 "(it is kept in {}/replaced)",
                 dir, StoreFolder(dir));
  const std::string folder = dir + "/store.restoring";
  fs::remove_all(folder, ignored);  // of a restore that was interrupted
  Result<store::StoreReport> report = store::RestoreStore(file, folder + "/muster.db", CheckObject,
                                                          ShowOn(console, "restoring " + file));
  console.StatusLine("");
  if (!report) {
    fs::remove_all(folder, ignored);
    return Error(report.error().WithPrefix("nothing was changed: "));
  }
  RETURN_IF_ERROR(SwapStores(folder, StoreFolder(dir)));
  if (!occupied) fs::remove_all(StoreFolder(dir) + "/replaced", ignored);
  const bool own_keys = fs::exists(dir + "/pki/ca.crt", ignored);
  if (!own_keys) RETURN_IF_ERROR(WriteKeys(dir, *files));
  console.Print("restored {} objects to {}, which goes on at revision {}\n{}\n", report->objects,
                dir, report->revision,
                own_keys ? "the keys in " + dir + "/pki stay as they were"
                         : fmt::format("{} key files are restored, too", files->size()));
  if (occupied)
    console.Print("the cluster that was there is kept in {}/replaced\n", StoreFolder(dir));
  console.Print("start it: muster up --data-dir {}\n", dir);
  return 0;
}

}  // namespace

std::vector<Command> StoreCommands() {
  Command backup;
  backup.name = "backup";
  backup.summary = "copy a cluster's state to a file";
  backup.usage = "FILE [flags]";
  backup.details =
      "One file with every object and the cluster's keys (DIR/pki), consistent and verified, mode\n"
      "0600. It holds every Secret: keep it safe. The cluster may be running. Volumes, logs and\n"
      "images of pods are not in it.";
  backup.flags = {kDataDirFlag};
  backup.examples = {{"muster backup /safe/monday.db", "of the cluster on this machine"},
                     {"muster backup b.db --data-dir /srv/muster", "of another one"}};
  backup.least_words = backup.most_words = 1;
  backup.local = true;
  backup.run_offline = BackUp;

  Command restore;
  restore.name = "restore";
  restore.summary = "make a cluster from a backup";
  restore.usage = "FILE [flags]";
  restore.details =
      "Verifies the file, then puts it in place in one step. A cluster that is there is replaced\n"
      "only with --force, and kept in DIR/store/replaced; its own keys stay. Revisions go on a\n"
      "billion higher than in the backup, so that clients list again instead of trusting what "
      "they\n"
      "saw. The cluster must not be running.";
  restore.flags = {kDataDirFlag, {"force", 0, "", "replace the cluster that is there", "", {}}};
  restore.examples = {{"muster restore /safe/monday.db --data-dir /srv/new", "on a new machine"},
                      {"muster down && muster restore b.db --force", "go back to a backup"}};
  restore.least_words = restore.most_words = 1;
  restore.local = true;
  restore.run_offline = Restore;

  Command check;
  check.name = "check-store";
  check.summary = "look for damage in a cluster's state";
  check.usage = "[FILE] [flags]";
  check.details =
      "Reads every page and every object of the store, or of a backup: the file's structure, the\n"
      "revisions (none missing, none lost that were acknowledged), each object's JSON, name and\n"
      "revision. Changes nothing, works on a read-only disk; the cluster may be running. Exit "
      "code\n"
      "1 if anything is wrong.";
  check.flags = {kDataDirFlag};
  check.examples = {{"muster check-store", "the cluster on this machine"},
                    {"muster check-store monday.db", "a backup"}};
  check.most_words = 1;
  check.local = true;
  check.run_offline = CheckStoreFile;
  return {std::move(backup), std::move(restore), std::move(check)};
}

}  // namespace muster::app
