#include "porting/verify/host_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>

#include "base/text.h"
#include "porting/compile_flags.h"
#include "porting/process.h"
#include "porting/project_neighbours.h"
#include "porting/verify/host_source.h"

namespace portolan {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostMessages = 5;

bool IsText(const std::string& extension) {
  for (const char* known : {".cu", ".cuh", ".h", ".hpp", ".hh", ".hxx", ".inl", ".inc", ".cpp", ".cc", ".cxx", ".c",
                            ".C", ".hip", ".tpp", ".ipp", ".def"}) {
    if (extension == known) return true;
  }
  return false;
}

std::string ReadText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct TreeFile {
  fs::path relative;
  std::unique_ptr<SourceFile> source;  // nullptr for what is no source
};

// The project's files; sources are read and, for a HIP project, renamed.
std::vector<TreeFile> ReadTree(const HostBuildOptions& options, SharedArrays* arrays,
                               std::set<std::string>* constants) {
  std::vector<TreeFile> files;
  std::error_code error;
  const fs::path root = options.project;
  for (auto entry = fs::recursive_directory_iterator(root, fs::directory_options::follow_directory_symlink, error);
       entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (error) break;
    if (entry->is_directory(error)) {
      if (entry->path().filename() == ".git") entry.disable_recursion_pending();
      continue;
    }
    TreeFile file;
    file.relative = entry->path().lexically_relative(root);
    if (IsText(entry->path().extension().string())) {
      std::string text = ReadText(entry->path());
      file.source = std::make_unique<SourceFile>(file.relative.generic_string(), std::move(text));
      if (!options.constants.empty()) {
        file.source = std::make_unique<SourceFile>(file.relative.generic_string(),
                                                   SetConstants(*file.source, options.constants, constants));
      }
      if (options.hip) {
        file.source = std::make_unique<SourceFile>(file.relative.generic_string(), RenameToCuda(*file.source));
      }
      CollectSharedArrays(*file.source, arrays);
    }
    files.push_back(std::move(file));
  }
  return files;
}

// Headers of the neighbours that the project's sources include. A port has them from the original's neighbours.
void ReadOutside(const HostBuildOptions& options, SharedArrays* arrays, std::vector<TreeFile>* files) {
  const fs::path root = options.siblings_of;
  std::vector<std::string> makefiles;
  std::vector<const SourceFile*> sources;
  for (const TreeFile& file : *files) {
    if (file.source != nullptr) sources.push_back(file.source.get());
    const std::string name = file.relative.filename().string();
    if (name == "Makefile" || name == "makefile")
      makefiles.push_back(ReadText(fs::path(options.project) / file.relative));
  }
  for (const std::string& path : OutsideHeaders(root.string(), makefiles, sources)) {
    TreeFile file;
    file.relative = path;
    file.source = std::make_unique<SourceFile>(path, ReadText(root / path));
    if (options.hip) file.source = std::make_unique<SourceFile>(path, RenameToCuda(*file.source));
    CollectSharedArrays(*file.source, arrays);
    files->push_back(std::move(file));
  }
}

Status WriteTree(const HostBuildOptions& options, const fs::path& tree, std::set<std::string>* constants) {
  SharedArrays arrays;
  std::vector<TreeFile> files = ReadTree(options, &arrays, constants);
  ReadOutside(options, &arrays, &files);
  std::error_code error;
  for (const TreeFile& file : files) {
    const fs::path to = (tree / file.relative).lexically_normal();
    fs::create_directories(to.parent_path(), error);
    if (file.source == nullptr) {
      // Programs write beside their sources: both runs get files of their own.
      fs::copy_file(fs::path(options.project) / file.relative, to, fs::copy_options::overwrite_existing, error);
      continue;
    }
    std::ofstream out(to, std::ios::binary);
    out << TranslateForHost(*file.source, arrays, *options.target);
    if (!out) return MakeError(ErrorCode::kIo, fmt::format("cannot write '{}'", to.string()));
  }
  return {};
}

// Links to what is in `from` and not in `to`, below folders that both have, too.
void LinkMissing(const fs::path& from, const fs::path& to, int depth) {
  constexpr size_t kMost = 5000;
  std::error_code error;
  size_t linked = 0;
  for (const auto& entry : fs::directory_iterator(from, error)) {
    if (++linked > kMost) break;
    const fs::path here = to / entry.path().filename();
    if (!fs::exists(fs::symlink_status(here, error))) {
      fs::create_symlink(entry.path(), here, error);
    } else if (depth > 0 && entry.is_directory(error) && fs::is_directory(here, error) &&
               !fs::is_symlink(here, error)) {
      LinkMissing(entry.path(), here, depth - 1);
    }
  }
}

// The folder of the project and its neighbours: ../data and ../include mean these.
fs::path NeighbourFolder(const HostBuildOptions& options) {
  std::error_code error;
  const fs::path original = fs::absolute(options.siblings_of, error).lexically_normal();
  return (original.has_filename() ? original : original.parent_path()).parent_path();
}

void LinkSiblings(const HostBuildOptions& options, const fs::path& tree) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(tree.parent_path(), error)) {
    // Neighbours of which headers were translated.
    if (entry.path().filename() == tree.filename()) continue;
    LinkMissing(NeighbourFolder(options) / entry.path().filename(), entry.path(), 4);
  }
  LinkMissing(NeighbourFolder(options), tree.parent_path(), 0);
}

bool IsC(const BuildUnit& unit) { return fs::path(unit.source).extension() == ".c" && !unit.device; }

// The runtime's headers are C++. A program of C sources alone that uses them is compiled as C++ as a whole, so that its
// functions find each other.
bool CompiledAsC(const BuildProgram& program, const fs::path& tree) {
  bool uses_runtime = false;
  for (const BuildUnit& unit : program.units) {
    if (!IsC(unit)) return true;
    const std::string text = ReadText(tree / unit.source);
    for (const char* header : {"cuda_runtime", "cublas", "hip/hip_runtime", "hipblas", "cusparse", "cufft"}) {
      uses_runtime = uses_runtime || text.find(header) != std::string::npos;
    }
  }
  return !uses_runtime;
}

std::vector<std::string> CompileCommand(const HostBuildOptions& options, const BuildUnit& unit, const fs::path& tree,
                                        const std::string& object, bool c_as_c) {
  const bool is_c = IsC(unit) && c_as_c;
  std::vector<std::string> command = {options.compiler, "-w", "-O1", "-g1"};
  // The runtime's headers are C++20, whatever standard the program asks for.
  if (is_c) {
    command.insert(command.end(), {"-x", "c"});
  } else {
    command.insert(command.end(), {"-x", "c++", "-std=gnu++20", "-fpermissive"});
    if (IsC(unit)) command.push_back("-Drestrict=__restrict");
  }
  if (unit.device) {
    command.insert(command.end(), {"-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-reorder-blocks",
                                   "-fno-thread-jumps", "-fsanitize=thread", "--param", "tsan-distinguish-volatile=1",
                                   "--param", "tsan-instrument-func-entry-exit=0", "-include", "cuda_runtime.h"});
    if (options.hip) {
      command.push_back("-DPORTOLAN_GPU_HIP");
      command.push_back(
          fmt::format("-DHIP_VERSION={}", options.target->rocm / 100 * 10000000 + options.target->rocm % 100 * 100000));
      // Parts of a port's header (compat.h) whose functions the runtime's headers have on host and device alike.
      for (const char* part : {"HALF_HOST", "HALF_ATOMICS", "DEVICE_RUNTIME", "HOST_MATH", "CG_REDUCE"}) {
        command.push_back(fmt::format("-DPORTOLAN_PART_{}", part));
      }
    }
  }
  if (unit.openmp && !unit.device) command.push_back("-fopenmp");
  command.push_back(fmt::format("-DPORTOLAN_GPU_WAVE={}", options.wave_size));
  for (const std::string& flag : unit.flags) {
    if (flag.rfind("-std=", 0) == 0) continue;
    command.push_back(flag);
  }
  // Programs print __FILE__: the same in both.
  command.push_back(fmt::format("-fmacro-prefix-map={}/=", tree.string()));
  command.insert(command.end(), {"-iquote", (tree / unit.source).parent_path().string(), "-I", options.include_dir,
                                 "-c", (tree / unit.source).string(), "-o", object});
  return command;
}

// The first lines of a compiler's output that say what is wrong.
std::vector<std::string> FirstMessages(const std::string& output, const std::string& root) {
  std::vector<std::string> messages;
  for (std::string line : Split(output, '\n')) {
    if (line.find("error:") == std::string::npos && line.find("undefined reference") == std::string::npos) continue;
    if (line.rfind(root + "/", 0) == 0) line = line.substr(root.size() + 1);
    messages.push_back(line);
    if (messages.size() == kMostMessages) break;
  }
  if (messages.empty() && !output.empty()) messages.push_back(output.substr(0, output.find('\n')));
  return messages;
}

// The flags' folders below the project and its neighbours, as folders of the tree.
std::vector<std::string> InTree(const std::vector<std::string>& flags, const std::string& project,
                                const std::string& neighbours, const fs::path& tree) {
  std::vector<std::string> result;
  for (std::string flag : flags) {
    for (const auto& [from, to] : {std::pair(project, tree.string()), {neighbours, tree.parent_path().string()}}) {
      const size_t at = flag.find(from);
      if (at == std::string::npos || (at != 0 && flag.rfind("-I", 0) != 0)) continue;
      if (at + from.size() < flag.size() && flag[at + from.size()] != '/') continue;
      flag.replace(at, from.size(), to);
      break;
    }
    result.push_back(flag);
  }
  return result;
}

}  // namespace

BuildPlan FindBuildPlan(const std::string& root) {
  std::error_code error;
  for (const char* name : {"Makefile", "makefile", "GNUmakefile"}) {
    if (!fs::exists(fs::path(root) / name, error)) continue;
    const ProcessResult run = RunProcess({"make", "-n", "-B", "-w", "-C", root, "run"}, std::chrono::seconds(20));
    BuildPlan plan = ReadMakeOutput(run.output, root);
    if (!plan.programs.empty()) return plan;
    const ProcessResult all = RunProcess({"make", "-n", "-B", "-w", "-C", root}, std::chrono::seconds(20));
    plan = ReadMakeOutput(all.output, root);
    if (!plan.programs.empty()) return plan;
  }
  return PlanWithoutBuild(root);
}

Result<HostProgram> BuildForHost(const HostBuildOptions& options, const BuildPlan& plan) {
  HostProgram result;
  result.plan = plan;
  const auto start = std::chrono::steady_clock::now();
  std::error_code error;
  const std::string project = fs::absolute(options.project, error).lexically_normal().string();
  const fs::path tree = fs::path(options.work_folder) / "tree" / fs::absolute(options.siblings_of).filename();
  const fs::path objects = fs::path(options.work_folder) / "objects";
  fs::create_directories(tree, error);
  fs::create_directories(objects, error);
  if (error) return MakeError(ErrorCode::kIo, fmt::format("cannot make the folder '{}'", tree.string()));
  PORTOLAN_RETURN_IF_ERROR(WriteTree(options, tree, &result.constants));
  LinkSiblings(options, tree);
  result.folder = tree.string();
  if (plan.programs.empty()) {
    result.why.push_back("no source to compile");
    return result;
  }
  const BuildProgram& program = plan.programs.front();

  std::vector<std::string> object_files;
  std::mutex guard;
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  for (size_t i = 0; i < program.units.size(); ++i) {
    object_files.push_back((objects / fmt::format("{}.o", i)).string());
  }
  const bool c_as_c = CompiledAsC(program, tree);
  const auto work = [&] {
    for (size_t i = next++; i < program.units.size() && !failed; i = next++) {
      BuildUnit unit = program.units[i];
      unit.flags = InTree(unit.flags, project, NeighbourFolder(options).string(), tree);
      const ProcessResult run = RunProcess(CompileCommand(options, unit, tree, object_files[i], c_as_c), options.limit);
      if (run.Succeeded()) continue;
      failed = true;
      const std::lock_guard<std::mutex> lock(guard);
      result.why = run.end == ProcessResult::End::kTimedOut ? std::vector<std::string>{"the compiler did not end"}
                                                            : FirstMessages(run.output, tree.string());
    }
  };
  std::vector<std::thread> threads;
  const size_t jobs = std::min<size_t>(std::max(1u, std::thread::hardware_concurrency()), program.units.size());
  for (size_t i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (!failed) {
    const std::string path = (tree / program.name).string();
    fs::create_directories(fs::path(path).parent_path(), error);
    std::vector<std::string> link = {options.compiler, "-o", path};
    link.insert(link.end(), object_files.begin(), object_files.end());
    link.insert(link.end(), program.libraries.begin(), program.libraries.end());
    // The runtime's clocks also where only the C++ library reads one (virtual_time.cc).
    link.insert(link.end(),
                {"-Wl,--undefined=clock_gettime", options.library, options.boost_context, "-lpthread", "-lm", "-ldl"});
    for (const BuildUnit& unit : program.units) {
      if (unit.openmp) link.push_back("-fopenmp");
    }
    const ProcessResult run = RunProcess(link, options.limit);
    if (run.Succeeded()) {
      result.path = path;
    } else {
      result.why = FirstMessages(run.output, tree.string());
    }
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace portolan
