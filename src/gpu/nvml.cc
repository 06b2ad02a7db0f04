#include "gpu/nvml.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

#include "base/files.h"
#include "base/strings.h"

namespace muster::gpu {
namespace {

// The part of NVML's C interface that is used; numbers and layouts are the library's ABI, which
// has been kept since the versions named by the suffixes.
using Return = int;
using Device = void*;
constexpr Return kSuccess = 0;
constexpr Return kDriverNotLoaded = 9;
constexpr Return kGpuIsLost = 15;
constexpr Return kResetRequired = 16;
constexpr Return kUnknownError = 999;
constexpr unsigned kTextBytes = 96;
constexpr unsigned kMaxLinks = 36;  // NVLinks of one GPU: 18 on Hopper and Blackwell
constexpr int kP2pNvlink = 2;
constexpr int kP2pOk = 0;
constexpr int kTemperatureOfGpu = 0;
constexpr int kSmClock = 1;
constexpr int kUncorrected = 1, kSinceLoaded = 0;  // kinds of memory errors, and of their counters
constexpr unsigned kAffinityOfNode = 0;
constexpr size_t kNumaWords = 16;
constexpr unsigned long long kXidEvents = 8;

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
  Device device;
  unsigned long long type, data;  // data: the XID
  unsigned gpu_instance, compute_instance;
};
using EventSet = void*;
constexpr unsigned kMemoryV2 = sizeof(MemoryV2) | (2U << 24);

// A text that the library fills.
template <class Function, class... Front>
std::string Text(Function function, Front... front) {
  char text[kTextBytes] = {};
  if (function == nullptr || function(front..., text, kTextBytes) != kSuccess) return "";
  text[kTextBytes - 1] = '\0';
  return text;
}

// /sys/bus/pci/devices/0000:04:00.0/class of "00000000:04:00.0"; 0 where there is none.
int64_t PciClass(const std::string& bus_id) {
  if (bus_id.size() < 5) return 0;
  const std::string path =
      "/sys/bus/pci/devices/" + ToLower(std::string_view(bus_id).substr(4)) + "/class";
  const auto text = ReadSmallFile(path, 64);
  return text ? static_cast<int64_t>(std::strtoul(text->c_str(), nullptr, 16)) : 0;
}

// What is there of the files that every user of a GPU needs beside the GPU's own.
std::vector<std::string> ControlFiles() {
  std::vector<std::string> out;
  for (const char* file : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"}) {
    std::error_code error;
    if (std::filesystem::exists(file, error)) out.emplace_back(file);
  }
  return out;
}

}  // namespace

struct Nvml::Library {
  void* handle = nullptr;
  std::string path;
  bool initialized = false;

  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error_string)(Return) = nullptr;
  Return (*driver_version)(char*, unsigned) = nullptr;
  Return (*cuda_version)(int*) = nullptr;
  Return (*count)(unsigned*) = nullptr;
  Return (*by_index)(unsigned, Device*) = nullptr;
  Return (*name)(Device, char*, unsigned) = nullptr;
  Return (*uuid)(Device, char*, unsigned) = nullptr;
  Return (*minor)(Device, unsigned*) = nullptr;
  Return (*memory)(Device, Memory*) = nullptr;
  Return (*memory_v2)(Device, MemoryV2*) = nullptr;
  Return (*pci)(Device, PciInfo*) = nullptr;
  Return (*compute_capability)(Device, int*, int*) = nullptr;
  Return (*mig_mode)(Device, unsigned*, unsigned*) = nullptr;
  Return (*memory_affinity)(Device, unsigned, unsigned long*, unsigned) = nullptr;
  Return (*link_state)(Device, unsigned, int*) = nullptr;
  Return (*link_peer)(Device, unsigned, PciInfo*) = nullptr;
  Return (*p2p_status)(Device, Device, int, int*) = nullptr;
  Return (*utilization)(Device, Utilization*) = nullptr;
  Return (*temperature)(Device, int, unsigned*) = nullptr;
  Return (*power)(Device, unsigned*) = nullptr;
  Return (*clock)(Device, int, unsigned*) = nullptr;
  Return (*max_clock)(Device, int, unsigned*) = nullptr;
  Return (*slowdown_reasons)(Device, unsigned long long*) = nullptr;
  Return (*memory_errors)(Device, int, int, unsigned long long*) = nullptr;
  Return (*event_set_create)(EventSet*) = nullptr;
  Return (*event_set_free)(EventSet) = nullptr;
  Return (*event_set_wait)(EventSet, Event*, unsigned timeout_ms) = nullptr;
  Return (*register_events)(Device, unsigned long long, EventSet) = nullptr;

  // What does not change while the library is initialized.
  Inventory known;
  std::vector<Device> devices;                    // as known.gpus
  EventSet events = nullptr;                      // nullptr: there are none to wait for
  std::map<std::string, std::set<int64_t>> xids;  // by uuid: not told yet

  ~Library();
  bool Load();
  Status Describe(const char* what, Return code) const;
  std::string Words(Return code) const;
  Status Start();
  void Stop();
  void Identify(unsigned index);
  int64_t NumaNode(Device device) const;
  void FindLinks();
  void Measure(Gpu& gpu, Device device) const;
  void MeasurePace(GpuPace& pace, Device device) const;
  void WatchXids();
  void TakeXids();

 private:
  template <class Function>
  bool Find(Function& function, const char* symbol) const {
    function = reinterpret_cast<Function>(dlsym(handle, symbol));
    return function != nullptr;
  }
};

Nvml::Library::~Library() {
  Stop();
  // Never unloaded: the library leaves threads and handlers behind.
}

bool Nvml::Library::Load() {
  Find(error_string, "nvmlErrorString");
  Find(driver_version, "nvmlSystemGetDriverVersion");
  if (!Find(cuda_version, "nvmlSystemGetCudaDriverVersion_v2"))
    Find(cuda_version, "nvmlSystemGetCudaDriverVersion");
  Find(minor, "nvmlDeviceGetMinorNumber");
  Find(memory, "nvmlDeviceGetMemoryInfo");
  Find(memory_v2, "nvmlDeviceGetMemoryInfo_v2");
  Find(pci, "nvmlDeviceGetPciInfo_v3");
  Find(compute_capability, "nvmlDeviceGetCudaComputeCapability");
  Find(mig_mode, "nvmlDeviceGetMigMode");
  Find(memory_affinity, "nvmlDeviceGetMemoryAffinity");
  Find(link_state, "nvmlDeviceGetNvLinkState");
  Find(link_peer, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  Find(p2p_status, "nvmlDeviceGetP2PStatus");
  Find(utilization, "nvmlDeviceGetUtilizationRates");
  Find(temperature, "nvmlDeviceGetTemperature");
  Find(power, "nvmlDeviceGetPowerUsage");
  Find(clock, "nvmlDeviceGetClockInfo");
  Find(max_clock, "nvmlDeviceGetMaxClockInfo");
  if (!Find(slowdown_reasons, "nvmlDeviceGetCurrentClocksEventReasons"))
    Find(slowdown_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  Find(memory_errors, "nvmlDeviceGetTotalEccErrors");
  if (!Find(event_set_wait, "nvmlEventSetWait_v2")) Find(event_set_wait, "nvmlEventSetWait");
  Find(event_set_create, "nvmlEventSetCreate");
  Find(event_set_free, "nvmlEventSetFree");
  Find(register_events, "nvmlDeviceRegisterEvents");
  return Find(init, "nvmlInit_v2") && Find(shutdown, "nvmlShutdown") &&
         Find(count, "nvmlDeviceGetCount_v2") && Find(by_index, "nvmlDeviceGetHandleByIndex_v2") &&
         Find(name, "nvmlDeviceGetName") && Find(uuid, "nvmlDeviceGetUUID");
}

std::string Nvml::Library::Words(Return code) const {
  const char* words = error_string == nullptr ? nullptr : error_string(code);
  return fmt::format("{} (NVML error {})", words == nullptr ? "failed" : words, code);
}

Status Nvml::Library::Describe(const char* what, Return code) const {
  const Reason reason = code == kDriverNotLoaded ? Reason::kNotFound : Reason::kServiceUnavailable;
  return Error(reason, "{}: {}", what, Words(code));
}

Status Nvml::Library::Start() {
  if (const Return code = init(); code != kSuccess) return Describe("nvmlInit", code);
  initialized = true;
  known = Inventory();
  known.library = path;
  known.driver_version = Text(driver_version);
  int cuda = 0;
  if (cuda_version != nullptr && cuda_version(&cuda) == kSuccess) known.cuda_version = cuda;
  unsigned present = 0;
  if (const Return code = count(&present); code != kSuccess)
    return Describe("nvmlDeviceGetCount", code);
  for (unsigned i = 0; i < std::min<unsigned>(present, kMaxGpusPerNode); ++i) Identify(i);
  FindLinks();
  WatchXids();
  return Status::Ok();
}

void Nvml::Library::Stop() {
  if (events != nullptr) event_set_free(std::exchange(events, nullptr));
  if (initialized) shutdown();
  initialized = false;
  devices.clear();
}

void Nvml::Library::Identify(unsigned index) {
  Device device = nullptr;
  const Return code = by_index(index, &device);
  Gpu gpu;
  if (code == kSuccess) gpu.uuid = Text(uuid, device);
  if (gpu.uuid.empty()) {
    known.fault = fmt::format("GPU {}: {}", index,
                              code == kSuccess ? std::string("it has no UUID") : Words(code));
    return;
  }
  gpu.index = index;
  gpu.model = Text(name, device);
  unsigned number = index;
  if (minor != nullptr) (void)minor(device, &number);
  gpu.minor = number;
  Memory amounts = {};
  if (memory != nullptr && memory(device, &amounts) == kSuccess)
    gpu.memory_bytes = static_cast<int64_t>(amounts.total);
  PciInfo info = {};
  if (pci != nullptr && pci(device, &info) == kSuccess) {
    info.bus_id[sizeof info.bus_id - 1] = '\0';
    gpu.pci_bus_id = info.bus_id;
    gpu.pci_class = PciClass(gpu.pci_bus_id);
  }
  int major_version = 0, minor_version = 0;
  if (compute_capability != nullptr &&
      compute_capability(device, &major_version, &minor_version) == kSuccess) {
    gpu.compute_major = major_version;
    gpu.compute_minor = minor_version;
  }
  unsigned now = 0, pending = 0;
  gpu.mig_capable = mig_mode != nullptr && mig_mode(device, &now, &pending) == kSuccess;
  gpu.numa_node = NumaNode(device);
  known.gpus.push_back(std::move(gpu));
  devices.push_back(device);
}

int64_t Nvml::Library::NumaNode(Device device) const {
  unsigned long words[kNumaWords] = {};
  if (memory_affinity == nullptr ||
      memory_affinity(device, kNumaWords, words, kAffinityOfNode) != kSuccess) {
    return -1;
  }
  for (size_t bit = 0; bit < kNumaWords * 64; ++bit) {
    if ((words[bit / 64] >> (bit % 64)) & 1) return static_cast<int64_t>(bit);
  }
  return -1;
}

// A link that names a GPU leads there. Others lead to a switch, behind which are all GPUs that the
// driver says can be reached over NVLink.
void Nvml::Library::FindLinks() {
  if (link_state == nullptr) return;
  const size_t size = devices.size();
  std::vector<int64_t> active(size, 0);
  std::vector<std::map<std::string, int64_t>> direct(size);  // by PCI bus id
  for (size_t i = 0; i < size; ++i) {
    for (unsigned link = 0; link < kMaxLinks; ++link) {
      int is_active = 0;
      if (link_state(devices[i], link, &is_active) != kSuccess || is_active == 0) continue;
      ++active[i];
      PciInfo info = {};
      if (link_peer == nullptr || link_peer(devices[i], link, &info) != kSuccess) continue;
      info.bus_id[sizeof info.bus_id - 1] = '\0';
      ++direct[i][info.bus_id];
    }
  }
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j < size; ++j) {
      if (i == j) continue;
      int64_t links = 0;
      int status = -1;
      if (const auto found = direct[i].find(known.gpus[j].pci_bus_id); found != direct[i].end()) {
        links = found->second;
      } else if (p2p_status != nullptr &&
                 p2p_status(devices[i], devices[j], kP2pNvlink, &status) == kSuccess &&
                 status == kP2pOk) {
        links = std::min(active[i], active[j]);
      }
      if (links > 0) known.gpus[i].links[known.gpus[j].uuid] = links;
    }
  }
}

void Nvml::Library::Measure(Gpu& gpu, Device device) const {
  const auto took = [&](Return code) {
    if (code == kGpuIsLost || code == kResetRequired) gpu.fault = Words(code);
    return code == kSuccess;
  };
  // Every GPU tells its memory; other figures are "unknown" on some that work.
  const auto must = [&](Return code) {
    if (code == kUnknownError) gpu.fault = Words(code);
    return took(code);
  };
  Utilization busy = {};
  if (utilization != nullptr && took(utilization(device, &busy))) {
    gpu.sample.utilization_percent = busy.gpu;
    gpu.sample.memory_busy_percent = busy.memory;
  }
  MemoryV2 amounts = {};
  amounts.version = kMemoryV2;
  Memory old_amounts = {};
  if (memory_v2 != nullptr && took(memory_v2(device, &amounts))) {
    gpu.sample.memory_used_bytes = static_cast<int64_t>(amounts.used);
    gpu.sample.memory_free_bytes = static_cast<int64_t>(amounts.free);
  } else if (memory != nullptr && must(memory(device, &old_amounts))) {
    gpu.sample.memory_used_bytes = static_cast<int64_t>(old_amounts.used);
    gpu.sample.memory_free_bytes = static_cast<int64_t>(old_amounts.free);
  }
  unsigned value = 0;
  if (temperature != nullptr && took(temperature(device, kTemperatureOfGpu, &value)))
    gpu.sample.temperature_celsius = value;
  if (power != nullptr && took(power(device, &value))) gpu.sample.power_milliwatts = value;
}

// Not every GPU tells: those without ECC, those of a hypervisor.
void Nvml::Library::MeasurePace(GpuPace& pace, Device device) const {
  unsigned mhz = 0;
  if (clock != nullptr && clock(device, kSmClock, &mhz) == kSuccess) pace.sm_clock_mhz = mhz;
  if (max_clock != nullptr && max_clock(device, kSmClock, &mhz) == kSuccess)
    pace.max_sm_clock_mhz = mhz;
  unsigned long long value = 0;
  if (slowdown_reasons != nullptr && slowdown_reasons(device, &value) == kSuccess)
    pace.slowdown_reasons = static_cast<int64_t>(value);
  if (memory_errors != nullptr &&
      memory_errors(device, kUncorrected, kSinceLoaded, &value) == kSuccess)
    pace.uncorrected_errors = static_cast<int64_t>(value);
}

void Nvml::Library::WatchXids() {
  if (event_set_create == nullptr || event_set_free == nullptr || event_set_wait == nullptr ||
      register_events == nullptr || event_set_create(&events) != kSuccess) {
    events = nullptr;
    return;
  }
  for (size_t i = 0; i < devices.size(); ++i)
    known.gpus[i].tells_xids = register_events(devices[i], kXidEvents, events) == kSuccess;
}

// The driver keeps what has come meanwhile; nothing is waited for.
void Nvml::Library::TakeXids() {
  if (events == nullptr) return;
  for (size_t i = 0; i < kMaxXidsPerLook; ++i) {
    Event event = {};
    if (event_set_wait(events, &event, 0) != kSuccess) return;
    if ((event.type & kXidEvents) == 0) continue;
    // One that belongs to none of them may concern them all, as NVIDIA's device plugin sees it.
    const bool of_none = std::ranges::find(devices, event.device) == devices.end();
    for (size_t gpu = 0; gpu < devices.size(); ++gpu) {
      if (of_none || devices[gpu] == event.device)
        xids[known.gpus[gpu].uuid].insert(static_cast<int64_t>(event.data));
    }
  }
}

Nvml::Nvml(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Nvml::Nvml(Nvml&&) noexcept = default;
Nvml& Nvml::operator=(Nvml&&) noexcept = default;
Nvml::~Nvml() = default;

Result<Nvml> Nvml::Open(const std::string& name) {
  auto library = std::make_unique<Library>();
  library->handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library->handle == nullptr) {
    const char* why = dlerror();
    return Error(Reason::kNotFound, "{}", why == nullptr ? name.c_str() : why);
  }
  if (!library->Load()) return Error(Reason::kNotFound, "{} is no NVML library", name);
  link_map* map = nullptr;
  if (dlinfo(library->handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) {
    char resolved[PATH_MAX];
    library->path = realpath(map->l_name, resolved) == nullptr ? map->l_name : resolved;
  }
  return Nvml(std::move(library));
}

Result<Inventory> Nvml::Read(bool anew) {
  library_->TakeXids();
  if (anew) library_->Stop();
  if (!library_->initialized) {
    if (Status status = library_->Start(); !status.ok()) {
      library_->Stop();
      return Error(std::move(status));
    }
  }
  Inventory out = library_->known;
  out.control_files = ControlFiles();
  for (size_t i = 0; i < out.gpus.size(); ++i) {
    library_->Measure(out.gpus[i], library_->devices[i]);
    library_->MeasurePace(out.gpus[i].pace, library_->devices[i]);
  }
  for (Gpu& gpu : out.gpus) {
    const std::set<int64_t>& xids = library_->xids[gpu.uuid];
    gpu.xids.assign(xids.begin(), xids.end());
  }
  library_->xids.clear();
  return out;
}

}  // namespace muster::gpu
