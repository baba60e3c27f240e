#include "engine/data/movie_tweetings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <set>

#include "engine/data/data_test_files.h"
#include "engine/data/sample_reader.h"

namespace portolan {
namespace {

// Out of the order of time, as the real file is: sorted by user.
constexpr const char* kRatings =
    "1::0114508::8::1381006850\n"
    "1::0208092::5::1370000000\n"
    "2::114508::10::1365000000\n"
    "9::0358273::7::1362062307\n";
constexpr const char* kMovies =
    "0114508::Species (1995)::Action|Horror|Sci-Fi\n"
    "0208092::Snatch. (2000)::Crime|Action\n"
    "0358273::Walk: the :: Line (2005)::\n";

BatchSchema Schema(int64_t users = 3, int64_t items = 3, int64_t genres = 4, int64_t dense = 0) {
  BatchSchema schema;
  schema.dense_width = dense;
  schema.features = {{"genres", genres}, {"user", users}, {"item", items}};
  return schema;
}

MovieTweetingsOptions Options() {
  MovieTweetingsOptions options;
  options.ratings = {DataTestFile("ratings.dat", kRatings)};
  options.movies = DataTestFile("movies.dat", kMovies);
  return options;
}

Batch Read(const MovieTweetingsOptions& options, const BatchSchema& schema) {
  auto source = OpenMovieTweetings(options, schema, MovieTweetingsPolicies());
  EXPECT_TRUE(source) << FormatError(source.error());
  SampleReader reader(std::move(*source), schema, {}, "movies");
  Batch batch;
  EXPECT_TRUE(reader.Next(1 << 20, &batch));
  return batch;
}

std::string ErrorOf(const MovieTweetingsOptions& options, const BatchSchema& schema) {
  const auto source = OpenMovieTweetings(options, schema, MovieTweetingsPolicies());
  return source ? "no error" : FormatError(source.error());
}

TEST(MovieTweetingsTest, ReadsByHandInTheOrderOfTime) {
  const Batch batch = Read(Options(), Schema());
  ASSERT_EQ(batch.size, 4);
  EXPECT_EQ(batch.labels, (std::vector<float>{0, 1, 0, 1}));
  // Genres by appearance in movies.dat: Action 0, Horror 1, Sci-Fi 2, Crime 3. By time: movies 0358273 (none), 0114508,
  // 0208092, 0114508. Users by appearance in the file: 1 -> 0, 2 -> 1, 9 -> 2; items 0114508 -> 0 (with and without the
  // zero), 0208092 -> 1, 0358273 -> 2.
  EXPECT_EQ(batch.ids, (std::vector<int64_t>{0, 1, 2, 3, 0, 0, 1, 2, 2, 1, 0, 0, 2, 0, 1, 0}));
  EXPECT_EQ(batch.offsets, (std::vector<int64_t>{0, 0, 3, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16}));
}

TEST(MovieTweetingsTest, TheSplitIsByTimeAndIdsAgree) {
  MovieTweetingsOptions options = Options();
  options.eval_fraction = 0.25;
  EXPECT_EQ(Read(options, Schema()).labels, (std::vector<float>{0, 1, 0}));
  options.split = DataSplit::kEval;
  const Batch eval = Read(options, Schema());
  EXPECT_EQ(eval.labels, std::vector<float>{1});
  EXPECT_EQ(eval.ids, (std::vector<int64_t>{0, 1, 2, 0, 0}));
}

TEST(MovieTweetingsTest, DenseValuesByHand) {
  MovieTweetingsOptions options = Options();
  options.dense = {"weekday", "year", "hour"};
  const Batch batch = Read(options, Schema(3, 3, 4, 3));
  // 1362062307 is Thursday, 28 February 2013, 14:38:27 UTC: 52707 s of the day.
  EXPECT_FLOAT_EQ(batch.dense[0], 4.0F / 7);
  EXPECT_FLOAT_EQ(batch.dense[1], 1.05F);
  EXPECT_FLOAT_EQ(batch.dense[2], 52707.0F / 86400);
}

TEST(MovieTweetingsTest, VocabulariesGiveTheIds) {
  MovieTweetingsOptions options = Options();
  options.user_vocabulary = DataTestFile("users.txt", "9\n2\n1\n");
  const Batch batch = Read(options, Schema());
  EXPECT_EQ(std::vector<int64_t>(batch.ids.begin() + 8, batch.ids.begin() + 12), (std::vector<int64_t>{0, 1, 2, 2}));
  options.user_vocabulary = DataTestFile("users.txt", "9\n2\n");
  EXPECT_NE(
      ErrorOf(options, Schema()).find("ratings.dat:1: user: '1' cannot be read; accepted: a key of the vocabulary"),
      std::string::npos);
  options.user_vocabulary = DataTestFile("users.txt", "9\n9\n");
  EXPECT_NE(ErrorOf(options, Schema()).find("users.txt:2: '9' stands twice"), std::string::npos);
}

TEST(MovieTweetingsTest, WhatDoesNotFitIsNamed) {
  EXPECT_NE(ErrorOf(Options(), Schema(2)).find("ratings.dat:4: user: '9 (id 2)' is out of range"), std::string::npos);
  EXPECT_NE(ErrorOf(Options(), Schema(3, 3, 3)).find("movies.dat:2: genres: 'Crime (id 3)' is out of range"),
            std::string::npos);
  BatchSchema schema = Schema();
  schema.features[0].name = "tags";
  EXPECT_NE(ErrorOf(Options(), schema).find("no feature 'tags'"), std::string::npos);
  schema.features[0].name = "user";
  EXPECT_NE(ErrorOf(Options(), schema).find("stands twice"), std::string::npos);
  MovieTweetingsOptions options = Options();
  options.dense = {"minute"};
  EXPECT_NE(ErrorOf(options, Schema(3, 3, 4, 1)).find("no dense value 'minute'"), std::string::npos);
  options = Options();
  options.movies.clear();
  EXPECT_NE(ErrorOf(options, Schema()).find("name it with 'movies'"), std::string::npos);
  const auto ratings = [&](const std::string& line) {
    MovieTweetingsOptions bad = Options();
    bad.ratings = {DataTestFile("ratings_bad.dat", kRatings + line)};
    return ErrorOf(bad, Schema());
  };
  EXPECT_NE(ratings("1::0114508::8\n").find("ratings_bad.dat:5: '1::0114508::8' cannot be read"), std::string::npos);
  EXPECT_NE(ratings("1::0114508::x::5\n").find(":5: rating: 'x' cannot be read"), std::string::npos);
  EXPECT_NE(ratings("1::0114508::8::\n").find(":5: timestamp: is missing"), std::string::npos);
  EXPECT_NE(ratings("1::0114508::8::-4\n").find(":5: timestamp: '-4' is negative"), std::string::npos);
  EXPECT_NE(ratings("::0114508::8::5\n").find(":5: user: is missing"), std::string::npos);
  EXPECT_NE(ratings("1::777::8::5\n").find(":5: item: '777 (id 3)' is out of range"), std::string::npos);
  EXPECT_NE(ratings("\xff\x00garbage\n").find(":5: "), std::string::npos);
}

// Facts of the data set's README: 100,000 ratings of 16,554 users and 10,506 movies, 25 genres, time 1362062307 to
// 1378067265.
TEST(MovieTweetingsTest, TheRealSet) {
  const char* shared = std::getenv("PORTOLAN_SHARED_DATA");
  const std::string folder = std::string(shared != nullptr ? shared : "../shared/data") + "/movietweetings-100k";
  if (!std::filesystem::exists(folder + "/ratings.dat")) {
    GTEST_SKIP() << "no MovieTweetings data: set PORTOLAN_SHARED_DATA";
  }
  MovieTweetingsOptions options;
  options.ratings = {folder + "/ratings.dat"};
  options.movies = folder + "/movies.dat";
  options.dense = {"hour"};
  const BatchSchema schema = Schema(16554, 10506, 25, 1);
  const Batch all = Read(options, schema);
  ASSERT_EQ(all.size, 100000);
  const auto distinct = [&](int64_t feature) {
    const auto begin = all.ids.begin() + all.offsets[feature * all.size];
    return std::set<int64_t>(begin, all.ids.begin() + all.offsets[(feature + 1) * all.size]).size();
  };
  EXPECT_EQ(distinct(0), 25u);
  EXPECT_EQ(distinct(1), 16554u);
  EXPECT_EQ(distinct(2), 10506u);
  EXPECT_FLOAT_EQ(all.dense[0], static_cast<float>(1362062307 % 86400) / 86400);
  EXPECT_FLOAT_EQ(all.dense[99999], static_cast<float>(1378067265 % 86400) / 86400);
  EXPECT_NE(ErrorOf(options, Schema(16553, 10506, 25, 1)), "no error") << "one row too few";
  options.eval_fraction = 0.1;
  EXPECT_EQ(Read(options, schema).size, 90000);
  options.split = DataSplit::kEval;
  const Batch eval = Read(options, schema);
  ASSERT_EQ(eval.size, 10000);
  EXPECT_EQ(eval.labels[0], all.labels[90000]);
}

}  // namespace
}  // namespace portolan
