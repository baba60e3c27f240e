#include "porting/verify/co_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <set>

#include "base/text.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves its declaration to the program

namespace portolan {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kDeviceBytes = size_t{1} << 39;  // DeviceMemory::kBytes of src/host_gpu/device_memory.h
constexpr size_t kLargestOutput = size_t{4} << 20;
constexpr size_t kMostDifferences = 200;
// The limit is on processor time, so that a busy machine does not decide; a program that sleeps ends all the same.
constexpr int kClockPerProcessorTime = 8;

int64_t Number(const std::string& text) { return std::strtoll(text.c_str(), nullptr, 10); }

CodePlace ReadPlace(const std::string& text) {
  CodePlace place;
  for (const std::string& address : Split(text, ',')) {
    if (!address.empty()) place.addresses.push_back(std::strtoull(address.c_str(), nullptr, 16));
  }
  return place;
}

struct Buffer {
  int64_t offset = 0;
  int64_t bytes = 0;
  bool alive = false;
  ElementType type;
  bool typed = false;
};

// A running program and what it has said so far.
class Side {
 public:
  ~Side() {
    Kill();
    for (const int file : {memory_file_, socket_, output_}) {
      if (file >= 0) close(file);
    }
    if (memory_ != nullptr) munmap(memory_, kDeviceBytes);
  }

  Status Start(const RunSide& side, const RunOptions& options, SideResult* result) {
    result_ = result;
    memory_file_ = memfd_create("portolan", 0);
    if (memory_file_ < 0 || ftruncate(memory_file_, static_cast<off_t>(kDeviceBytes)) != 0) {
      return MakeError(ErrorCode::kIo, "the system gives no memory file");
    }
    void* map = mmap(nullptr, kDeviceBytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, memory_file_, 0);
    if (map == MAP_FAILED) return MakeError(ErrorCode::kIo, "the system gives no address space for device memory");
    memory_ = static_cast<uint8_t*>(map);
    std::array<int, 2> sockets = {-1, -1};
    std::array<int, 2> pipes = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0 ||
        pipe2(pipes.data(), O_CLOEXEC) != 0) {
      return MakeError(ErrorCode::kIo, "the system gives no pipe");
    }
    socket_ = sockets[0];
    output_ = pipes[0];
    fcntl(sockets[1], F_SETFD, 0);
    const std::string setting =
        fmt::format("PORTOLAN_HOST_GPU={},{},{},{},{},{},{}", sockets[1], memory_file_, side.seed, side.fill,
                    options.memory_limit, options.watch.launch, options.watch.address);
    std::vector<char*> environment;
    for (char** variable = environ; *variable != nullptr; ++variable) environment.push_back(*variable);
    environment.push_back(const_cast<char*>(setting.c_str()));
    environment.push_back(nullptr);
    std::vector<std::string> words = {side.name};
    words.insert(words.end(), side.arguments.begin(), side.arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDERR_FILENO);
    posix_spawn_file_actions_addchdir_np(&actions, side.folder.c_str());
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    const int error =
        posix_spawn(&child_, side.program.c_str(), &actions, &attributes, argv.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(sockets[1]);
    close(pipes[1]);
    if (error != 0) {
      child_ = 0;
      return MakeError(ErrorCode::kIo, fmt::format("cannot start '{}'", side.program));
    }
    return {};
  }

  // Processor time of the program so far; zero when it is gone.
  Clock::duration ProcessorTime() const {
    clockid_t clock = 0;
    timespec time = {};
    if (child_ <= 0 || clock_getcpuclockid(child_, &clock) != 0 || clock_gettime(clock, &time) != 0) return {};
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  // Reads what there is. Afterwards either waiting() or ended() may be true.
  void Read(bool socket_ready, bool output_ready) {
    std::array<char, 65536> bytes;
    if (output_ready) {
      const ssize_t got = read(output_, bytes.data(), bytes.size());
      if (got > 0 && result_->output.size() < kLargestOutput) {
        result_->output.append(bytes.data(), static_cast<size_t>(got));
      }
      if (got == 0 || (got < 0 && errno != EINTR)) {
        close(output_);
        output_ = -1;
      }
    }
    if (socket_ready) {
      const ssize_t got = recv(socket_, bytes.data(), bytes.size(), 0);
      if (got > 0) pending_.append(bytes.data(), static_cast<size_t>(got));
      if (got == 0 || (got < 0 && errno != EINTR)) {
        close(socket_);
        socket_ = -1;
      }
    }
    for (size_t end = 0; !waiting() && (end = pending_.find('\n')) != std::string::npos;) {
      const std::vector<std::string> fields = Split(pending_.substr(0, end), '\t');
      pending_.erase(0, end + 1);
      Message(fields);
    }
  }

  void Go() {
    event_.clear();
    if (socket_ < 0) return;
    const char byte = 1;
    [[maybe_unused]] const ssize_t sent = send(socket_, &byte, 1, MSG_NOSIGNAL);
    Read(false, false);
  }

  void Kill() {
    if (child_ <= 0) return;
    kill(-child_, SIGKILL);
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = 0;
  }

  // Waits for a process that has closed its ends.
  void Reap() {
    if (child_ <= 0) return;
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = 0;
    result_->end = WIFEXITED(status) ? SideResult::End::kExited : SideResult::End::kSignalled;
    result_->code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
  }

  bool waiting() const { return !event_.empty(); }
  bool ended() const { return socket_ < 0 && output_ < 0; }
  int socket() const { return socket_; }
  int output() const { return output_; }
  const std::vector<std::string>& event() const { return event_; }
  std::map<int, Buffer>& buffers() { return buffers_; }
  const uint8_t* memory() const { return memory_; }
  LaunchPlace last_launch() const { return last_launch_; }

 private:
  void Message(const std::vector<std::string>& fields) {
    const std::string& kind = fields[0];
    if (kind == "alloc" && fields.size() >= 5) {
      ++result_->allocations;
      buffers_[static_cast<int>(Number(fields[1]))] = {Number(fields[2]), Number(fields[3]), true, {}, false};
    } else if (kind == "free" && fields.size() >= 2) {
      buffers_[static_cast<int>(Number(fields[1]))].alive = false;
    } else if (kind == "launch" && fields.size() >= 8) {
      last_launch_ = {++result_->launches, fields[1], fields[2], static_cast<int>(Number(fields[3]))};
      for (const std::string& pointer : Split(fields[7], ',')) {
        const size_t colon = pointer.find(':');
        if (colon == std::string::npos || colon + 2 >= pointer.size()) continue;
        Buffer& buffer = buffers_[static_cast<int>(Number(pointer))];
        const char letter = pointer[colon + 1];
        if (letter == '?' || (buffer.typed && buffer.type.letter != 'i')) continue;
        buffer.type = {letter, static_cast<int>(Number(pointer.substr(colon + 2)))};
        buffer.typed = true;
      }
      event_ = fields;
    } else if (kind == "observe" && fields.size() >= 6) {
      event_ = fields;
    } else if ((kind == "fault" || kind == "writer") && fields.size() >= 8) {
      RunFault fault = {fields[1],
                        fields[2],
                        Number(fields[3]),
                        static_cast<int>(Number(fields[4])),
                        ReadPlace(fields[5]),
                        ReadPlace(fields[6]),
                        fields[7]};
      if (kind == "writer") {
        result_->writer = fault;
      } else {
        result_->faults.push_back(fault);
      }
    } else if (kind == "shared" && fields.size() >= 5) {
      result_->shared.push_back(
          {{result_->launches + 1, fields[1], fields[2], static_cast<int>(Number(fields[3]))}, Number(fields[4])});
    } else if (kind == "grid" && fields.size() >= 5) {
      result_->large_grids.push_back(
          {{result_->launches + 1, fields[1], fields[2], static_cast<int>(Number(fields[3]))}, Number(fields[4])});
    } else if (kind == "end" && fields.size() >= 2) {
      result_->why = fields[1];
    }
  }

  SideResult* result_ = nullptr;
  pid_t child_ = 0;
  int memory_file_ = -1;
  int socket_ = -1;
  int output_ = -1;
  uint8_t* memory_ = nullptr;
  std::string pending_;
  std::vector<std::string> event_;
  std::map<int, Buffer> buffers_;
  LaunchPlace last_launch_;
};

class Pair {
 public:
  Pair(const RunSide sides[2], const RunOptions& options) : specs_{sides[0], sides[1]}, options_(options) {}

  Result<PairResult> Run() {
    const Clock::time_point start = Clock::now();
    for (size_t i = 0; i < 2; ++i) PORTOLAN_RETURN_IF_ERROR(sides_[i].Start(specs_[i], options_, &result_.side[i]));
    const Clock::time_point deadline = start + kClockPerProcessorTime * options_.limit;
    bool in_time = true;
    while (!sides_[0].ended() || !sides_[1].ended()) {
      in_time = Clock::now() < deadline && sides_[0].ProcessorTime() < options_.limit &&
                sides_[1].ProcessorTime() < options_.limit;
      if (!in_time || stopped_) break;
      Poll(deadline);
      Step();
    }
    for (size_t i = 0; i < 2; ++i) {
      if (sides_[i].ended()) {
        sides_[i].Reap();
      } else {
        sides_[i].Kill();
        result_.side[i].end = stopped_ ? SideResult::End::kStopped : SideResult::End::kTimeLimit;
      }
    }
    result_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return std::move(result_);
  }

 private:
  void Poll(Clock::time_point deadline) {
    std::array<pollfd, 4> files{};
    for (size_t i = 0; i < 2; ++i) {
      files[2 * i] = {sides_[i].waiting() ? -1 : sides_[i].socket(), POLLIN, 0};
      files[2 * i + 1] = {sides_[i].output(), POLLIN, 0};
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (poll(files.data(), files.size(), static_cast<int>(std::clamp<long long>(left, 0, 1000))) <= 0) return;
    for (size_t i = 0; i < 2; ++i) {
      if (files[2 * i].revents != 0 || files[2 * i + 1].revents != 0) {
        sides_[i].Read(files[2 * i].revents != 0, files[2 * i + 1].revents != 0);
      }
    }
  }

  void Step() {
    Side& a = sides_[0];
    Side& b = sides_[1];
    if (!result_.parted.empty()) {
      for (Side& side : sides_) {
        if (side.waiting()) side.Go();
      }
      return;
    }
    if (a.waiting() && b.waiting()) {
      Compare();
      if (options_.stop_after_watch && options_.watch.launch > 0 && a.last_launch().number >= options_.watch.launch) {
        stopped_ = true;
        return;
      }
      a.Go();
      b.Go();
    } else if ((a.waiting() && b.socket() < 0) || (b.waiting() && a.socket() < 0)) {
      const bool first = a.waiting();
      result_.parted = fmt::format("the {} has ended, the {} goes on with {}", first ? "port" : "original",
                                   first ? "original" : "port", EventText(first ? a : b));
    }
  }

  static std::string EventText(const Side& side) {
    const std::vector<std::string>& event = side.event();
    if (event[0] == "launch") return fmt::format("a launch of {} ({}:{})", event[1], event[2], event[3]);
    return fmt::format("a copy of results ({}:{})", event[4], event[5]);
  }

  void Compare() {
    const std::vector<std::string>& a = sides_[0].event();
    const std::vector<std::string>& b = sides_[1].event();
    const bool same = a[0] == b[0] && (a[0] == "launch" ? a[1] == b[1] : a[1] == b[1] && a[2] == b[2] && a[3] == b[3]);
    if (!same) {
      result_.parted =
          fmt::format("where the original has {}, the port has {}", EventText(sides_[0]), EventText(sides_[1]));
      return;
    }
    if (a[0] == "observe") {
      ++result_.compared_copies;
      CompareBuffer(static_cast<int>(Number(a[1])), Number(a[2]), Number(a[3]), true);
      return;
    }
    ++result_.compared_launches;
    // All buffers where pointers may hide in structures; otherwise those that the kernel was given.
    std::set<int> wanted;
    for (const auto* event : {&a, &b}) {
      for (const std::string& pointer : Split((*event)[7], ',')) {
        if (!pointer.empty() && pointer.back() == 'w') wanted.insert(static_cast<int>(Number(pointer)));
      }
    }
    if (a[6] == "1" || b[6] == "1") {
      for (const auto& [index, buffer] : sides_[0].buffers()) {
        if (buffer.alive) wanted.insert(index);
      }
    }
    for (const int index : wanted) CompareBuffer(index, 0, -1, false);
  }

  void CompareBuffer(int index, int64_t offset, int64_t bytes, bool at_copy) {
    const auto found = sides_[0].buffers().find(index);
    const auto other = sides_[1].buffers().find(index);
    if (found == sides_[0].buffers().end() || other == sides_[1].buffers().end()) return;
    const Buffer& buffer = found->second;
    if (!buffer.alive || !other->second.alive || buffer.offset != other->second.offset) return;
    if (bytes < 0) bytes = std::min(buffer.bytes, other->second.bytes);
    bytes = std::min(bytes, buffer.bytes - offset);
    if (bytes <= 0) return;
    const int64_t begin = buffer.offset + offset;
    BufferDifference difference =
        CompareBuffers(sides_[0].memory() + begin, sides_[1].memory() + begin, static_cast<size_t>(bytes), buffer.type,
                       {specs_[0].fill, specs_[1].fill});
    result_.largest_relative = std::max(result_.largest_relative, difference.largest_relative);
    if (difference.elements == 0 || result_.differences.size() >= kMostDifferences) return;
    RunDifference seen;
    seen.launch = sides_[0].last_launch();
    if (at_copy) {
      seen.launch.file = sides_[0].event()[4];
      seen.launch.line = static_cast<int>(Number(sides_[0].event()[5]));
    }
    if (!reported_.insert({seen.launch.file, seen.launch.line, index}).second) return;
    seen.at_copy = at_copy;
    seen.buffer = index;
    seen.buffer_bytes = buffer.bytes;
    seen.type = buffer.type;
    const int element = buffer.typed ? std::max(1, buffer.type.bytes) : (bytes % 4 == 0 ? 4 : 1);
    seen.element_offset = begin + difference.first * element;
    difference.first += offset / element;
    seen.what = std::move(difference);
    result_.differences.push_back(std::move(seen));
  }

  RunSide specs_[2];
  RunOptions options_;
  Side sides_[2];
  PairResult result_;
  bool stopped_ = false;
  std::set<std::tuple<std::string, int, int>> reported_;
};

}  // namespace

Result<PairResult> RunPair(const RunSide sides[2], const RunOptions& options) { return Pair(sides, options).Run(); }

}  // namespace portolan
