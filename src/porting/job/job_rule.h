#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "porting/finding.h"
#include "porting/job/python_lexer.h"
#include "porting/target.h"

namespace portolan {

// The files around a CUDA program that say how it is run.
enum class JobFileKind : uint8_t {
  kNone,
  kPython,        // *.py
  kSetup,         // setup.py: Python that builds an extension
  kShell,         // *.sh, *.bash, *.slurm, *.sbatch, *.env
  kContainer,     // Dockerfile*, Containerfile*
  kRequirements,  // requirements*.txt, constraints*.txt, pyproject.toml, environment.yml
  kYaml,          // *.yml, *.yaml: launchers, compose files, Kubernetes
};

// By the file's name, in any case.
JobFileKind JobFileKindOf(const std::string& path);

// One line of a file that is not Python.
struct JobLine {
  std::string_view text;  // without its end and without a comment
  uint32_t begin = 0;     // offset in the file
};

// What a rule reads.
class JobFile {
 public:
  JobFile(std::string path, std::string text, JobFileKind kind);
  JobFileKind kind() const { return kind_; }
  bool is_python() const { return kind_ == JobFileKind::kPython || kind_ == JobFileKind::kSetup; }
  const std::string& path() const { return path_; }
  std::string_view text() const { return text_; }
  const std::vector<PythonToken>& tokens() const { return tokens_; }  // empty unless it is Python
  const std::vector<JobLine>& lines() const { return lines_; }        // empty if it is
  std::string_view Text(size_t token) const {
    return token < tokens_.size() ? text().substr(tokens_[token].begin, tokens_[token].end - tokens_[token].begin)
                                  : std::string_view();
  }
  bool IsString(size_t token) const {
    return token < tokens_.size() && tokens_[token].kind == PythonTokenKind::kString;
  }
  // Whether the tokens from `token` on are `words`, in their order.
  bool Reads(size_t token, const std::vector<std::string_view>& words) const;
  Position PositionOf(size_t offset) const;

 private:
  std::string path_;
  std::string text_;
  JobFileKind kind_;
  std::vector<PythonToken> tokens_;
  std::vector<JobLine> lines_;
};

struct JobInput {
  const JobFile& file;
  const PortTarget& target;
};

struct JobOutput {
  std::vector<Finding> findings;
  std::vector<Edit> edits;
  void Find(const JobFile& file, size_t offset, FindingLevel level, std::string_view kind, std::string message,
            std::string action);
};

// One way in which a CUDA job is not a ROCm job.
struct JobRule {
  const char* id;
  const char* summary;
  void (*apply)(const JobInput& input, JobOutput* output);
};

const std::vector<JobRule>& AllJobRules();

// All rules on one file: its findings in the order of their places, and its text with the edits made.
struct AuditedJobFile {
  std::string text;
  std::vector<Finding> findings;
};
AuditedJobFile AuditJobFile(const JobFile& file, const PortTarget& target);

}  // namespace portolan
