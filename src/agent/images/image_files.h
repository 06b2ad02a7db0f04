// src/agent/images/image_files.h
//
// The node's image cache on disk, and the programs that fill it:
//
//   DIR/images/index.json         what is here: ImageRecords
//   DIR/images/roots/<name>/      the files of one image, read-only by agreement
//   DIR/images/blobs/sha256/      manifests, configurations and layers, shared by all images
//   DIR/images/pulls/<name>/      one skopeo at work: an OCI layout whose blobs are the shared ones
//
// Life cycle: OpenImageFiles() once, before anything else.
// Thread:     blocking; for a pool. Several fetches may run at once.
// Invariants: a blob and an image's folder get their names when they are whole, so whatever dies
//             leaves nothing half-done; layers that were fetched are not fetched again. Only what
//             the index names counts; the rest is swept at the next start (folders) or by
//             RemoveBlobsExcept. Credentials are in a file of mode 0600 while a program needs them.

#pragma once

#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "agent/images/image_record.h"
#include "base/status.h"

namespace muster::agent {

inline constexpr Duration kResolveTimeout = minutes(2);
inline constexpr Duration kPullTimeout = hours(4);         // of one image
inline constexpr Duration kPullStallTimeout = minutes(5);  // without a byte, as containerd
inline constexpr size_t kMaxImageLayers = 500;
inline constexpr size_t kMaxManifestBytes = 4 * 1024 * 1024;  // as registries'

std::string ImagesDir(const std::string& data_dir);
std::string ImageRoot(const std::string& data_dir, const std::string& root);

// Makes the folders, removes what an earlier life left undone, and reads the index.
Result<std::vector<ImageRecord>> OpenImageFiles(const std::string& data_dir);
Status SaveImageIndex(const std::string& data_dir, const std::vector<ImageRecord>& records);

struct ImageSource {
  std::string location;     // as skopeo names it: "docker://nginx:1", "docker-archive:/x.tar"
  bool plain_http = false;  // allowed
  std::string auth_file;    // contents; "" = what the machine's own configuration says
};

struct ImageTimeouts {
  Duration resolve = kResolveTimeout, pull = kPullTimeout, stall = kPullStallTimeout;
};

struct ImageWork {
  std::string data_dir;
  std::string name;  // of its folders: no two at a time have the same
  const std::atomic<bool>* cancelled = nullptr;
  ImageTimeouts timeouts = {};
};

// Of the programs that fetch and unpack images: those that this machine lacks.
std::vector<std::string> MissingImagePrograms();
// Why images cannot be fetched on this machine, and what to install; Ok if they can.
Status FindImagePrograms();

struct ResolvedImage {
  std::string digest;     // of the manifest (or of the list of manifests) that the registry has
  int64_t new_bytes = 0;  // of layers that are not here; 0 when the list does not say
};
Result<ResolvedImage> ResolveImage(const ImageWork& work, const ImageSource& source);
// Fetches and unpacks. The record has no names, digests and time yet. RequestEntityTooLarge: the
// disk has no room for it.
Result<ImageRecord> FetchImage(const ImageWork& work, const ImageSource& source,
                               int64_t new_bytes = 0);

// What `path`, an OCI layout (or LAYOUT:NAME) or an archive of docker or OCI, holds. NotFound:
// there is nothing; Invalid: it is something else.
struct ArchivedImage {
  std::string location;  // for ImageSource
  std::string name;      // "" when it has none
};
Result<std::vector<ArchivedImage>> ListArchive(const ImageWork& work, const std::string& path);

Status RemoveImageRoot(const std::string& data_dir, const std::string& root);
// REQUIRES: no fetch is under way.
void RemoveBlobsExcept(const std::string& data_dir, const std::set<std::string>& digests);

}  // namespace muster::agent
