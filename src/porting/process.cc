#include "porting/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves its declaration to the program

namespace portolan {
namespace {

using Clock = std::chrono::steady_clock;

// Starts the program in a process group of its own, its output going to `output`; 0 when it cannot be started.
pid_t Spawn(const std::vector<std::string>& arguments, int output) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  if (posix_spawn_file_actions_init(&actions) != 0) return 0;
  if (posix_spawnattr_init(&attributes) != 0) {
    posix_spawn_file_actions_destroy(&actions);
    return 0;
  }
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error == 0 ? child : 0;
}

// Reads what comes through `pipe` until it closes or the time is over; false for the latter.
bool ReadUntil(int pipe, Clock::time_point deadline, std::string* output) {
  std::array<char, 16384> buffer;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd waited = {pipe, POLLIN, 0};
    const int ready = poll(&waited, 1, static_cast<int>(std::min<long long>(left, 60000)));
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0) continue;
    const ssize_t got = read(pipe, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    const size_t room = kLargestOutput - std::min(output->size(), kLargestOutput);
    output->append(buffer.data(), std::min(static_cast<size_t>(got), room));
  }
}

}  // namespace

ProcessResult RunProcess(const std::vector<std::string>& arguments, std::chrono::milliseconds limit) {
  ProcessResult result;
  std::array<int, 2> ends = {-1, -1};
  if (arguments.empty() || pipe2(ends.data(), O_CLOEXEC) != 0) return result;
  const Clock::time_point start = Clock::now();
  const pid_t child = Spawn(arguments, ends[1]);
  close(ends[1]);
  if (child == 0) {
    close(ends[0]);
    return result;
  }
  const bool ended = ReadUntil(ends[0], start + limit, &result.output);
  close(ends[0]);
  if (!ended) kill(-child, SIGKILL);
  // A program that closes its output and goes on is given the rest of its time.
  int status = 0;
  bool killed = !ended;
  for (;;) {
    const pid_t got = waitpid(child, &status, killed ? 0 : WNOHANG);
    if (got == child || (got < 0 && errno != EINTR)) break;
    if (killed) continue;
    if (Clock::now() >= start + limit) {
      kill(-child, SIGKILL);
      killed = true;
    } else {
      usleep(2000);
    }
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (killed) {
    result.end = ProcessResult::End::kTimedOut;
  } else if (WIFEXITED(status)) {
    result.end = ProcessResult::End::kExited;
    result.code = WEXITSTATUS(status);
  } else {
    result.end = ProcessResult::End::kSignalled;
    result.code = WIFSIGNALED(status) ? WTERMSIG(status) : -1;
  }
  return result;
}

std::string FindProgram(const std::string& name) {
  if (name.empty()) return "";
  const auto runnable = [](const std::string& path) {
    std::error_code error;
    return std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) return runnable(name) ? name : "";
  const char* path = std::getenv("PATH");
  for (const std::string& folder : Split(path != nullptr ? path : "/usr/bin:/bin", ':')) {
    if (!folder.empty() && runnable(folder + "/" + name)) return folder + "/" + name;
  }
  return "";
}

TemporaryFolder::TemporaryFolder() {
  const char* base = std::getenv("TMPDIR");
  std::string name = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/portolan-XXXXXX";
  if (mkdtemp(name.data()) != nullptr) path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

}  // namespace portolan
