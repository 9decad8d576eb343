// x86-64 with AVX512-VNNI, whose `vpdpbusd` adds four products of unsigned and signed bytes.
#include <immintrin.h>

#include "byte_products.hpp"

namespace fillmask {
namespace {

struct Avx512Vnni {
  using Sums = __m512i;
  using Bytes = __m512i;
  static constexpr size_t kGroup = 4, kRows = 1, kColumns = 16, kVectors = 4;
  static constexpr int kShift = 0;

  static Sums load_sums(const int32_t* from) { return _mm512_loadu_si512(from); }
  static Bytes load_columns(const int8_t* from) { return _mm512_load_si512(from); }
  static Bytes load_rows(const uint8_t* from, size_t) {
    int32_t four;
    std::memcpy(&four, from, sizeof four);
    return _mm512_set1_epi32(four);
  }
  static void add_products(Sums& sums, Bytes rows, Bytes columns) {
#if defined(__GNUC__) && !defined(__clang__)
    // GCC 12 keeps the sums on the stack if it sees an intrinsic here, at half the speed.
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(rows), "v"(columns));
#else
    sums = _mm512_dpbusd_epi32(sums, rows, columns);
#endif
  }
  static void store(Sums sums, int32_t* to) { _mm512_storeu_si512(to, sums); }
};

}  // namespace

const InstructionSet kAvx512Vnni = fast_instruction_set<Avx512Vnni>("avx512_vnni");

}  // namespace fillmask
