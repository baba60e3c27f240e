#include "engine/run_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace portolan {
namespace {

std::array<uint32_t, 256> CrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0x82f63b78u : 0u);
    table[i] = crc;
  }
  return table;
}

uint32_t Masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }  // TFRecord's mask

// The wire format of protocol buffers: key = field * 8 + type; types 0 varint, 1 eight bytes, 2 length and bytes, 5
// four.
void PutVarint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}
template <typename T>
void PutFixed(std::string* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}
void PutBytes(std::string* out, int field, const std::string& bytes) {
  PutVarint(out, static_cast<uint64_t>(field) * 8 + 2);
  PutVarint(out, bytes.size());
  *out += bytes;
}
// Event: 1 double wall_time, 2 int64 step.
std::string EventHead(int64_t step) {
  const double seconds = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::string event;
  PutVarint(&event, 8 + 1);
  PutFixed(&event, seconds);
  PutVarint(&event, 16);
  PutVarint(&event, static_cast<uint64_t>(step));
  return event;
}

tl::unexpected<Error> WriteError(const std::string& path) {
  return tl::make_unexpected(
      Error{ErrorCode::kIo, std::string("cannot be written: ") + std::strerror(errno), path, 0, {}});
}

}  // namespace

uint32_t Crc32c(const void* data, size_t bytes) {
  static const std::array<uint32_t, 256> table = CrcTable();
  uint32_t crc = ~0u;
  for (size_t i = 0; i < bytes; ++i) crc = (crc >> 8) ^ table[(crc ^ static_cast<const uint8_t*>(data)[i]) & 0xffu];
  return ~crc;
}

void EventWriter::Close::operator()(std::FILE* file) const { std::fclose(file); }

Result<EventWriter> EventWriter::Open(const std::string& folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  EventWriter writer;
  writer.path_ = fmt::format("{}/events.out.tfevents.{}.portolan.{}", folder, seconds.count(), getpid());
  writer.file_.reset(std::fopen(writer.path_.c_str(), "wbe"));
  if (!writer.file_) return WriteError(writer.path_);
  std::string event = EventHead(0);
  PutBytes(&event, 3, "brain.Event:2");  // file_version
  PORTOLAN_RETURN_IF_ERROR(writer.Record(event));
  return writer;
}

Status EventWriter::Record(const std::string& event) {
  std::string length, record;
  PutFixed<uint64_t>(&length, event.size());
  record = length;
  PutFixed(&record, Masked(Crc32c(length.data(), length.size())));
  record += event;
  PutFixed(&record, Masked(Crc32c(event.data(), event.size())));
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) != record.size() || std::fflush(file_.get()) != 0) {
    return WriteError(path_);
  }
  return {};
}

Status EventWriter::Add(int64_t step, const std::vector<std::pair<std::string, double>>& values) {
  std::string summary;
  for (const auto& [name, number] : values) {
    if (!std::isfinite(number)) continue;
    std::string value;  // Summary.Value: 1 tag, 2 float simple_value
    PutBytes(&value, 1, name);
    PutVarint(&value, 2 * 8 + 5);
    PutFixed(&value, static_cast<float>(number));
    PutBytes(&summary, 1, value);
  }
  std::string event = EventHead(step);
  PutBytes(&event, 5, summary);
  return Record(event);
}

void ChromeTrace::Add(int64_t step, const std::vector<PhaseTime>& phases) {
  for (const PhaseTime& phase : phases) {
    if (events_.size() < kMaxEvents) {
      events_.push_back({step, phase});
    } else {
      events_[next_] = {step, phase};
      next_ = (next_ + 1) % kMaxEvents;
    }
  }
}

Status ChromeTrace::Write(const std::string& path) const {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  for (size_t i = 0; i < events_.size(); ++i) {
    const Event& event = events_[(next_ + i) % events_.size()];
    events.push_back({{"name", event.phase.name},
                      {"ph", "X"},
                      {"ts", event.phase.begin_s * 1e6},
                      {"dur", (event.phase.end_s - event.phase.begin_s) * 1e6},
                      {"pid", 0},
                      {"tid", 0},
                      {"args", {{"step", event.step}}}});
  }
  return WriteJsonFile(path, {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}});
}

}  // namespace portolan
