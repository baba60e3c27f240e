#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/batch.h"
#include "engine/data/sample_source.h"
#include "engine/data/value_map.h"

namespace portolan {

// MovieTweetings' ratings, lines of user::item::rating::timestamp without a header, read whole and put in the order of
// time (of the file within one second). The last `eval_fraction` of them are the eval split. Features by name, each at
// most once: user, item, genres (multi-hot; from `movies`, lines of item::title (year)::genre|genre). Dense values by
// name:
//   hour     of the day / 24 (UTC)      weekday  days since Sunday / 7      year  (the movie's - 1900) / 100, 0 if
//   unknown
struct MovieTweetingsOptions {
  std::vector<std::string> ratings;
  std::string movies;  // may be empty when neither genres nor year is asked for
  std::string user_vocabulary,
      item_vocabulary;   // a key a line, id = line - 1; empty: ids by first appearance in the files
  double threshold = 8;  // label = rating >= threshold
  std::vector<std::string> dense;
  IdRule ids = IdRule::kExact;  // of the dense ids, against the feature's rows
  double eval_fraction = 0;
  DataSplit split = DataSplit::kTrain;
};

// Columns user, item, rating, timestamp, genres.
PolicyBook MovieTweetingsPolicies();
// Errors: files; unknown features or dense values; more users, items or genres than the model has rows (the message
// says how many there are), unless the policy or the rule takes them.
Result<std::unique_ptr<SampleSource>> OpenMovieTweetings(const MovieTweetingsOptions& options,
                                                         const BatchSchema& schema, PolicyBook policies);

}  // namespace portolan
