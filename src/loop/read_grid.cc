#include "loop/read_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace portolan {
namespace {

Status ReadNumbers(const std::vector<YamlValue>& elements, const Range& range, std::vector<double>* numbers) {
  for (const YamlValue& element : elements) {
    PORTOLAN_ASSIGN_OR_RETURN(const double number, element.Number(range));
    numbers->push_back(number);
  }
  return {};
}

}  // namespace

Result<MeasuredGrid> ReadMeasuredGrid(const YamlValue& entry, const Range& range) {
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap fields, entry.Map());
  MeasuredGrid grid;
  size_t points = 1;
  for (const YamlValue& axis : fields.Elements("axes")) {
    PORTOLAN_ASSIGN_OR_RETURN(const std::vector<YamlValue> elements, axis.Elements());
    PORTOLAN_RETURN_IF_ERROR(ReadNumbers(elements, range, &grid.axes.emplace_back()));
    points *= grid.axes.back().size();
  }
  PORTOLAN_RETURN_IF_ERROR(ReadNumbers(fields.Elements("seconds"), range, &grid.seconds));
  PORTOLAN_RETURN_IF_ERROR(fields.Finish());
  if (grid.seconds.size() != points || points == 0) {
    return entry.MakeError(ErrorCode::kInvalidValue,
                           fmt::format("must have {} seconds, one a point of its axes", points));
  }
  for (const std::vector<double>& axis : grid.axes) {
    if (std::adjacent_find(axis.begin(), axis.end(), std::greater_equal<>()) != axis.end()) {
      return entry.MakeError(ErrorCode::kInvalidValue, "axes: the extents of an axis must ascend");
    }
  }
  return grid;
}

}  // namespace portolan
