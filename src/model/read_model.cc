#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "base/yaml_enum.h"
#include "model/model.h"
#include "model/optimizer_names.h"
#include "model/read_block.h"
#include "model/shapes.h"

namespace portolan {
namespace {

constexpr Range kRows{1, 1e13};
constexpr Range kDim{1, 65536};
constexpr Range kLookups{0, 1e7};
constexpr size_t kMaxTables = 10000;
constexpr size_t kMaxBlocks = 2000;
constexpr int64_t kMaxLayers = 2000;  // of all blocks
constexpr size_t kMaxInputs = 1000;   // of one block

constexpr NamedValue<Feature::SkewOf> kSkews[] = {{"lookup", Feature::SkewOf::kLookup}, {"bag", Feature::SkewOf::kBag}};
constexpr NamedValue<FeatureGroup::Padding> kPaddings[] = {{"masked", FeatureGroup::Padding::kMasked},
                                                           {"attended", FeatureGroup::Padding::kAttended}};
constexpr NamedValue<Pooling> kPoolings[] = {{"sum", Pooling::kSum}, {"mean", Pooling::kSum}, {"none", Pooling::kNone}};

// Reads one model file; holds the names while it does.
class ModelReader {
 public:
  Result<Model> Read(const YamlValue& value) {
    PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
    model_.id = map.String("model");
    model_.description = map.String("description", "");
    model_.source = map.String("source", "");
    const int64_t dense_features = map.Integer("dense_features", {0, 1e6}, 0);
    if (dense_features > 0) model_.dense_inputs.push_back({"dense", {1, static_cast<double>(dense_features)}});
    map.Visit("dense_inputs", [this](const YamlValue& v) { return ReadDenseInputs(v); });
    zipf_exponent_ = map.Number("zipf_exponent", {0, 4}, 0.0);
    skew_of_ = ReadEnum(map, "skew_of", kSkews, Feature::SkewOf::kLookup);
    map.Visit("groups", [this](const YamlValue& v) { return ReadGroups(v); });
    map.Visit("tables", [this](const YamlValue& v) { return ReadTables(v); });
    map.Visit("features", [this](const YamlValue& v) { return ReadFeatures(v); });
    if (map.ok()) PORTOLAN_RETURN_IF_ERROR(CheckGroups());
    for (size_t i = 0; map.ok() && i < model_.groups.size(); ++i) {
      AddName(model_.groups[i].name, {Block::Input::Kind::kGroup, static_cast<int>(i)});
    }
    for (size_t i = 0; map.ok() && i < model_.dense_inputs.size(); ++i) {
      const std::string& name = model_.dense_inputs[i].name;
      if (names_.count(name) > 0) {
        const auto place = dense_places_.find(name);
        return (place == dense_places_.end() ? value : place->second)
            .MakeError(ErrorCode::kInvalidValue, "two inputs or groups are named '" + name + "'");
      }
      AddName(name, {Block::Input::Kind::kDense, static_cast<int>(i)});
    }
    if (map.ok() && !map.Has("blocks")) {
      map.Fail(value.MakeError(ErrorCode::kMissingField, "'blocks' is required: the list of the model's layers"));
    }
    map.Visit("blocks", [this](const YamlValue& v) { return ReadBlocks(v); });
    map.Visit("training", [this](const YamlValue& v) { return ReadTraining(v); });
    PORTOLAN_RETURN_IF_ERROR(map.Finish());
    return std::move(model_);
  }

 private:
  void AddName(const std::string& name, Block::Input input) { names_[name] = input; }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& [name, input] : names_) names.push_back(name);
    std::sort(names.begin(), names.end());
    return names;
  }

  Status ReadDenseInputs(const YamlValue& value) {
    PORTOLAN_ASSIGN_OR_RETURN(const std::vector<YamlValue> elements, value.Elements());
    for (const YamlValue& element : elements) {
      PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, element.Map());
      DenseInput input;
      input.name = map.String("name");
      input.shape.tokens = map.Number("tokens", kTokens, 1.0);
      input.shape.width = static_cast<double>(map.Integer("width", kWidth));
      PORTOLAN_RETURN_IF_ERROR(map.Finish());
      dense_places_[input.name] = element;
      model_.dense_inputs.push_back(std::move(input));
    }
    return {};
  }

  Status ReadGroups(const YamlValue& value) {
    PORTOLAN_ASSIGN_OR_RETURN(const std::vector<YamlValue> elements, value.Elements());
    for (const YamlValue& element : elements) {
      PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, element.Map());
      FeatureGroup group;
      group.name = map.String("name");
      group.pooling = ReadEnum(map, "pooling", kPoolings, Pooling::kSum);
      if (group.pooling == Pooling::kNone) {
        group.tokens = map.Number("tokens", kTokens);
        group.filled = map.Number("filled", {1e-3, 1}, 1.0);
        group.padding = ReadEnum(map, "padding", kPaddings, FeatureGroup::Padding::kMasked);
      }
      PORTOLAN_RETURN_IF_ERROR(map.Finish());
      for (const FeatureGroup& other : model_.groups) {
        if (other.name == group.name) {
          return element.MakeError(ErrorCode::kInvalidValue, "a group named '" + group.name + "' exists already");
        }
      }
      model_.groups.push_back(std::move(group));
      group_places_.push_back(element);
    }
    return {};
  }

  int FindOrAddGroup(const std::string& name) {
    for (size_t i = 0; i < model_.groups.size(); ++i) {
      if (model_.groups[i].name == name) return static_cast<int>(i);
    }
    model_.groups.push_back({name, Pooling::kSum, 0});
    return static_cast<int>(model_.groups.size()) - 1;
  }

  void ReadFeatureFields(YamlMap& map, Feature& feature) {
    feature.group = FindOrAddGroup(map.String("group", "embeddings"));
    feature.lookups = map.Number("lookups", kLookups);
    if (map.Has("unique_ratio")) feature.unique_ratio = map.Number("unique_ratio", {1e-9, 1});
    feature.zipf_exponent = map.Number("zipf_exponent", {0, 4}, zipf_exponent_);
    feature.skew_of = ReadEnum(map, "skew_of", kSkews, skew_of_);
    feature.hottest_row_share = map.Number("hottest_row_share", {0, 1}, 0.0);
  }

  // A table that states `lookups` is also a feature of the same name. `count` makes equal copies.
  Status ReadTables(const YamlValue& value) {
    PORTOLAN_ASSIGN_OR_RETURN(const std::vector<YamlValue> elements, value.Elements());
    for (const YamlValue& element : elements) {
      PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, element.Map());
      Table table;
      table.name = map.String("name");
      table.rows = static_cast<double>(map.Integer("rows", kRows));
      table.dim = map.Integer("dim", kDim);
      const int64_t count = map.Integer("count", {1, static_cast<double>(kMaxTables)}, 1);
      const bool is_feature = map.Has("lookups");
      Feature feature;
      if (is_feature) ReadFeatureFields(map, feature);
      PORTOLAN_RETURN_IF_ERROR(map.Finish());
      if (model_.tables.size() + static_cast<size_t>(count) > kMaxTables) {
        return element.MakeError(ErrorCode::kInvalidValue, fmt::format("at most {} tables are accepted", kMaxTables));
      }
      for (int64_t copy = 0; copy < count; ++copy) {
        Table one = table;
        if (count > 1) one.name += fmt::format("_{}", copy);
        if (!table_index_.emplace(one.name, static_cast<int>(model_.tables.size())).second) {
          return element.MakeError(ErrorCode::kInvalidValue, "a table named '" + one.name + "' exists already");
        }
        if (is_feature) {
          feature.name = one.name;
          feature.table = static_cast<int>(model_.tables.size());
          model_.features.push_back(feature);
        }
        model_.tables.push_back(std::move(one));
      }
    }
    return {};
  }

  Status ReadFeatures(const YamlValue& value) {
    PORTOLAN_ASSIGN_OR_RETURN(const std::vector<YamlValue> elements, value.Elements());
    for (const YamlValue& element : elements) {
      PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, element.Map());
      Feature feature;
      feature.name = map.String("name");
      const std::string table = map.String("table");
      ReadFeatureFields(map, feature);
      PORTOLAN_RETURN_IF_ERROR(map.Finish());
      const auto found = table_index_.find(table);
      if (found == table_index_.end()) {
        std::vector<std::string> names;
        for (const Table& known : model_.tables) names.push_back(known.name);
        return element.MakeError(ErrorCode::kNotFound,
                                 "table '" + table + "' is not in 'tables'" + DidYouMean(table, names));
      }
      feature.table = found->second;
      if (model_.features.size() >= kMaxTables) {
        return element.MakeError(ErrorCode::kInvalidValue, fmt::format("at most {} features are accepted", kMaxTables));
      }
      model_.features.push_back(std::move(feature));
    }
    return {};
  }

  // Only a group that 'groups' lists can be empty: the others exist because a feature named them.
  Status CheckGroups() {
    std::vector<int> members(model_.groups.size(), 0);
    for (const Feature& feature : model_.features) ++members[static_cast<size_t>(feature.group)];
    for (size_t i = 0; i < members.size(); ++i) {
      if (members[i] == 0) {
        const std::string& name = model_.groups[i].name;
        return group_places_[i].MakeError(
            ErrorCode::kInvalidValue,
            "group '" + name + "' has no feature: give a table or feature 'group: " + name + "'");
      }
    }
    return {};
  }

  Status ReadBlocks(const YamlValue& value) {
    static const std::vector<std::string> kTypes = {
        "mlp",          "concat",        "dot_interaction", "low_rank_cross", "norm",    "add",         "pointwise",
        "token_linear", "factorization", "select",          "slice",          "reshape", "transformer", "hstu"};
    PORTOLAN_ASSIGN_OR_RETURN(const std::vector<YamlValue> elements, value.Elements());
    if (elements.empty()) return value.MakeError(ErrorCode::kInvalidValue, "at least one block is required");
    if (elements.size() > kMaxBlocks) {
      return value.MakeError(ErrorCode::kInvalidValue, fmt::format("at most {} blocks are accepted", kMaxBlocks));
    }
    for (const YamlValue& element : elements) {
      PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, element.Map());
      Block block;
      block.name = map.String("name");
      const std::string type = map.OneOf("type", kTypes);
      PORTOLAN_RETURN_IF_ERROR(ReadInputs(map, element, block));
      if (map.ok()) {
        PORTOLAN_ASSIGN_OR_RETURN(block.body, ReadBlockBody(type, map, element));
      }
      PORTOLAN_RETURN_IF_ERROR(map.Finish());
      if (const auto* mlp = std::get_if<MlpBlock>(&block.body); mlp != nullptr && mlp->widths.empty()) {
        return element.MakeError(ErrorCode::kMissingField, "'widths' is required: the output width of each layer");
      }
      layers_ += LayersOf(block.body);
      if (layers_ > kMaxLayers) {
        return element.MakeError(ErrorCode::kInvalidValue,
                                 fmt::format("at most {} layers in all blocks together are accepted", kMaxLayers));
      }
      if (names_.count(block.name) > 0) {
        return element.MakeError(ErrorCode::kInvalidValue, "the name '" + block.name + "' is taken already");
      }
      std::vector<TensorShape> inputs;
      for (const Block::Input& input : block.inputs) inputs.push_back(model_.InputShape(input));
      Result<TensorShape> shape = InferShape(block.body, inputs);
      if (!shape) return element.MakeError(shape.error().code, shape.error().message);
      block.shape = *shape;
      if (!(block.shape.elements() <= 1e12)) {
        return element.MakeError(ErrorCode::kInvalidValue,
                                 fmt::format("the output of '{}' has {:g} elements a sample; at most 1e12 are accepted",
                                             block.name, block.shape.elements()));
      }
      AddName(block.name, {Block::Input::Kind::kBlock, static_cast<int>(model_.blocks.size())});
      model_.blocks.push_back(std::move(block));
    }
    return {};
  }

  // `input: name` or `inputs: [name, name]`.
  Status ReadInputs(YamlMap& map, const YamlValue& element, Block& block) {
    std::vector<std::pair<std::string, YamlValue>> names;
    if (const std::optional<YamlValue> one = map.Find("input")) {
      PORTOLAN_ASSIGN_OR_RETURN(std::string name, one->String());
      names.emplace_back(std::move(name), *one);
    }
    for (const YamlValue& value : map.Elements("inputs")) {
      PORTOLAN_ASSIGN_OR_RETURN(std::string name, value.String());
      names.emplace_back(std::move(name), value);
    }
    if (map.ok() && names.empty()) {
      return element.MakeError(ErrorCode::kMissingField,
                               "'input' or 'inputs' is required; known here: " + Join(Names(), ", "));
    }
    if (names.size() > kMaxInputs) {
      return element.MakeError(ErrorCode::kInvalidValue,
                               fmt::format("at most {} inputs are accepted, got {}", kMaxInputs, names.size()));
    }
    for (const auto& [name, place] : names) {
      const auto found = names_.find(name);
      if (found == names_.end()) {
        const std::string near = DidYouMean(name, Names());
        return place.MakeError(ErrorCode::kNotFound,
                               "'" + name + "' is not an earlier block, feature group or dense input" +
                                   (near.empty() ? "." : near) + " Known here: " + Join(Names(), ", "));
      }
      block.inputs.push_back(found->second);
    }
    return {};
  }

  Status ReadTraining(const YamlValue& value) {
    PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
    model_.dense_optimizer = ReadEnum(map, "dense_optimizer", kDenseOptimizerNames, model_.dense_optimizer);
    model_.embedding_optimizer =
        ReadEnum(map, "embedding_optimizer", kEmbeddingOptimizerNames, model_.embedding_optimizer);
    model_.published_recipe = map.String("recipe", "");
    for (const YamlValue& element : map.Elements("samples_to_quality")) {
      PORTOLAN_ASSIGN_OR_RETURN(YamlMap point, element.Map());
      SamplesToQuality samples;
      samples.global_batch = point.Integer("global_batch", {1, 1e12});
      samples.samples = point.Number("samples", {1, 1e18});
      PORTOLAN_RETURN_IF_ERROR(point.Finish());
      model_.samples_to_quality.push_back(samples);
    }
    return map.Finish();
  }

  Model model_;
  double zipf_exponent_ = 0;
  int64_t layers_ = 0;  // of all blocks so far
  Feature::SkewOf skew_of_ = Feature::SkewOf::kLookup;
  std::unordered_map<std::string, Block::Input> names_;
  std::unordered_map<std::string, int> table_index_;
  std::unordered_map<std::string, YamlValue> dense_places_;
  std::vector<YamlValue> group_places_;  // of the groups that 'groups' lists
};

}  // namespace

Result<Model> ReadModel(const YamlValue& value) { return ModelReader().Read(value); }

Result<Model> LoadModel(const std::string& path) {
  PORTOLAN_ASSIGN_OR_RETURN(const YamlValue value, YamlValue::Load(path));
  return ReadModel(value);
}

}  // namespace portolan
