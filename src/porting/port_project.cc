#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>

#include "base/text.h"
#include "porting/cmake_file.h"
#include "porting/compat.h"
#include "porting/job/job_rule.h"
#include "porting/port.h"
#include "porting/project_files.h"
#include "porting/project_neighbours.h"
#include "porting/shim.h"

namespace portolan {
namespace {

namespace fs = std::filesystem;

struct ProjectFile {
  fs::path relative;  // to the project's root
  FileRole role = FileRole::kOther;
};

class Project {
 public:
  Project(const PortOptions& options, const PortTarget& target) : options_(options), target_(target) {}

  Result<PortReport> Run() {
    PORTOLAN_RETURN_IF_ERROR(Open());
    CollectFiles();
    ReadSources();
    if (!options_.hip_include_dir.empty()) declarations_ = HipDeclarations::Read(options_.hip_include_dir);
    report_.checked_names = declarations_.found();
    if (options_.mode != PortMode::kRewrite) {
      MakeShim();
    } else {
      for (const Loaded& file : sources_) PortOne(file);
      CollectUnits();
      PortBuildFilesAndCopyTheRest();
      if (Writes()) WriteCompatHeader();
    }
    std::stable_sort(report_.findings.begin(), report_.findings.end(),
                     [](const Finding& a, const Finding& b) { return a.file < b.file; });
    return std::move(report_);
  }

 private:
  struct Loaded {
    fs::path relative;
    std::unique_ptr<SourceFile> source;
  };

  bool Writes() const { return !options_.output.empty(); }

  Status Open() {
    std::error_code error;
    const fs::path input = fs::absolute(options_.input, error).lexically_normal();
    if (!fs::exists(input, error)) {
      return MakeError(ErrorCode::kNotFound, fmt::format("'{}' does not exist", options_.input));
    }
    single_ = !fs::is_directory(input, error);
    root_ = single_ ? input.parent_path() : input;
    if (!single_ && !input.has_filename()) root_ = input.parent_path();
    if (!Writes()) return {};
    fs::path output = fs::absolute(options_.output, error).lexically_normal();
    if (!output.has_filename()) output = output.parent_path();
    in_place_ = fs::equivalent(input, output, error);
    if (options_.mode != PortMode::kRewrite) return OpenShim(in_place_ ? root_ : output);
    if (!in_place_ && !single_ && IsInside(output, root_)) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("output '{}' lies inside the input '{}'", options_.output, options_.input));
    }
    if (!in_place_ && !single_ && fs::exists(output, error) && !fs::is_directory(output, error)) {
      return MakeError(ErrorCode::kUsage, fmt::format("output '{}' is a file, the input a folder", options_.output));
    }
    if (single_) {
      // A file goes to the file named, or into the folder named.
      single_output_ = fs::is_directory(output, error) ? output / input.filename() : output;
      output_root_ = single_output_.parent_path();
    } else {
      output_root_ = output;
    }
    report_.output_root = output_root_.string();
    fs::create_directories(output_root_, error);
    if (!fs::is_directory(output_root_, error)) {
      return MakeError(ErrorCode::kIo, fmt::format("cannot make the folder '{}'", output_root_.string()));
    }
    return {};
  }

  // The sources stay where they are, so the shim may lie among them.
  Status OpenShim(const fs::path& output) {
    std::error_code error;
    output_root_ = output / kShimFolder;
    if (options_.mode == PortMode::kCheckShim) {
      if (fs::exists(output_root_ / kShimHeaderName, error)) return {};
      return MakeError(ErrorCode::kNotFound, fmt::format("there is no shim to check: '{}' does not exist",
                                                         (output_root_ / kShimHeaderName).string()));
    }
    if (fs::exists(output, error) && !fs::is_directory(output, error)) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("output '{}' is a file; a shim is a folder in it", output.string()));
    }
    return {};
  }

  fs::path OutputOf(const fs::path& relative) const { return single_ ? single_output_ : output_root_ / relative; }

  void CollectFiles() {
    if (single_) {
      const fs::path name = fs::path(options_.input).filename();
      files_.push_back({name, RoleOf(name) == FileRole::kOther ? FileRole::kSource : RoleOf(name)});
      return;
    }
    std::error_code error;
    // Links to folders are not followed, so a loop of them ends.
    fs::recursive_directory_iterator it(root_, fs::directory_options::skip_permission_denied, error);
    for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      std::error_code status_error;
      const fs::path relative = it->path().lexically_relative(root_);
      if (it->is_directory(status_error)) {
        const std::string name = it->path().filename().string();
        if (name == kShimFolder && fs::exists(it->path() / kShimHeaderName, status_error)) {
          it.disable_recursion_pending();
          continue;
        }
        if (name == ".git" || name == ".svn" || name == ".hg") it.disable_recursion_pending();
        if (it->is_symlink(status_error)) {
          report_.skipped.push_back(relative.string() + ": a link to a folder; not followed");
        } else if (::access(it->path().c_str(), R_OK | X_OK) != 0) {
          report_.skipped.push_back(relative.string() + ": cannot be read");
        }
        continue;
      }
      if (!it->is_regular_file(status_error)) {
        report_.skipped.push_back(relative.string() + ": not a regular file, or a broken link");
        continue;
      }
      // A .hip file is written for HIP already, and looked at only on the way to CUDA.
      const bool hip = target_.to_cuda && relative.extension() == ".hip";
      files_.push_back({relative, hip ? FileRole::kSource : RoleOf(relative)});
    }
    if (error) report_.skipped.push_back(root_.string() + ": " + error.message());
    std::sort(files_.begin(), files_.end(),
              [](const ProjectFile& a, const ProjectFile& b) { return a.relative < b.relative; });
  }

  void ReadSources() {
    constexpr size_t kLargest = 0xfffffff0;
    for (ProjectFile& file : files_) {
      facts_.file_names.insert(file.relative.filename().string());
      if (file.role != FileRole::kSource) continue;
      std::string text;
      if (!ReadFile(root_ / file.relative, &text)) {
        report_.skipped.push_back(file.relative.string() + ": cannot be read");
        continue;
      }
      if (LooksBinary(text) || text.size() > kLargest) {
        file.role = FileRole::kOther;
        report_.skipped.push_back(file.relative.string() + ": not a text");
        continue;
      }
      ++report_.files_read;
      sources_.push_back({file.relative, std::make_unique<SourceFile>(file.relative.string(), std::move(text))});
    }
    if (options_.mode != PortMode::kRewrite && !single_) ReadNeighbours();
    // Twice: a constant may be made of one in a file that is read later.
    for (int pass = 0; pass < 2; ++pass) {
      for (const Loaded& file : sources_) CollectFacts(*file.source, &facts_);
    }
    for (const Loaded& file : sources_) CollectLaunches(*file.source, &facts_);
  }

  // A shim serves what the sources include from outside the project too.
  void ReadNeighbours() {
    std::vector<std::string> makefiles;
    for (const ProjectFile& file : files_) {
      std::string text;
      if (file.role == FileRole::kMakefile && ReadFile(root_ / file.relative, &text)) makefiles.push_back(text);
    }
    constexpr size_t kMost = 1000;
    std::set<std::string> known;
    for (size_t before = 0; sources_.size() != before && sources_.size() < kMost;) {
      before = sources_.size();
      std::vector<const SourceFile*> sources;
      for (const Loaded& file : sources_) sources.push_back(file.source.get());
      for (const std::string& path : OutsideHeaders(root_.string(), makefiles, sources)) {
        std::string text;
        if (!known.insert(path).second || !ReadFile(root_ / path, &text) || LooksBinary(text)) continue;
        ++report_.files_read;
        facts_.file_names.insert(fs::path(path).filename().string());
        sources_.push_back({path, std::make_unique<SourceFile>(path, std::move(text))});
      }
    }
  }

  void PortOne(const Loaded& file) {
    const fs::path to_root = fs::path(".").lexically_relative(
        file.relative.parent_path().empty() ? fs::path(".") : file.relative.parent_path());
    const fs::path include = (to_root / kCompatHeaderName).lexically_normal();
    PortedSource ported = PortSource(*file.source, facts_, target_, declarations_, include.generic_string());
    std::move(ported.findings.begin(), ported.findings.end(), std::back_inserter(report_.findings));
    report_.compat.insert(ported.compat.begin(), ported.compat.end());
    const bool changed = ported.text != file.source->text();
    if (ported.text.find("<hip") != std::string::npos || ported.text.find("\"hip/") != std::string::npos)
      uses_hip_.insert(file.relative.generic_string());
    report_.files_changed += changed ? 1 : 0;
    if (!Writes() || (in_place_ && !changed)) return;
    if (!WriteFile(OutputOf(file.relative), ported.text, root_ / file.relative)) {
      report_.skipped.push_back(file.relative.string() + ": cannot be written");
    }
  }

  void CollectUnits() {
    std::set<std::string, std::less<>> included;
    for (const Loaded& file : sources_) {
      const SourceFile& source = *file.source;
      for (size_t i = 1; i < source.size(); ++i) {
        if (source.tokens()[i].kind != TokenKind::kString || !source.Is(i - 1, "include")) continue;
        const std::string_view quoted = source.Text(i);
        const std::string_view name = quoted.substr(1, quoted.size() - std::min<size_t>(2, quoted.size()));
        included.emplace(name.substr(name.rfind('/') + 1));
      }
    }
    for (const Loaded& file : sources_) {
      const std::string name = file.relative.filename().string();
      const std::string extension = file.relative.extension().string();
      report_.source_files.push_back(file.relative.generic_string());
      for (const DeviceFunction& function : file.source->device_functions()) {
        if (!function.is_kernel) continue;
        report_.kernels.emplace(
            function.name, std::make_pair(file.relative.generic_string(),
                                          file.source->PositionOf(file.source->tokens()[function.name_token].begin)));
      }
      if (extension != ".cu" && extension != ".cpp" && extension != ".cc" && extension != ".cxx" && extension != ".c") {
        continue;
      }
      if (included.count(name) > 0) continue;
      bool device = extension == ".cu" || !file.source->device_functions().empty();
      for (size_t i = 0; i < file.source->size() && !device; ++i) {
        device = file.source->Is(i, "<<<") && !file.source->IsIdentifier(i);
      }
      const bool hip = device || uses_hip_.count(file.relative.generic_string()) > 0;
      if (!hip) continue;
      const fs::path written = single_ && Writes() ? single_output_.filename() : file.relative;
      report_.units.push_back({written.generic_string(), device});
    }
    report_.launched_blocks = facts_.launched_blocks;
  }

  // A build file or one of the job around it; false when it goes to the output as it is.
  bool PortBuildFile(const ProjectFile& file) {
    std::string text;
    if (!ReadFile(root_ / file.relative, &text) || LooksBinary(text)) return false;
    ++report_.files_read;
    PortedBuildFile ported;
    const std::string name = file.relative.generic_string();
    if (file.role == FileRole::kMakefile) {
      ported.text = PortMakefile(text, target_.gfx);
    } else if (file.role == FileRole::kJob) {
      AuditedJobFile job = AuditJobFile(JobFile(name, text, JobFileKindOf(name)), target_);
      ported = {std::move(job.text), std::move(job.findings)};
    } else {
      ported = PortCMakeFile(name, text, target_);
    }
    std::move(ported.findings.begin(), ported.findings.end(), std::back_inserter(report_.findings));
    if (!Writes() || ported.text == text) return false;
    ++report_.files_changed;
    if (!WriteFile(OutputOf(file.relative), ported.text, root_ / file.relative)) {
      report_.skipped.push_back(file.relative.string() + ": cannot be written");
    }
    return true;
  }

  void PortBuildFilesAndCopyTheRest() {
    for (const ProjectFile& file : files_) {
      if (file.role == FileRole::kSource || file.relative.filename() == kCompatHeaderName) continue;
      if (file.role != FileRole::kOther && !target_.to_cuda && PortBuildFile(file)) continue;
      if (in_place_ || !Writes()) continue;
      std::error_code error;
      const fs::path to = OutputOf(file.relative);
      fs::create_directories(to.parent_path(), error);
      if (fs::copy_file(root_ / file.relative, to, fs::copy_options::overwrite_existing, error)) {
        ++report_.files_copied;
      } else {
        report_.skipped.push_back(file.relative.string() + ": cannot be copied: " + error.message());
      }
    }
  }

  void MakeShim() {
    Shim shim;
    std::vector<ShimNeed> needs;
    for (const Loaded& file : sources_) {
      const RuleInput input{*file.source, facts_, target_, declarations_};
      CollectShim(input, &shim, &needs);
      std::vector<Finding> findings = ShimFindings(input, &shim, &needs);
      std::move(findings.begin(), findings.end(), std::back_inserter(report_.findings));
    }
    report_.compat.insert(shim.parts.begin(), shim.parts.end());
    const std::map<std::string, std::string> files =
        ShimFiles(shim, target_, root_.lexically_relative(output_root_).generic_string());
    std::map<std::string, std::string> old;
    ReadOldShim(&old);
    if (options_.mode == PortMode::kCheckShim) {
      report_.shim_lacks = ShimLacks(ReadShim(old), shim, files, needs, report_.findings);
      return;
    }
    for (const auto& [name, text] : files) {
      report_.shim_files.push_back(name);
      const auto before = old.find(name);
      if (before != old.end() && before->second == text) continue;
      report_.shim_changed.push_back(name);
      if (!WriteFile(output_root_ / name, text)) report_.skipped.push_back(name + ": cannot be written");
    }
    for (const auto& [name, text] : old) {
      if (files.count(name) > 0) continue;
      std::error_code error;
      report_.shim_changed.push_back(name);
      fs::remove(output_root_ / name, error);
    }
  }

  // The files below the shim's folder that Portolan wrote.
  void ReadOldShim(std::map<std::string, std::string>* files) const {
    std::error_code error;
    fs::recursive_directory_iterator it(output_root_, fs::directory_options::skip_permission_denied, error);
    for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      std::string text;
      std::error_code status_error;
      if (!it->is_regular_file(status_error) || !ReadFile(it->path(), &text)) continue;
      if (IsShimFile(text)) (*files)[it->path().lexically_relative(output_root_).generic_string()] = std::move(text);
    }
  }

  // A header that is there already, in the input or the output, keeps its parts: another run, or another file of the
  // project, needs them.
  void WriteCompatHeader() {
    std::string at_output;
    std::set<std::string> parts = report_.compat;
    const fs::path path = output_root_ / kCompatHeaderName;
    for (const fs::path& old : {root_ / kCompatHeaderName, path}) {
      std::string text;
      if (ReadFile(old, &text)) parts.merge(PartsOfCompatHeader(text));
      if (old == path) at_output = text;
    }
    if (parts.empty()) return;
    const std::string header = CompatHeader(parts);
    if (header != at_output && !WriteFile(path, header))
      report_.skipped.push_back(path.string() + ": cannot be written");
  }

  const PortOptions& options_;
  const PortTarget& target_;
  fs::path root_;
  fs::path output_root_;
  fs::path single_output_;
  bool single_ = false;
  bool in_place_ = false;
  std::vector<ProjectFile> files_;
  std::vector<Loaded> sources_;
  ProjectFacts facts_;
  HipDeclarations declarations_;
  std::set<std::string> uses_hip_;  // sources that include one of its headers
  PortReport report_;
};

}  // namespace

Result<PortReport> Port(const PortOptions& options, const PortTarget& target) { return Project(options, target).Run(); }

}  // namespace portolan
