// A stand-in for libnvidia-ml.so.1, for machines without GPUs. What it says is in the file that the
// environment variable MUSTER_FAKE_NVML names, read again at every call:
//
//   driver 580.159.04
//   cuda 13000
//   gpu GPU-a                  begins a GPU; the lines that follow are about it
//   model NVIDIA H200
//   minor 0                    else: its place in the file; likewise numa 0
//   memory 150754820096        bytes; used 1073741824 likewise
//   pci 00000000:04:00.0
//   compute 9.0
//   util 37                    percent; memutil 12, temp 41 (degrees), power 123456 (milliwatts)
//   clock 1410                 MHz; max-clock likewise; ecc 2: memory errors
//   slow 8                     the bits of what holds it back
//   link GPU-b 18              so many links lead to that GPU
//   switch 18                  so many links lead to an NVSwitch
//   xid 79                     an error that the driver tells of once; a word after it (xid 79 2)
//                              makes it another one
//   no-xids 1                  the driver tells of none of this GPU
//   error 15                   every question about it is answered with this NVML error
// and, anywhere:
//   init 9                     nvmlInit answers with this error
//   hang                       calls do not return as long as the file says so
//
// As the real one it knows the number of GPUs from nvmlInit on: who wants to see that one has come
// or gone has to initialize it again.
//
// Thread: any, one at a time.

#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int kSuccess = 0, kUninitialized = 1, kInvalidArgument = 2, kNotSupported = 3;
constexpr int kNotFound = 6, kInsufficientSize = 7, kDriverNotLoaded = 9, kTimeout = 10;
constexpr int kGpuIsLost = 15;
constexpr unsigned long long kXidEvents = 8;
constexpr int kHangTurnMs = 20;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct Memory {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};

struct Event {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};

struct Gpu {
  std::string uuid;
  std::vector<std::string> xids = {};
  std::map<std::string, std::string> values;
  std::map<std::string, unsigned> links;

  std::string Text(const char* key, const std::string& otherwise) const {
    const auto found = values.find(key);
    return found == values.end() ? otherwise : found->second;
  }
  unsigned long long Number(const char* key, unsigned long long otherwise) const {
    const auto found = values.find(key);
    return found == values.end() ? otherwise : std::strtoull(found->second.c_str(), nullptr, 10);
  }
};

struct Machine {
  std::string driver = "580.159.04";
  int cuda = 13000;
  int init = kSuccess;
  bool hangs = false;
  std::vector<Gpu> gpus;
};

Machine ReadOnce() {
  Machine machine;
  const char* path = std::getenv("MUSTER_FAKE_NVML");
  std::ifstream file(path == nullptr ? "" : path);
  if (!file) machine.init = kDriverNotLoaded;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string key, value;
    words >> key >> std::ws;
    std::getline(words, value);
    if (key == "driver") machine.driver = value;
    if (key == "cuda") machine.cuda = std::atoi(value.c_str());
    if (key == "init") machine.init = std::atoi(value.c_str());
    if (key == "hang") machine.hangs = true;
    if (key == "gpu") machine.gpus.push_back({value, {}, {}, {}});
    if (machine.gpus.empty()) continue;
    Gpu& gpu = machine.gpus.back();
    if (key == "link") {
      const size_t space = value.find(' ');
      gpu.links[value.substr(0, space)] = static_cast<unsigned>(std::atoi(value.c_str() + space));
    } else if (key == "xid") {
      gpu.xids.push_back(value);
    } else {
      gpu.values[key] = value;
    }
  }
  return machine;
}

Machine Read() {
  Machine machine = ReadOnce();
  while (machine.hangs) {
    poll(nullptr, 0, kHangTurnMs);
    machine = ReadOnce();
  }
  return machine;
}

// What nvmlInit saw: handles are the addresses of its entries.
bool initialized = false;
std::vector<std::string>& Handles() {
  static std::vector<std::string> handles;
  return handles;
}

// As the real one: of GPUs that are registered, what comes after that, each once.
struct EventSet {
  std::set<std::string> registered;
  std::set<std::pair<std::string, std::string>> seen;  // uuid and line
};

int Put(const std::string& text, char* out, unsigned size) {
  if (text.size() + 1 > size) return kInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return kSuccess;
}

// The GPU that the handle means, as the file says now.
int Find(void* handle, Machine& machine, const Gpu*& gpu) {
  machine = Read();
  if (!initialized) return kUninitialized;
  for (const Gpu& candidate : machine.gpus) {
    if (candidate.uuid != *static_cast<std::string*>(handle)) continue;
    gpu = &candidate;
    return static_cast<int>(candidate.Number("error", kSuccess));
  }
  return kGpuIsLost;
}

std::string BusId(const Gpu& gpu, const Machine& machine) {
  char text[32];
  const auto place = static_cast<unsigned>(&gpu - machine.gpus.data());
  std::snprintf(text, sizeof text, "00000000:%02x:00.0", place + 4);
  return gpu.Text("pci", text);
}

const Gpu* ByUuid(const Machine& machine, const std::string& uuid) {
  for (const Gpu& gpu : machine.gpus) {
    if (gpu.uuid == uuid) return &gpu;
  }
  return nullptr;
}

// Links in order: those to GPUs, then those to switches.
struct Links {
  std::vector<const Gpu*> peers;  // nullptr: a switch
};

Links LinksOf(const Gpu& gpu, const Machine& machine) {
  Links out;
  for (const auto& [peer, count] : gpu.links)
    out.peers.insert(out.peers.end(), count, ByUuid(machine, peer));
  out.peers.insert(out.peers.end(), gpu.Number("switch", 0), nullptr);
  return out;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))
#define FIND_GPU(handle)    \
  Machine machine;          \
  const Gpu* gpu = nullptr; \
  if (const int code = Find(handle, machine, gpu); code != kSuccess) return code

EXPORT int nvmlInit_v2() {
  const Machine machine = Read();
  if (machine.init != kSuccess) return machine.init;
  initialized = true;
  Handles().clear();
  for (const Gpu& gpu : machine.gpus) Handles().push_back(gpu.uuid);
  return kSuccess;
}

EXPORT int nvmlShutdown() {
  initialized = false;
  return kSuccess;
}

EXPORT const char* nvmlErrorString(int code) {
  switch (code) {
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    case kGpuIsLost:
      return "GPU is lost";
    default:
      return "Unknown Error";
  }
}

EXPORT int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return Put(Read().driver, text, size);
}

EXPORT int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = Read().cuda;
  return kSuccess;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  (void)Read();
  *count = static_cast<unsigned>(Handles().size());
  return initialized ? kSuccess : kUninitialized;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (index >= Handles().size()) return kInvalidArgument;
  *handle = &Handles()[index];
  FIND_GPU(*handle);
  return kSuccess;
}

EXPORT int nvmlDeviceGetUUID(void* handle, char* text, unsigned size) {
  FIND_GPU(handle);
  return Put(gpu->uuid, text, size);
}

EXPORT int nvmlDeviceGetName(void* handle, char* text, unsigned size) {
  FIND_GPU(handle);
  return Put(gpu->Text("model", "NVIDIA H200"), text, size);
}

EXPORT int nvmlDeviceGetMinorNumber(void* handle, unsigned* minor) {
  FIND_GPU(handle);
  const auto place = static_cast<unsigned long long>(gpu - machine.gpus.data());
  *minor = static_cast<unsigned>(gpu->Number("minor", place));
  return kSuccess;
}

EXPORT int nvmlDeviceGetMemoryInfo(void* handle, Memory* memory) {
  FIND_GPU(handle);
  memory->total = gpu->Number("memory", 150754820096ULL);
  memory->used = gpu->Number("used", 0);
  memory->free = memory->total - memory->used;
  return kSuccess;
}

EXPORT int nvmlDeviceGetMemoryInfo_v2(void* handle, MemoryV2* memory) {
  if (memory->version != (sizeof(MemoryV2) | (2U << 24))) return kInvalidArgument;
  Memory plain = {};
  if (const int code = nvmlDeviceGetMemoryInfo(handle, &plain); code != kSuccess) return code;
  memory->total = plain.total;
  memory->reserved = 0;
  memory->free = plain.free;
  memory->used = plain.used;
  return kSuccess;
}

EXPORT int nvmlDeviceGetPciInfo_v3(void* handle, PciInfo* info) {
  FIND_GPU(handle);
  *info = {};
  return Put(BusId(*gpu, machine), info->bus_id, sizeof info->bus_id);
}

EXPORT int nvmlDeviceGetCudaComputeCapability(void* handle, int* major, int* minor) {
  FIND_GPU(handle);
  const std::string text = gpu->Text("compute", "9.0");
  *major = std::atoi(text.c_str());
  *minor = std::atoi(text.c_str() + text.find('.') + 1);
  return kSuccess;
}

EXPORT int nvmlDeviceGetMigMode(void* handle, unsigned* now, unsigned* pending) {
  FIND_GPU(handle);
  *now = *pending = 0;
  return gpu->Number("mig", 1) == 0 ? kNotSupported : kSuccess;
}

EXPORT int nvmlDeviceGetMemoryAffinity(void* handle, unsigned words, unsigned long* set, unsigned) {
  FIND_GPU(handle);
  const unsigned long long node = gpu->Number("numa", 0);
  if (node / 64 >= words) return kInsufficientSize;
  std::memset(set, 0, words * sizeof *set);
  set[node / 64] = 1UL << (node % 64);
  return kSuccess;
}

EXPORT int nvmlDeviceGetNvLinkState(void* handle, unsigned link, int* is_active) {
  FIND_GPU(handle);
  if (link >= LinksOf(*gpu, machine).peers.size()) return kNotSupported;
  *is_active = 1;
  return kSuccess;
}

EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* handle, unsigned link, PciInfo* info) {
  FIND_GPU(handle);
  const Links links = LinksOf(*gpu, machine);
  if (link >= links.peers.size()) return kNotFound;
  *info = {};
  const Gpu* peer = links.peers[link];
  return Put(peer == nullptr ? "00000000:c0:00.0" : BusId(*peer, machine), info->bus_id,
             sizeof info->bus_id);
}

EXPORT int nvmlDeviceGetP2PStatus(void* handle, void* other, int, int* status) {
  FIND_GPU(handle);
  const Gpu* peer = ByUuid(machine, *static_cast<std::string*>(other));
  const bool linked =
      peer != nullptr && (gpu->links.contains(peer->uuid) ||
                          (gpu->Number("switch", 0) > 0 && peer->Number("switch", 0) > 0));
  *status = linked ? 0 : 5;
  return kSuccess;
}

EXPORT int nvmlDeviceGetUtilizationRates(void* handle, Utilization* utilization) {
  FIND_GPU(handle);
  *utilization = {static_cast<unsigned>(gpu->Number("util", 0)),
                  static_cast<unsigned>(gpu->Number("memutil", 0))};
  return kSuccess;
}

EXPORT int nvmlDeviceGetTemperature(void* handle, int, unsigned* celsius) {
  FIND_GPU(handle);
  *celsius = static_cast<unsigned>(gpu->Number("temp", 30));
  return kSuccess;
}

EXPORT int nvmlDeviceGetPowerUsage(void* handle, unsigned* milliwatts) {
  FIND_GPU(handle);
  *milliwatts = static_cast<unsigned>(gpu->Number("power", 75000));
  return kSuccess;
}

EXPORT int nvmlDeviceGetClockInfo(void* handle, int, unsigned* mhz) {
  FIND_GPU(handle);
  *mhz = static_cast<unsigned>(gpu->Number("clock", 1410));
  return kSuccess;
}

EXPORT int nvmlDeviceGetMaxClockInfo(void* handle, int, unsigned* mhz) {
  FIND_GPU(handle);
  *mhz = static_cast<unsigned>(gpu->Number("max-clock", 1410));
  return kSuccess;
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void* handle, unsigned long long* reasons) {
  FIND_GPU(handle);
  *reasons = static_cast<unsigned long long>(gpu->Number("slow", 0));
  return kSuccess;
}

EXPORT int nvmlDeviceGetTotalEccErrors(void* handle, int, int, unsigned long long* errors) {
  FIND_GPU(handle);
  *errors = static_cast<unsigned long long>(gpu->Number("ecc", 0));
  return kSuccess;
}

EXPORT int nvmlEventSetCreate(EventSet** set) {
  *set = new EventSet();
  return kSuccess;
}

EXPORT int nvmlEventSetFree(EventSet* set) {
  delete set;
  return kSuccess;
}

EXPORT int nvmlDeviceRegisterEvents(void* handle, unsigned long long types, EventSet* set) {
  FIND_GPU(handle);
  if (types != kXidEvents || gpu->values.contains("no-xids")) return kNotSupported;
  set->registered.insert(gpu->uuid);
  for (const std::string& line : gpu->xids) set->seen.emplace(gpu->uuid, line);
  return kSuccess;
}

EXPORT int nvmlEventSetWait_v2(EventSet* set, Event* event, unsigned) {
  const Machine machine = Read();
  for (std::string& uuid : Handles()) {
    const Gpu* gpu = ByUuid(machine, uuid);
    if (gpu == nullptr || !set->registered.contains(uuid)) continue;
    for (const std::string& line : gpu->xids) {
      if (!set->seen.emplace(uuid, line).second) continue;
      *event = {&uuid, kXidEvents, std::strtoull(line.c_str(), nullptr, 10), 0, 0};
      return kSuccess;
    }
  }
  return kTimeout;
}
