// How fast the Criteo reader is, against what one core can do with the same bytes. Writes a generated day file (lengths
// of fields, missing and negative ones in about Criteo's proportions), checks the reader's answer against a slow parser
// that shares nothing with it, then times in turn, in one thread and by its CPU time:
//   lines    read the file in blocks and find every '\n' with memchr
//   fields   ... and every TAB, with memchr from field to field: the least that a parser has to see
//   bare     ... and turn the fields into checked numbers, with the reader's own steps, but no policies, counts,
//   logarithms,
//            modulo, samples or batches: the least that a parser of this format can do with one core. This is the
//            bound.
//   source   OpenCriteoTsv's samples, 64 at a time, before they become a batch
//   reader   SampleReader over criteo_tsv, batches of 8192
// Prints GB/s (median of the rounds) and the reader's share of each. Run: criteo_tsv_bench [samples] [rounds]
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "engine/data/criteo_tsv.h"
#include "engine/data/random_order.h"
#include "engine/data/sample_reader.h"
#include "engine/data/text_fields.h"

namespace portolan {
namespace {

constexpr int64_t kBatch = 8192;
constexpr int64_t kBlockBytes = 256 << 10;  // as LineSource

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

BatchSchema Schema() {
  BatchSchema schema;
  schema.dense_width = kCriteoDense;
  for (int64_t i = 0; i < kCriteoCategories; ++i) {
    schema.features.push_back({fmt::format("C{}", i + 1), 1000 + 39979771 * i / 25});
  }
  return schema;
}

std::string Generate(int64_t samples) {
  std::string text;
  uint64_t state = 1;
  const auto uniform = [&state] { return static_cast<double>((state = MixBits(state)) >> 11) * 0x1p-53; };
  for (int64_t i = 0; i < samples; ++i) {
    text += uniform() < 0.26 ? '1' : '0';
    for (int64_t f = 0; f < kCriteoDense; ++f) {
      text += '\t';
      if (uniform() < (f == 0 || f == 9 || f == 11 ? 0.45 : 0.06)) continue;
      if (f == 1 && uniform() < 0.1) {
        text += "-1";
      } else {
        text += std::to_string(static_cast<int64_t>(std::exp(uniform() * (f == 4 ? 11.0 : f == 5 ? 7.0 : 4.5)) - 1));
      }
    }
    for (int64_t f = 0; f < kCriteoCategories; ++f) {
      text += '\t';
      if (uniform() < (f == 18 || f == 19 || f == 24 || f == 25 ? 0.44 : f == 21 ? 0.76 : 0.01)) continue;
      text += fmt::format("{:08x}", static_cast<uint32_t>(uniform() * 4294967296.0));
    }
    text += '\n';
  }
  return text;
}

void Require(bool condition, const std::string& what) {
  if (condition) return;
  fmt::print(stderr, "criteo_tsv_bench: {}\n", what);
  std::exit(1);
}

std::unique_ptr<SampleReader> Open(const std::string& path) {
  const auto parts = SplitTextFiles({path}, 0);
  Require(parts.has_value(), "cannot open what was written");
  CriteoOptions options;
  options.parts = parts->train;
  auto source = OpenCriteoTsv(options, Schema(), CriteoPolicies());
  Require(source.has_value(), "cannot open what was written");
  return std::make_unique<SampleReader>(std::move(*source), Schema(), SampleOrder{}, "bench");
}

// The reader's batches against std::getline, std::stoll and %.
void CheckAnswer(const std::string& path, const std::string& text) {
  const BatchSchema schema = Schema();
  std::istringstream lines(text);
  auto reader = Open(path);
  Batch batch;
  std::string line, field;
  while (true) {
    const auto outcome = reader->Next(kBatch, &batch);
    Require(outcome.has_value(), outcome ? "" : FormatError(outcome.error()));
    if (*outcome == ReadOutcome::kEnd) break;
    for (int64_t i = 0; i < batch.size; ++i) {
      Require(static_cast<bool>(std::getline(lines, line)), "too many samples");
      std::istringstream fields(line);
      std::getline(fields, field, '\t');
      Require(batch.labels[i] == std::stof(field), "label");
      for (int64_t f = 0; f < kCriteoDense; ++f) {
        std::getline(fields, field, '\t');
        const long long x = field.empty() ? 0 : std::max(0LL, std::stoll(field));
        Require(batch.dense[i * kCriteoDense + f] == std::log(static_cast<float>(x) + 1.0F), "dense");
      }
      for (int64_t f = 0; f < kCriteoCategories; ++f) {
        field.clear();
        std::getline(fields, field, '\t');
        const long long x = field.empty() ? 0 : std::stoll(field, nullptr, 16);
        const int64_t bag = f * batch.size + i;
        Require(batch.offsets[bag] == bag && batch.ids[bag] == x % schema.features[f].rows, "id");
      }
    }
  }
  Require(!std::getline(lines, line), "too few samples");
}

// Calls `use` with whole lines, block by block, as LineSource reads them.
template <typename Use>
void EachBlock(const std::string& path, const Use& use) {
  const auto file = InputFile::Open(path);
  Require(file.has_value(), "cannot open what was written");
  std::vector<char> buffer(kBlockBytes + 2 * LineSource::kPadding);
  char* const bytes = buffer.data() + LineSource::kPadding;
  int64_t kept = 0;
  for (int64_t at = 0; at < file->size();) {
    const auto read = file->ReadSome(at, kBlockBytes - kept, bytes + kept);
    Require(read.has_value() && *read > 0, "cannot read what was written");
    at += *read;
    const int64_t end = kept + *read;
    const char* last = static_cast<const char*>(memrchr(bytes, '\n', static_cast<size_t>(end)));
    use(bytes, last + 1);
    kept = bytes + end - (last + 1);
    std::memmove(bytes, last + 1, static_cast<size_t>(kept));
  }
}

uint64_t CountLines(const std::string& path) {
  uint64_t count = 0;
  EachBlock(path, [&](const char* at, const char* end) {
    while (at < end) {
      at = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at))) + 1;
      ++count;
    }
  });
  return count;
}

uint64_t CountFields(const std::string& path) {
  uint64_t count = 0;
  EachBlock(path, [&](const char* at, const char* end) {
    while (at < end) {
      for (int64_t f = 0; f + 1 < 1 + kCriteoDense + kCriteoCategories; ++f) {
        at = static_cast<const char*>(std::memchr(at, '\t', static_cast<size_t>(end - at))) + 1;
        ++count;
      }
      at = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at))) + 1;
      ++count;
    }
  });
  return count;
}

uint64_t BareParse(const std::string& path) {
  uint64_t sum = 0;
  EachBlock(path, [&](const char* at, const char* end) {
    TabScanner scanner(at);
    while (at < end) {
      sum += static_cast<uint64_t>(*at);
      const char* field = scanner.Next() + 1;
      for (int64_t f = 0; f < kCriteoDense; ++f) {
        const char* const stop = scanner.Next();
        const bool negative = *field == '-';
        field += negative;
        uint32_t x = 0;
        sum += ParseDigits(stop, std::min<int64_t>(8, stop - field), &x);
        sum += x & (static_cast<uint32_t>(negative) - 1);
        field = stop + 1;
      }
      for (int64_t f = 0; f < kCriteoCategories; ++f) {
        const char* const stop = scanner.Next();
        uint32_t x = 0;
        sum += ParseHex8(field, &x);
        sum += x & (static_cast<uint32_t>(stop == field) - 1);  // without a branch: half of some columns is empty
        field = stop + 1;
      }
      at = field;
    }
  });
  return sum;
}

// The reader's source without the batch.
uint64_t ReadSource(const std::string& path) {
  const auto parts = SplitTextFiles({path}, 0);
  CriteoOptions options;
  options.parts = parts->train;
  auto source = OpenCriteoTsv(options, Schema(), CriteoPolicies());
  SampleRows rows(kCriteoDense, kCriteoCategories, Bags::kOneEach);
  uint64_t samples = 0;
  do {
    rows.Clear();
    Require((*source)->Read(64, &rows).has_value(), "cannot read what was written");
    samples += static_cast<uint64_t>(rows.size);
  } while (rows.size > 0);
  return samples;
}

uint64_t ReadBatches(const std::string& path) {
  auto reader = Open(path);
  Batch batch;
  uint64_t samples = 0;
  while (*reader->Next(kBatch, &batch) == ReadOutcome::kBatch) samples += static_cast<uint64_t>(batch.size);
  return samples;
}

int Main(int64_t samples, int rounds) {
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("criteo_bench_{}.tsv", getpid())).string();
  {
    const std::string text = Generate(samples);
    std::ofstream(path, std::ios::binary) << text;
    CheckAnswer(path, text);
  }
  const double bytes = static_cast<double>(std::filesystem::file_size(path));
  struct Way {
    const char* name;
    uint64_t (*run)(const std::string&);
    std::vector<double> seconds;
  } ways[] = {{"lines", CountLines, {}},
              {"fields", CountFields, {}},
              {"bare", BareParse, {}},
              {"source", ReadSource, {}},
              {"reader", ReadBatches, {}}};
  uint64_t kept = 0;
  for (int round = 0; round < rounds; ++round) {
    for (Way& way : ways) {
      const double start = CpuSeconds();
      kept ^= way.run(path);
      way.seconds.push_back(CpuSeconds() - start);
    }
  }
  std::filesystem::remove(path);
  const auto median = [](std::vector<double>& values) {
    std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
    return values[values.size() / 2];
  };
  const double reader = median(ways[4].seconds);
  fmt::print("{} samples, {:.0f} bytes a line, {} rounds, CPU time of one thread (check {:x})\n", samples,
             bytes / static_cast<double>(samples), rounds, kept);
  for (Way& way : ways) {
    const double seconds = median(way.seconds);
    fmt::print("{:<7} {:6.2f} GB/s {:7.0f} ns a line   reader at {:3.0f} %\n", way.name, bytes / seconds / 1e9,
               seconds / static_cast<double>(samples) * 1e9, 100 * seconds / reader);
  }
  return 0;
}

}  // namespace
}  // namespace portolan

int main(int argc, char** argv) {
  return portolan::Main(argc > 1 ? std::atoll(argv[1]) : 400000, argc > 2 ? std::atoi(argv[2]) : 9);
}
