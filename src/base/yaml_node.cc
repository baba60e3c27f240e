#include "base/yaml_node.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>

namespace portolan {
namespace {

constexpr int kMaxDepth = 64;
constexpr int64_t kMaxNodes = 2'000'000;

// Thrown by TreeBuilder through yaml-cpp's parser and caught in ParseYamlTree only.
struct Refusal {
  int line;
  std::string message;
};

[[noreturn]] void Refuse(int line, std::string message) { throw Refusal{line, std::move(message)}; }

int LineOf(const YAML::Mark& mark) { return mark.line + 1; }

// Builds the tree from yaml-cpp's events, so that the limits hold while parsing and not only afterwards.
class TreeBuilder : public YAML::EventHandler {
 public:
  std::shared_ptr<const YamlNode> root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_ != nullptr) Refuse(LineOf(mark), "a second document starts here; one file holds one document");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    AddLeaf(YamlNode::Kind::kNull, mark, anchor, "");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                const std::string& value) override {
    AddLeaf(YamlNode::Kind::kScalar, mark, anchor, value);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) Refuse(LineOf(mark), "an alias (*name) stands inside the value that it names");
    Add(found->second, LineOf(mark));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    Open(YamlNode::Kind::kSequence, mark, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    Open(YamlNode::Kind::kMap, mark, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    std::shared_ptr<YamlNode> node;
    YAML::anchor_t anchor = YAML::NullAnchor;
    std::unordered_map<std::string, int> key_lines;
    bool has_key = false;
  };

  std::shared_ptr<YamlNode> NewNode(YamlNode::Kind kind, const YAML::Mark& mark) {
    if (++created_ > kMaxNodes) Refuse(LineOf(mark), TooMany());
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->line = LineOf(mark);
    return node;
  }

  void AddLeaf(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& text) {
    auto node = NewNode(kind, mark);
    node->scalar = text;
    if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
    Add(std::move(node), LineOf(mark));
  }

  void Open(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (std::ssize(open_) >= kMaxDepth) Refuse(LineOf(mark), TooDeep());
    if (ExpectsKey()) Refuse(LineOf(mark), "a key must be plain text, got a list or a map");
    open_.push_back(Frame{NewNode(kind, mark), anchor, {}, false});
  }

  void Close() {
    Frame frame = std::move(open_.back());
    open_.pop_back();
    if (frame.anchor != YAML::NullAnchor) anchors_[frame.anchor] = frame.node;
    const int line = frame.node->line;
    Add(std::move(frame.node), line);
  }

  bool ExpectsKey() const {
    return !open_.empty() && open_.back().node->kind == YamlNode::Kind::kMap && !open_.back().has_key;
  }

  void Add(std::shared_ptr<const YamlNode> node, int line) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = open_.back();
    YamlNode& parent = *frame.node;
    if (ExpectsKey()) {
      if (node->kind != YamlNode::Kind::kScalar) Refuse(line, "a key must be plain text, got an empty or compound one");
      const auto [first, inserted] = frame.key_lines.emplace(node->scalar, line);
      if (!inserted) {
        Refuse(line, "key '" + node->scalar.substr(0, 64) + "' stands twice in one map; it is first given on line " +
                         std::to_string(first->second));
      }
      parent.entries.push_back({node->scalar, line, nullptr});
      frame.has_key = true;
      return;
    }
    parent.size += node->size;
    parent.height = std::max(parent.height, node->height + 1);
    if (parent.size > kMaxNodes) Refuse(line, TooMany());
    if (std::ssize(open_) + node->height > kMaxDepth) Refuse(line, TooDeep());
    if (parent.kind == YamlNode::Kind::kMap) {
      parent.entries.back().value = std::move(node);
      frame.has_key = false;
    } else {
      parent.elements.push_back(std::move(node));
    }
  }

  static std::string TooDeep() { return "nested deeper than " + std::to_string(kMaxDepth) + " levels"; }
  static std::string TooMany() {
    return "holds more than " + std::to_string(kMaxNodes) + " values (aliases count each time they are used)";
  }

  std::shared_ptr<const YamlNode> root_;
  std::vector<Frame> open_;
  std::unordered_map<YAML::anchor_t, std::shared_ptr<const YamlNode>> anchors_;
  int64_t created_ = 0;
};

}  // namespace

Result<std::shared_ptr<const YamlNode>> ParseYamlTree(const std::string& text, const std::string& file) {
  const auto error = [&](int line, std::string message) {
    return tl::make_unexpected(Error{ErrorCode::kParse, std::move(message), file, line, {}});
  };
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    TreeBuilder builder;
    while (parser.HandleNextDocument(builder)) {
    }
    if (builder.root() != nullptr) return builder.root();
    auto empty = std::make_shared<YamlNode>();
    empty->line = 1;
    return empty;
  } catch (const Refusal& refusal) {
    return error(refusal.line, refusal.message);
  } catch (const YAML::Exception& exception) {
    return error(exception.mark.is_null() ? 0 : LineOf(exception.mark), "is not valid YAML: " + exception.msg);
  } catch (const std::exception& exception) {
    return error(0, std::string("cannot be parsed as YAML: ") + exception.what());
  }
}

}  // namespace portolan
