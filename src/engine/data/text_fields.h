#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace portolan {

static_assert(std::endian::native == std::endian::little,
              "the word tricks below and the binary formats are little-endian");

// Finds the next '\t' or '\n', 64 bytes at a time. May look up to 63 bytes past the text; the caller stops at its last
// '\n'.
class TabScanner {
 public:
  explicit TabScanner(const char* begin) : block_(begin), found_(Find(begin)) {}

  const char* Next() {
    while (found_ == 0) {
      block_ += 64;
      found_ = Find(block_);
    }
    const char* at = block_ + std::countr_zero(found_);
    found_ &= found_ - 1;
    return at;
  }

 private:
  static uint64_t Find(const char* block) {
    uint64_t found = 0;
#ifdef __SSE2__
    const __m128i tab = _mm_set1_epi8('\t');
    const __m128i newline = _mm_set1_epi8('\n');
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 16 * i));
      const __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(bytes, tab), _mm_cmpeq_epi8(bytes, newline));
      found |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(hit))) << (16 * i);
    }
#else
    for (int i = 0; i < 64; ++i) {
      found |= static_cast<uint64_t>(block[i] == '\t' || block[i] == '\n') << i;
    }
#endif
    return found;
  }

  const char* block_;
  uint64_t found_;  // separators of the block that Next has not given yet
};

inline uint64_t LoadWord(const char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

constexpr uint64_t EachByte(uint64_t byte) { return byte * 0x0101010101010101ULL; }

// The value of the `length` (0 to 8) decimal digits that end at `end`, 0 for none; false when one is no digit. Loads 8
// bytes before `end`. The digits are added up in three steps of pairs, quads and eights.
inline bool ParseDigits(const char* end, int64_t length, uint32_t* value) {
  // Bytes of the word that belong to the field: the last `length`, which are the high ones.
  constexpr uint64_t kKeep[9] = {0,
                                 0xffULL << 56,
                                 0xffffULL << 48,
                                 0xffffffULL << 40,
                                 0xffffffffULL << 32,
                                 0xffffffffffULL << 24,
                                 0xffffffffffffULL << 16,
                                 0xffffffffffffffULL << 8,
                                 ~uint64_t{0}};
  const uint64_t digits = (LoadWord(end - 8) ^ EachByte('0')) & kKeep[length];
  // Above 9: adding 0x76 to 10 .. 127 sets the top bit of the byte; 128 and more have it set.
  const bool valid = ((((digits & EachByte(0x7f)) + EachByte(0x76)) | digits) & EachByte(0x80)) == 0;
  const uint64_t pairs = (digits * 10 + (digits >> 8)) & 0x00ff00ff00ff00ffULL;
  const uint64_t quads = (pairs * 100 + (pairs >> 16)) & 0x0000ffff0000ffffULL;
  *value = static_cast<uint32_t>(quads * 10000 + (quads >> 32));
  return valid;
}

// The value of 8 hexadecimal digits of either case; false when one is none.
inline bool ParseHex8(const char* begin, uint32_t* value) {
  const uint64_t word = LoadWord(begin);
  // Letters have bit 6: their low four bits count from 1.
  const uint64_t letter = (word >> 6) & EachByte(1);
  const uint64_t nibbles = (word & EachByte(0x0f)) + letter * 9;
  // Written back in lower case, the digits must be what was read.
  const uint64_t above_nine = ((nibbles + EachByte(6)) >> 4) & EachByte(1);
  const uint64_t written = nibbles + EachByte('0') + above_nine * ('a' - '0' - 10);
  const bool valid = ((nibbles & EachByte(0x10)) | (written ^ (word | (letter << 5)))) == 0;
  const uint64_t pairs = ((nibbles << 4) | (nibbles >> 8)) & 0x00ff00ff00ff00ffULL;
  const uint64_t quads = (pairs | (pairs >> 8)) & 0x0000ffff0000ffffULL;
  *value = __builtin_bswap32(static_cast<uint32_t>(quads | (quads >> 16)));
  return valid;
}

}  // namespace portolan
