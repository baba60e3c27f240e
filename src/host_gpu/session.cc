#include "host_gpu/session.h"

#include <link.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "host_gpu/device_memory.h"

// Defined by the headers, in each source of the program.
extern "C" const int portolan_gpu_program_wave;

namespace portolan::gpu {
namespace {

constexpr size_t kMaxReports = 400;

int FindCodeBase(dl_phdr_info* info, size_t, void* data) {
  *static_cast<uintptr_t*>(data) = info->dlpi_addr;  // the first is the program
  return 1;
}

std::string Hex(uintptr_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "%lx", static_cast<unsigned long>(value));
  return text;
}

std::string PlaceText(const Place& place, uintptr_t base) {
  std::string text;
  for (int i = place.depth - 1; i >= 0; --i) {
    text += (text.empty() ? "" : ",") + Hex(place.address[static_cast<size_t>(i)] - base);
  }
  return text;
}

// An address of the device's that nobody has: reports it, opens the page and goes on. All else ends the program.
void OnBadAccess(int signal, siginfo_t* info, void* context) {
  const auto* machine = static_cast<const ucontext_t*>(context);
#if defined(__x86_64__)
  const auto code = static_cast<uintptr_t>(machine->uc_mcontext.gregs[REG_RIP]);
  const auto frame = static_cast<uintptr_t>(machine->uc_mcontext.gregs[REG_RBP]);
#elif defined(__aarch64__)
  const auto code = static_cast<uintptr_t>(machine->uc_mcontext.pc);
  const auto frame = static_cast<uintptr_t>(machine->uc_mcontext.regs[29]);
#endif
  Scheduler& scheduler = Scheduler::Get();
  Place place;
  if (scheduler.running()) CapturePlace(reinterpret_cast<void*>(frame), scheduler.current().base_frame, &place);
  if (place.depth < Place::kDepth) place.address[static_cast<size_t>(place.depth++)] = code + 1;
  const bool device = signal == SIGSEGV && DeviceMemory::Get().Contains(info->si_addr);
  const bool kernel = scheduler.running();
  std::string detail = device ? DeviceMemory::Get().Describe(info->si_addr)
                              : "address 0x" + Hex(reinterpret_cast<uintptr_t>(info->si_addr)) + " is not the device's";
  Session::Get().Report({device ? "out-of-bounds" : "crash", kernel ? scheduler.block().number : -1,
                         kernel ? scheduler.current().index : -1, place, nullptr, detail});
  if (device) {
    DeviceMemory::Get().OpenPage(info->si_addr);
    return;
  }
  Session::Get().Send("end\tsignal " + std::to_string(signal));
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);
}

}  // namespace

double RealSeconds() {
  timespec now = {};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Session::Session() {
  wave_size_ = portolan_gpu_program_wave;
  dl_iterate_phdr(&FindCodeBase, &code_base_);
  if (const char* setting = std::getenv("PORTOLAN_HOST_GPU"); setting != nullptr) {
    unsigned long long seed = 0;
    unsigned long long limit = memory_limit_;
    unsigned long long watched_launch = 0;
    unsigned long long watched_address = 0;
    std::sscanf(setting, "%d,%d,%llu,%d,%llu,%llu,%llu", &socket_, &memory_file_, &seed, &poison_, &limit,
                &watched_launch, &watched_address);
    watched_launch_ = watched_launch;
    watched_address_ = DeviceMemory::kBase + watched_address;
    schedule_.seed = seed;
    memory_limit_ = limit;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // when `portolan` is killed, nobody else would end a loop without launches
    unsetenv("PORTOLAN_HOST_GPU");     // a program that it starts is not part of the comparison
  }
  static char signal_stack[65536];
  stack_t stack = {};
  stack.ss_sp = signal_stack;
  stack.ss_size = sizeof signal_stack;
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = &OnBadAccess;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(signal, &action, nullptr);
}

void Session::Send(const std::string& line) {
  if (socket_ < 0) return;
  const std::string text = line + "\n";
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t got = send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) _exit(3);  // nobody listens any more
    sent += static_cast<size_t>(got);
  }
}

void Session::Wait() {
  if (socket_ < 0) return;
  char byte = 0;
  for (;;) {
    const ssize_t got = recv(socket_, &byte, 1, 0);
    if (got == 1) return;
    if (got < 0 && errno == EINTR) continue;
    _exit(3);
  }
}

void Session::Report(const Fault& fault) {
  if (reported_.size() >= kMaxReports) return;
  if (!reported_.insert({fault.kind, fault.place.innermost()}).second) return;
  if (socket_ < 0) {
    const char* kernel = Scheduler::Get().running() ? Scheduler::Get().launch().kernel : "";
    std::fprintf(stderr, "portolan: %s: %s: block %lld, work-item %d: %s\n", kernel, fault.kind,
                 static_cast<long long>(fault.block), fault.item, fault.detail.c_str());
    return;
  }
  Send("fault\t" + FaultText(fault));
}

std::string Session::FaultText(const Fault& fault) const {
  const char* kernel = Scheduler::Get().running() ? Scheduler::Get().launch().kernel : "";
  return std::string(fault.kind) + "\t" + kernel + "\t" + std::to_string(fault.block) + "\t" +
         std::to_string(fault.item) + "\t" + PlaceText(fault.place, code_base_) + "\t" +
         (fault.other == nullptr ? "" : PlaceText(*fault.other, code_base_)) + "\t" + fault.detail;
}

void Session::SetWriter(const Fault& writer) { writer_ = "writer\t" + FaultText(writer); }

void Session::BeforeLaunch(const LaunchSpec& launch) {
  watched_ = Scheduler::Get().launch_number() == watched_launch_ ? watched_address_ : 0;
  const uint64_t items = uint64_t{launch.grid.x} * launch.block.x;
  if (socket_ >= 0 && items > UINT32_MAX) {
    Send(std::string("grid\t") + launch.kernel + "\t" + launch.file + "\t" + std::to_string(launch.line) + "\t" +
         std::to_string(items));
  }
}

void Session::AfterLaunch(const LaunchSpec& launch) {
  watched_ = 0;
  if (socket_ < 0) return;
  if (!writer_.empty()) Send(std::exchange(writer_, {}));
  std::string pointers;
  for (int i = 0; i < launch.pointer_count; ++i) {
    const PointerArgument& argument = launch.pointers[i];
    const int buffer = DeviceMemory::Get().Find(argument.pointer);
    if (buffer < 0) continue;
    pointers += (pointers.empty() ? "" : ",") + std::to_string(buffer) + ":" + argument.type +
                std::to_string(argument.element_bytes) + (argument.written ? "w" : "r");
  }
  const auto size = [](const dim3& d) {
    return std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z);
  };
  Send(std::string("launch\t") + launch.kernel + "\t" + launch.file + "\t" + std::to_string(launch.line) + "\t" +
       size(launch.grid) + "\t" + size(launch.block) + "\t" + (launch.other_pointers ? "1" : "0") + "\t" + pointers);
  Wait();
}

void Session::Observe(const void* pointer, size_t bytes, const char* file, int line) {
  if (socket_ < 0) return;
  const int buffer = DeviceMemory::Get().Find(pointer);
  if (buffer < 0) return;
  const size_t offset = reinterpret_cast<uintptr_t>(pointer) - DeviceMemory::Get().buffer(buffer).begin;
  Send("observe\t" + std::to_string(buffer) + "\t" + std::to_string(offset) + "\t" + std::to_string(bytes) + "\t" +
       file + "\t" + std::to_string(line));
  Wait();
}

void Session::CheckSharedSize(const LaunchSpec& launch, size_t bytes) {
  if (socket_ < 0 || bytes < 32768) return;
  std::string line = std::string("shared\t") + launch.kernel + "\t" + launch.file + "\t" + std::to_string(launch.line) +
                     "\t" + std::to_string(bytes);
  if (shared_sizes_.insert(line).second) Send(line);
}

void Session::End(const std::string& why) {
  Send("end\t" + why);
  if (socket_ < 0) std::fprintf(stderr, "portolan: %s\n", why.c_str());
  std::fflush(nullptr);
  _exit(3);
}

void Unsupported(const char* what) { Session::Get().End(std::string("not supported: ") + what); }

}  // namespace portolan::gpu
